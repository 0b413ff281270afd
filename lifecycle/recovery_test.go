//go:build unix

package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/session"
)

func init() {
	proctest.Helpers["leave"] = leave
	proctest.Helpers["rewrite"] = rewrite
}

// leave is a leader that ends and leaves a process in its session.
func leave([]string) { proctest.Ready(proctest.StartReady(proctest.Helper("wait"))...) }

// Whatever has the name of a journal: the sweep does not wait for it and
// follows no link. It carries out what it can read of a file that is ours. The
// next journal is made beside it.
func TestSweep_HandlesFilesThatAreNoJournals(t *testing.T) {
	t.Parallel()
	good := func(dir string) []byte {
		return fmt.Appendf(nil, "{\"kind\":\"directory\",\"key\":%q}\n", filepath.Join(dir, "s1"))
	}
	write := func(t *testing.T, path string, parts ...[]byte) {
		t.Helper()
		if err := os.WriteFile(path, bytes.Join(parts, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	garbage := make([]byte, 100_000)
	for i := range garbage {
		garbage[i] = byte(rand.IntN(256))
	}
	for _, test := range []struct {
		name    string
		make    func(t *testing.T, path, dir string)
		carried bool // carried out, and removed
		says    string
	}{
		{"FIFO", func(t *testing.T, path, _ string) {
			if err := unix.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, false, "not a regular file"},
		{"directory", func(t *testing.T, path, _ string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, false, "not a regular file"},
		{"socket", func(t *testing.T, path, _ string) {
			short := filepath.Join(os.TempDir(), fmt.Sprintf("s%d", rand.Uint64()))
			listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short})
			if err != nil {
				t.Fatal(err)
			}
			listener.SetUnlinkOnClose(false)
			t.Cleanup(func() { listener.Close() })
			if err := os.Rename(short, path); err != nil {
				t.Fatal(err)
			}
		}, false, "not a regular file"},
		{"symlink", func(t *testing.T, path, dir string) {
			elsewhere := filepath.Join(t.TempDir(), "elsewhere")
			write(t, elsewhere, good(dir))
			if err := os.Symlink(elsewhere, path); err != nil {
				t.Fatal(err)
			}
		}, false, "not a regular file"},
		{"hard link", func(t *testing.T, path, dir string) {
			write(t, path, good(dir))
			if err := os.Link(path, path+"-again"); err != nil {
				t.Fatal(err)
			}
		}, false, "not a regular file"},
		{"writable for others", func(t *testing.T, path, dir string) {
			write(t, path, good(dir))
			if err := os.Chmod(path, 0o622); err != nil {
				t.Fatal(err)
			}
		}, false, "not a regular file"},
		{"somebody else's", func(t *testing.T, path, dir string) {
			write(t, path, good(dir))
			if err := os.Chown(path, os.Geteuid()+1, -1); err != nil {
				if os.Geteuid() == 0 {
					t.Fatal(err)
				}
				t.Logf("only root can give a file away (%v): here the file is only closed", err)
				if err := os.Chmod(path, 0); err != nil {
					t.Fatal(err)
				}
			}
		}, false, "open journal"},
		{"a line of 200,000 bytes", func(t *testing.T, path, dir string) {
			write(t, path, bytes.Repeat([]byte("x"), 200_000), []byte("\n"), good(dir))
		}, true, "are left alone: 1"},
		{"garbage", func(t *testing.T, path, dir string) {
			write(t, path, garbage, []byte("\n"), good(dir))
		}, true, "not understood"},
		{"100 MB of nothing", func(t *testing.T, path, dir string) {
			write(t, path, good(dir))
			if err := os.Truncate(path, 100<<20); err != nil {
				t.Fatal(err)
			}
		}, true, "too long"},
		{"100 MB of lines", func(t *testing.T, path, dir string) {
			line := []byte(`{"kind":"directory","key":"/no/such/place/s123456789abc"}` + "\n")
			write(t, path, bytes.Repeat(line, (100<<20)/len(line)), good(dir))
		}, true, "too long"},
		{"the control", func(t *testing.T, path, dir string) { write(t, path, good(dir)) }, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := proctest.StateDir(t)
			private := filepath.Join(dir, "s1")
			if err := os.Mkdir(private, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "1"+journal.Suffix)
			test.make(t, path, dir)
			start := time.Now()
			err := Sweep(proctest.Soon(t), dir)
			t.Logf("%d ms", time.Since(start).Milliseconds())
			if proctest.Exist(private) == test.carried || proctest.Exist(path) == test.carried {
				t.Errorf("directory there %t, journal there %t", proctest.Exist(private), proctest.Exist(path))
			}
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("the sweep reports %v", err)
			}
			j, err := journal.New(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Nothing that a journal of another version lists is ended on a guess. A line
// without a kind, a kind and data that only another version knows keep the
// journal, for a sidecar that understands them. After a restart of the machine
// no such process is left.
func TestSweep_LeavesAloneWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, line string
		restarted  bool // since it was written
		left       bool // the journal is left
		says       string
	}{
		{"a session without a kind", `{"session":%d,"start":"%s"}`, false, true, "left to it: 1"},
		{"a subreaper without a kind", `{"subreaper":%d,"start":"%s"}`, false, true, "are left alone: 1"},
		{"a session without a kind, restarted", `{"session":%d,"start":"%s"}`, true, false, "are left alone: 1"},
		{"no record", `%d since %s`, false, false, "are left alone: 1"},
		{
			"a kind of a newer version", `{"kind":"zone","key":"%d","data":{"start":"%s"}}`, false, true,
			"unknown kind \"zone\"",
		},
		{"data of a newer version", `{"kind":"session","key":"%d","data":"since %s"}`, false, true, "another version"},
		{"data of a newer version, restarted", `{"kind":"session","key":"%d","data":"since %s"}`, true, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, group := proctest.StateDir(t), &sessionGroup{}
			listed := proctest.StartIn(t, group.Start, proctest.Helper("tree", "1"))
			t.Cleanup(func() { _, _ = group.Kill(context.Background()) })
			start, err := proc.StartTime(listed[0])
			if err != nil {
				t.Fatal(err)
			}
			origin := journal.Here()
			if test.restarted {
				origin.Boot = "00000000-0000-4000-8000-000000000000"
			}
			path := proctest.Forge(t, dir, journal.Record{Origin: &origin})
			addLine(t, path, fmt.Sprintf(test.line, listed[0], start))
			err = Sweep(proctest.Soon(t), dir)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) ||
				proctest.Exist(path) != test.left {
				t.Errorf("the sweep reports %v, and the journal is there: %t", err, proctest.Exist(path))
			}
			for _, pid := range listed {
				if !proctest.Running(pid) {
					t.Errorf("process %d was ended", pid)
				}
			}
		})
	}
}

// addLine adds a line to a file.
func addLine(t *testing.T, path, line string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintln(file, line)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// A journal of the first release, as it is written there: everything that it lists
// is ended, whatever fields a newer version adds. These lines must not change.
func TestSweep_UnderstandsTheFirstRelease(t *testing.T) {
	t.Parallel()
	dir, group := proctest.StateDir(t), &sessionGroup{}
	listed := proctest.StartIn(t, group.Start, proctest.Helper("tree", "1"))
	t.Cleanup(func() { _, _ = group.Kill(context.Background()) })
	start, err := proc.StartTime(listed[0])
	if err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(dir, "s1")
	temporary := filepath.Join(proctest.StateDir(t), "sandbox-sidecar-0123456789abcdef")
	for _, made := range []string{private, temporary} {
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	origin := journal.Here()
	path := proctest.Forge(t, dir, map[string]any{"origin": map[string]string{
		"boot": origin.Boot, "pidNamespace": origin.PIDNamespace, "init": origin.Init, "new": "ignored",
	}})
	for _, line := range []string{
		`{"kind":"session","key":"7","data":{"id":7,"start":"1"}}`,
		`{"kind":"session","key":"7","over":true}`,
		fmt.Sprintf(`{"kind":"session","key":"%[1]d","data":{"id":%[1]d,"start":%[2]q,"new":1}}`, listed[0], start),
		fmt.Sprintf(`{"kind":"directory","key":%q,"new":"ignored"}`, private),
		fmt.Sprintf(`{"kind":"temporary","key":%q}`, temporary),
	} {
		addLine(t, path, line)
	}
	if err := Sweep(proctest.Soon(t), dir); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, listed)
	for _, left := range []string{path, private, temporary} {
		if proctest.Exist(left) {
			t.Errorf("%s is left", left)
		}
	}
}

func TestFinishes_DoesNotWaitForAHangingCall(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	start := time.Now()
	if err := finishes(50*time.Millisecond, func() error {
		<-hang
		return nil
	}); !errors.Is(err, errHangs) || time.Since(start) > proctest.Timeout/2 {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if err := finishes(proctest.Timeout, func() error { return os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
		t.Error(err)
	}
}

// abandon leaves a journal as a killed sidecar does: unlocked, and not removed.
func abandon(t *testing.T, dir string, records ...journal.Record) (path string) {
	t.Helper()
	j, err := journal.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := j.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	path = j.Path()
	if err := j.Leave(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSweep_RemovesDirectoriesOfADeadSidecar(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	private := filepath.Join(dir, "s1")
	locked := filepath.Join(private, "a", "b")
	if err := os.MkdirAll(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	// A session can lock its directory against its owner.
	for _, path := range []string{locked, filepath.Dir(locked), private} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	path := abandon(t, dir, journal.NewRecord(kindDirectory, private, nil))
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if proctest.Exist(private) || proctest.Exist(path) {
		t.Errorf("left: directory %t, journal %t", proctest.Exist(private), proctest.Exist(path))
	}
}

func TestSweep_LeavesALivingSidecarAlone(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	private := filepath.Join(dir, "s1")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := journal.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Write(journal.NewRecord(kindDirectory, private, nil)); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if !proctest.Exist(private) || !proctest.Exist(j.Path()) {
		t.Errorf("kept: directory %t, journal %t", proctest.Exist(private), proctest.Exist(j.Path()))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if proctest.Exist(j.Path()) {
		t.Error("a closed journal is still there")
	}
}

func TestSweep_TouchesOnlyWhatSidecarsMake(t *testing.T) {
	t.Parallel()
	dir, elsewhere := proctest.StateDir(t), proctest.StateDir(t)
	above := filepath.Join(dir, "..", filepath.Base(elsewhere))
	abandon(t, dir, journal.NewRecord(kindDirectory, elsewhere, nil), journal.NewRecord(kindDirectory, above, nil))
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if !proctest.Exist(elsewhere) {
		t.Fatal("a directory outside the state directory was removed")
	}
	path := abandon(t, dir, journal.NewRecord("cgroup", elsewhere, struct{}{}))
	if err := Sweep(context.Background(), dir); err == nil || !proctest.Exist(elsewhere) {
		t.Errorf("a directory that is no cgroup of ours: error %v, there %t", err, proctest.Exist(elsewhere))
	}
	if !proctest.Exist(path) {
		t.Error("a journal that could not be carried out is gone")
	}
}

func TestSweep_ReadsAJournalWhoseOwnerDiedWhileWriting(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	private := filepath.Join(dir, "s1")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	path := abandon(t, dir, journal.NewRecord(kindDirectory, private, nil))
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"kind":"directory","key":"` + dir); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if proctest.Exist(private) || proctest.Exist(path) || !proctest.Exist(dir) {
		t.Errorf("left: directory %t, journal %t; state directory there: %t", proctest.Exist(private),
			proctest.Exist(path), proctest.Exist(dir))
	}
}

func TestSweep_KillsSessionsThatHaveNotEnded(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	leader := func() []int { return proctest.StartIn(t, (&sessionGroup{}).Start, proctest.Helper("tree", "3")) }
	running1, ended, others := leader(), leader(), leader()
	start := func(pid int) string {
		text, err := proc.StartTime(pid)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	abandon(t, dir,
		session.Session{ID: running1[0], Start: start(running1[0])}.Record(),
		session.Session{ID: ended[0], Start: start(ended[0])}.Record(), session.Ended(ended[0]),
		// The number was used again: its leader now started at another time.
		session.Session{ID: others[0], Start: "1"}.Record(),
	)
	if err := Sweep(proctest.Soon(t), dir); err != nil {
		t.Fatal(err)
	}
	proctest.MustBeGone(t, running1)
	for _, pid := range append(ended, others...) {
		if !proctest.Running(pid) {
			t.Errorf("process %d, which is none of the journal's, is gone", pid)
		}
	}
	for _, pid := range []int{ended[0], others[0]} {
		group := &sessionGroup{sid: pid}
		if _, err := group.Kill(proctest.Soon(t)); err != nil {
			t.Error(err)
		}
	}
}
