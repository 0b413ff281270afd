//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// stateDir is a state directory of the test's own, by its real path.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// abandon leaves a journal behind as a sidecar does that is killed: unlocked,
// and still there.
func abandon(t *testing.T, dir string, records ...Record) *journal {
	t.Helper()
	j, err := newJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := j.write(r); err != nil {
			t.Fatal(err)
		}
	}
	j.file.Close()
	return j
}

// opened reports whether a process holds a file open, by Linux's /proc.
func opened(pid int, path string) bool {
	links, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == path {
			return true
		}
	}
	return false
}

func exist(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestSweep_RemovesWhatADeadSidecarListed(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
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
	j := abandon(t, dir, NewRecord(kindDirectory, private, nil))
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if exist(private) || exist(j.path) {
		t.Errorf("left: directory %t, journal %t", exist(private), exist(j.path))
	}
}

// A sidecar can die before it has locked its journal, or be so slow that a
// sweep takes it for dead.
func TestSweep_RemovesAJournalThatWasNeverLocked(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	born, err := os.CreateTemp(dir, newJournalPrefix)
	if err != nil {
		t.Fatal(err)
	}
	born.Close()
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if exist(born.Name()) {
		t.Error("it is left")
	}
}

func TestNewJournal_WhileASweepLooks(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	ctx, cancel := context.WithCancel(context.Background())
	swept := make(chan error)
	go func() {
		var failures []error
		for ctx.Err() == nil {
			failures = append(failures, Sweep(ctx, dir))
		}
		swept <- errors.Join(failures...)
	}()
	for range 500 {
		j, err := newJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !exist(j.path) {
			t.Fatal("a journal is gone as soon as it was made")
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-swept; err != nil {
		t.Error(err)
	}
}

func TestSweep_LeavesALivingSidecarAlone(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	private := filepath.Join(dir, "s1")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := newJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.write(NewRecord(kindDirectory, private, nil)); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if !exist(private) || !exist(j.path) {
		t.Errorf("kept: directory %t, journal %t", exist(private), exist(j.path))
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if exist(j.path) {
		t.Error("a closed journal is still there")
	}
}

func TestSweep_TouchesNothingThatIsNotASidecars(t *testing.T) {
	t.Parallel()
	dir, elsewhere := stateDir(t), stateDir(t)
	abandon(t, dir, NewRecord(kindDirectory, elsewhere, nil), NewRecord(kindDirectory, filepath.Join(dir, "..", filepath.Base(elsewhere)), nil))
	if err := Sweep(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	if !exist(elsewhere) {
		t.Fatal("a directory outside the state directory was removed")
	}
	j := abandon(t, dir, NewRecord("cgroup", elsewhere, struct{}{}))
	if err := Sweep(context.Background(), dir); err == nil || !exist(elsewhere) {
		t.Errorf("a directory that is no cgroup of ours: error %v, there %t", err, exist(elsewhere))
	}
	if !exist(j.path) {
		t.Error("a journal that could not be carried out is gone")
	}
}

func TestSweep_ReadsAJournalWhoseOwnerDiedWhileWriting(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	private := filepath.Join(dir, "s1")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	j := abandon(t, dir, NewRecord(kindDirectory, private, nil))
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_WRONLY, 0)
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
	if exist(private) || exist(j.path) || !exist(dir) {
		t.Errorf("left: directory %t, journal %t; state directory there: %t", exist(private), exist(j.path), exist(dir))
	}
}

func TestSweep_KillsTheSessionsThatHadNotEnded(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	leader := func() []int { return startIn(t, &sessionGroup{}, helper("tree", "3")) }
	running1, ended, stranger := leader(), leader(), leader()
	start := func(pid int) string {
		text, err := startTime(pid)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	abandon(t, dir,
		Session{ID: running1[0], Start: start(running1[0])}.Record(),
		Session{ID: ended[0], Start: start(ended[0])}.Record(), EndedSession(ended[0]),
		// The number was given away again: the leader that has it now started
		// at another time.
		Session{ID: stranger[0], Start: "1"}.Record(),
	)
	if err := Sweep(soon(t), dir); err != nil {
		t.Fatal(err)
	}
	mustBeGone(t, running1)
	for _, pid := range append(ended, stranger...) {
		if !running(pid) {
			t.Errorf("process %d, which is none of the journal's, is gone", pid)
		}
	}
	for _, pid := range []int{ended[0], stranger[0]} {
		group := &sessionGroup{sid: pid}
		if _, err := group.Kill(soon(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestMakeDir_GoesWithItsGroup(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	tracker := Open(Options{StateDir: dir})
	group, err := tracker.NewGroup("one")
	if err != nil {
		t.Fatal(err)
	}
	private, err := group.MakeDir()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(private)
	if err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(private) != dir {
		t.Fatalf("%s: %v, %v", private, info, err)
	}
	journals, _ := filepath.Glob(filepath.Join(dir, "*"+journalSuffix))
	if len(journals) != 1 {
		t.Fatalf("journals: %v", journals)
	}
	if text, _ := os.ReadFile(journals[0]); !strings.Contains(string(text), private) {
		t.Errorf("the journal does not list the directory:\n%s", text)
	}
	for range 2 {
		if err := group.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if exist(private) {
		t.Error("the directory outlived its group")
	}
	if err := tracker.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left in the state directory: %v", left)
	}
	if _, err := tracker.NewGroup("two"); err == nil {
		t.Error("a closed tracker makes groups")
	}
}

func TestMakeDir_NeedsAStateDirectory(t *testing.T) {
	t.Parallel()
	tracker := Open(Options{})
	defer tracker.Close()
	group, err := tracker.NewGroup("one")
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	if dir, err := group.MakeDir(); err == nil {
		t.Errorf("made %s", dir)
	}
}

// The watchdog outlasts the signals that end a process group, goes when it is
// told to, and carries the journal out when nobody tells it anything.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		words   string
		removed bool // the journal, while the watchdog runs
		kept    bool
	}{
		{"is told farewell", farewell, false, true},
		{"hears nothing more", "", false, false},
		{"hears nothing more, and the journal's name is gone", "", true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := stateDir(t)
			private := filepath.Join(dir, "s1")
			if err := os.Mkdir(private, 0o700); err != nil {
				t.Fatal(err)
			}
			j := abandon(t, dir, NewRecord(kindDirectory, private, nil))
			theirs, ours, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			command := helper("watchdog", j.path)
			command.ExtraFiles = []*os.File{theirs}
			output, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			theirs.Close()
			readReady(output)
			for _, signal := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
				if err := command.Process.Signal(signal); err != nil {
					t.Errorf("%v ended the watchdog", signal)
				}
			}
			if test.removed {
				harness.Eventually(t, "the watchdog has the journal open", func() bool {
					return opened(command.Process.Pid, j.path)
				})
				if err := os.Remove(j.path); err != nil {
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
			if exist(private) != test.kept || exist(j.path) != test.kept {
				t.Errorf("directory there %t, journal there %t, expected %t", exist(private), exist(j.path), test.kept)
			}
		})
	}
}
