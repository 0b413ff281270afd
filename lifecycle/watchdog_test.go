//go:build unix

package lifecycle

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The watchdog outlasts the signals that end a process group. It ends at
// farewell, and carries out the journal when the stream ends without that.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		words   string
		removed bool // the journal is removed while the watchdog runs
		kept    bool
	}{
		{"gets farewell", farewell, false, true},
		{"gets nothing more", "", false, false},
		{"gets nothing more, and the journal's name is gone", "", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := proctest.StateDir(t)
			private := filepath.Join(dir, "s1")
			if err := os.Mkdir(private, 0o700); err != nil {
				t.Fatal(err)
			}
			path := abandon(t, dir, journal.NewRecord(kindDirectory, private, nil))
			theirs, ours, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			command := proctest.Helper("watchdog", path)
			command.ExtraFiles = []*os.File{theirs}
			output, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			theirs.Close()
			proctest.ReadReady(output)
			for _, signal := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
				if err := command.Process.Signal(signal); err != nil {
					t.Errorf("%v ended the watchdog", signal)
				}
			}
			if test.removed {
				harness.Eventually(t, "the watchdog has the journal open", func() bool {
					return proctest.Opened(command.Process.Pid, path)
				})
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := ours.WriteString(test.words); err != nil {
				t.Fatal(err)
			}
			ours.Close()
			if err := command.Wait(); err != nil {
				t.Errorf("watchdog: %v", err)
			}
			if proctest.Exist(private) != test.kept || proctest.Exist(path) != test.kept {
				t.Errorf("directory there %t, journal there %t, expected %t", proctest.Exist(private),
					proctest.Exist(path), test.kept)
			}
		})
	}
}
