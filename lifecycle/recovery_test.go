//go:build unix

package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func init() {
	proctest.Helpers["leave"] = leave
	proctest.Helpers["rewrite"] = rewrite
}

// leave is a leader that ends and leaves a process in its session.
func leave([]string) { proctest.Ready(proctest.StartReady(proctest.Helper("wait"))...) }

// What a journal names by a number is ended only if the number is proved to
// have the same meaning as when it was written. Each case has processes of its
// own. The first case of each kind is the control, in which everything is
// right.
func TestSweep_NeverEndsAnotherProcessByItsNumber(t *testing.T) {
	t.Parallel()
	right := journal.Here()
	if right.Boot == "" {
		t.Fatal("this start of the machine is not known")
	}
	otherBoot, otherNamespace, otherInit := right, right, right
	otherBoot.Boot = "00000000-0000-4000-8000-000000000000"
	otherNamespace.PIDNamespace = "pid:[1]"
	otherInit.Init = "987654321"
	unknown := journal.Origin{}
	type scene struct {
		name   string
		origin *journal.Origin
		forge  func(led session.Session) session.Session
		leader bool // the leader lives
		dies   bool
	}
	same := func(led session.Session) session.Session { return led }
	scenes := []scene{
		{"leader, all right", &right, same, true, true},
		{"leader, another boot", &otherBoot, same, true, false},
		{"leader, another process id namespace", &otherNamespace, same, true, false},
		{"leader, another process 1", &otherInit, same, true, false},
		{"leader, no origin known", &unknown, same, true, false},
		{"leader, a journal of an older version", nil, same, true, false},
		{"leader, another start time", &right, func(led session.Session) session.Session {
			led.Start = "1"
			return led
		}, true, false},
		{"leader gone, another boot", &otherBoot, same, false, false},
		{"leader gone, another process id namespace", &otherNamespace, same, false, false},
		{"leader gone, a journal of an older version", nil, same, false, false},
		{"leader gone, ancestry unknown", &right, func(led session.Session) session.Session {
			led.Autogroup = ""
			return led
		}, false, false},
	}
	if proc.AutogroupID(os.Getpid()) != "" {
		scenes = append(scenes,
			scene{"leader gone, all right", &right, same, false, true},
			scene{"leader gone, another ancestry", &right, func(led session.Session) session.Session {
				led.Autogroup = "/autogroup-1000000000"
				return led
			}, false, false},
		)
	}
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir, group := proctest.StateDir(t), &sessionGroup{}
			var others []int
			if s.leader {
				others = proctest.StartIn(t, group.Start, proctest.Helper("tree", "2"))
			} else {
				process, gate, output, err := proctest.Start(group.Start, proctest.Helper("leave"))
				if err != nil {
					t.Fatal(err)
				}
				gate.Close()
				others = proctest.ReadReady(output)
				output.Close()
				if _, err := process.Wait(false); err != nil || len(others) != 1 {
					t.Fatalf("the leader has left %v, %v", others, err)
				}
			}
			t.Cleanup(func() {
				for _, pid := range others {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			})
			path := proctest.Forge(t, dir, journal.Record{Origin: s.origin}, s.forge(group.session).Record())
			err := Sweep(proctest.Soon(t), dir)
			if proctest.Exist(path) {
				t.Error("the journal is left")
			}
			if s.dies {
				if proctest.MustBeGone(t, others); err != nil {
					t.Error(err)
				}
				return
			}
			for _, pid := range others {
				if !proctest.Running(pid) {
					t.Errorf("process %d of another session is gone; the sweep reports: %v", pid, err)
				}
			}
			mayBeOurs := s.origin == nil || s.origin == &unknown || s.origin == &otherNamespace || s.origin == &otherInit ||
				s.name == "leader gone, ancestry unknown"
			if says := err != nil && strings.Contains(err.Error(), "left alone"); says != mayBeOurs {
				t.Errorf("the sweep reports %v", err)
			}
		})
	}
}

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
		}, true, "1 lines are not understood"},
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
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("the sweep took %v", took)
			} else {
				t.Logf("%d ms", took.Milliseconds())
			}
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
// of a version without kinds is counted, and dropped with its journal, because
// nothing proves what its numbers name. A kind of a newer version keeps the
// journal, for a sidecar that understands it.
func TestSweep_LeavesAloneWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, line string
		left       bool // the journal is left
		says       string
	}{
		{"a session of an older version", `{"session":%d,"start":"%s"}`, false, "1 lines are not understood"},
		{"a subreaper of an older version", `{"subreaper":%d,"start":"%s"}`, false, "1 lines are not understood"},
		{"a kind of a newer version", `{"kind":"zone","key":"%d","data":{"start":"%s"}}`, true, "unknown kind \"zone\""},
		{"data of a newer version", `{"kind":"session","key":"%d","data":"since %s"}`, false, "left alone"},
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
			line := json.RawMessage(fmt.Sprintf(test.line, listed[0], start))
			path := proctest.Forge(t, dir, journal.Record{Origin: &origin}, line)
			err = Sweep(proctest.Soon(t), dir)
			if err == nil || !strings.Contains(err.Error(), test.says) || proctest.Exist(path) != test.left {
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

// rewrite is a sidecar that only compacts its journal, while directories are
// made and removed. Its argument is the state directory. A second argument
// gives it a watchdog.
func rewrite(args []string) {
	options := Options{StateDir: args[0]}
	if len(args) > 1 {
		options.Watchdog = func() (string, []string) {
			command := proctest.Helper("watchdog")
			return command.Path, command.Args
		}
	}
	e := &recovery{options: options}
	if err := e.open(); err != nil {
		panic(err)
	}
	share := &groupState{recovery: e}
	var living []string
	for i := 0; ; i++ {
		if i == 5 {
			proctest.Ready()
		}
		private, err := share.MakeDir()
		if err != nil {
			panic(err)
		}
		if living = append(living, private); i >= 5 {
			if err := errors.Join(os.Remove(living[0]), e.write(journal.Ended(kindDirectory, living[0]))); err != nil {
				panic(err)
			}
			living = living[1:]
		}
		_ = e.journal.Compact()
	}
}

// A sidecar is killed while it compacts its journal. What lived is found, by
// the next sidecar and by the watchdog.
func TestJournal_ADeathWhileItIsCompactedLosesNothing(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"the next sidecar", "the watchdog"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			rounds := 60
			if testing.Short() {
				rounds = 10
			}
			for range rounds {
				dir := proctest.StateDir(t)
				command := proctest.Helper("rewrite", dir)
				if by == "the watchdog" {
					command = proctest.Helper("rewrite", dir, "watched")
				}
				proctest.StartReady(command)
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond) // the round tests a random moment of death
				_ = command.Process.Kill()
				_ = command.Wait()
				if by == "the next sidecar" {
					if err := Sweep(proctest.Soon(t), dir); err != nil {
						t.Error(err)
					}
				}
				mustBeEmpty(t, dir, by == "the watchdog")
			}
			t.Logf("%d rounds", rounds)
		})
	}
}

// mustBeEmpty waits until a state directory holds nothing but what a sweep
// removes at once. A watchdog does not know files that are still under a
// temporary name.
func mustBeEmpty(t *testing.T, dir string, unnamed bool) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(proctest.Timeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		left = nil
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if !unnamed || !strings.HasPrefix(entry.Name(), journal.UnnamedPrefix) ||
				strings.HasSuffix(entry.Name(), journal.Suffix) {
				left = append(left, entry.Name())
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Fatalf("left: %q", left)
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

func TestMakeDir_GoesWithItsGroup(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
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
	journals, _ := filepath.Glob(filepath.Join(dir, "*"+journal.Suffix))
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
	if proctest.Exist(private) {
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

// The watchdog outlasts the signals that end a process group. It ends when it
// is told to, and carries out the journal when the stream ends without that.
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
