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
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	helpers["leave"] = leave
	helpers["rewrite"] = rewrite
}

// leave is a leader that ends and leaves a process in its session.
func leave([]string) { ready(startReady(helper("wait"))...) }

// forge writes a journal as somebody else might have: these lines, and nothing
// else.
func forge(t *testing.T, dir string, records ...any) string {
	t.Helper()
	var text bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	path := filepath.Join(dir, "forged"+journalSuffix)
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What a journal names by a number is ended only if the number is proved to
// mean the same as when it was written. Each case has a stranger of its own;
// the first of each kind is the control, in which everything is right.
func TestSweep_NeverEndsAStrangerByANumber(t *testing.T) {
	t.Parallel()
	right := Here()
	if right.Boot == "" {
		t.Fatal("this start of the machine is not known")
	}
	otherBoot, otherNamespace, otherInit := right, right, right
	otherBoot.Boot = "00000000-0000-4000-8000-000000000000"
	otherNamespace.PIDNamespace = "pid:[1]"
	otherInit.Init = "987654321"
	unknown := Origin{}
	type scene struct {
		name   string
		origin *Origin
		forge  func(led Session) Session
		leader bool // the stranger's leader lives
		dies   bool
	}
	same := func(led Session) Session { return led }
	scenes := []scene{
		{"leader, all right", &right, same, true, true},
		{"leader, another boot", &otherBoot, same, true, false},
		{"leader, another process id namespace", &otherNamespace, same, true, false},
		{"leader, another process 1", &otherInit, same, true, false},
		{"leader, no origin known", &unknown, same, true, false},
		{"leader, a journal of an older version", nil, same, true, false},
		{"leader, another start time", &right, func(led Session) Session { led.Start = "1"; return led }, true, false},
		{"leader gone, another boot", &otherBoot, same, false, false},
		{"leader gone, another process id namespace", &otherNamespace, same, false, false},
		{"leader gone, a journal of an older version", nil, same, false, false},
		{"leader gone, ancestry unknown", &right, func(led Session) Session { led.Autogroup = ""; return led }, false, false},
	}
	if autogroupID(os.Getpid()) != "" {
		scenes = append(scenes,
			scene{"leader gone, all right", &right, same, false, true},
			scene{"leader gone, another ancestry", &right, func(led Session) Session {
				led.Autogroup = "/autogroup-1000000000"
				return led
			}, false, false},
		)
	}
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir, group := stateDir(t), &sessionGroup{}
			var stranger []int
			if s.leader {
				stranger = startIn(t, group, helper("tree", "2"))
			} else {
				process, gate, output, err := start(group, helper("leave"))
				if err != nil {
					t.Fatal(err)
				}
				gate.Close()
				stranger = readReady(output)
				output.Close()
				if _, err := process.Wait(false); err != nil || len(stranger) != 1 {
					t.Fatalf("the leader has left %v, %v", stranger, err)
				}
			}
			t.Cleanup(func() {
				for _, pid := range stranger {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			})
			path := forge(t, dir, Record{Origin: s.origin}, s.forge(group.session).Record())
			err := Sweep(soon(t), dir)
			if exist(path) {
				t.Error("the journal is left")
			}
			if s.dies {
				if mustBeGone(t, stranger); err != nil {
					t.Error(err)
				}
				return
			}
			for _, pid := range stranger {
				if !running(pid) {
					t.Errorf("process %d of a stranger is gone; the sweep says: %v", pid, err)
				}
			}
			mayBeOurs := s.origin == nil || s.origin == &unknown || s.origin == &otherNamespace || s.origin == &otherInit ||
				s.name == "leader gone, ancestry unknown"
			if told := err != nil && strings.Contains(err.Error(), "left alone"); told != mayBeOurs {
				t.Errorf("the sweep says %v", err)
			}
		})
	}
}

// Whatever stands where a journal would: the sweep is not held up, follows
// nothing, carries out what can be read of a file that is ours, and the next
// journal is made beside it.
func TestSweep_OfWhatIsNoJournal(t *testing.T) {
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
		carried bool // out, and removed
		told    string
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
		}, true, "1 lines make no sense"},
		{"garbage", func(t *testing.T, path, dir string) {
			write(t, path, garbage, []byte("\n"), good(dir))
		}, true, "make no sense"},
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
			dir := stateDir(t)
			private := filepath.Join(dir, "s1")
			if err := os.Mkdir(private, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "1"+journalSuffix)
			test.make(t, path, dir)
			begun := time.Now()
			err := Sweep(soon(t), dir)
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("the sweep took %v", took)
			} else {
				t.Logf("%d ms", took.Milliseconds())
			}
			if exist(private) == test.carried || exist(path) == test.carried {
				t.Errorf("directory there %t, journal there %t", exist(private), exist(path))
			}
			if (err == nil) != (test.told == "") || err != nil && !strings.Contains(err.Error(), test.told) {
				t.Errorf("the sweep says %v", err)
			}
			j, err := newJournal(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := j.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Nothing that a journal of another version lists is ended on a guess. Lines of
// before kinds were named are counted and dropped with their journal, as what
// they name by numbers cannot be proved. A kind that a newer version knows keeps
// the journal, for a sidecar that understands it.
func TestSweep_LeavesAloneWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, line string
		left       bool // the journal
		says       string
	}{
		{"a session of an older version", `{"session":%d,"start":"%s"}`, false, "1 lines make no sense"},
		{"a subreaper of an older version", `{"subreaper":%d,"start":"%s"}`, false, "1 lines make no sense"},
		{"a kind of a newer version", `{"kind":"zone","key":"%d","data":{"start":"%s"}}`, true, "unknown kind \"zone\""},
		{"data of a newer version", `{"kind":"session","key":"%d","data":"since %s"}`, false, "left alone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, group := stateDir(t), &sessionGroup{}
			listed := startIn(t, group, helper("tree", "1"))
			t.Cleanup(func() { _, _ = group.Kill(context.Background()) })
			start, err := startTime(listed[0])
			if err != nil {
				t.Fatal(err)
			}
			origin := Here()
			path := forge(t, dir, Record{Origin: &origin}, json.RawMessage(fmt.Sprintf(test.line, listed[0], start)))
			err = Sweep(soon(t), dir)
			if err == nil || !strings.Contains(err.Error(), test.says) || exist(path) != test.left {
				t.Errorf("the sweep says %v, and the journal is there: %t", err, exist(path))
			}
			for _, pid := range listed {
				if !running(pid) {
					t.Errorf("process %d was ended", pid)
				}
			}
		})
	}
}

// A sweep that is to end leaves a long journal where it is, at once.
func TestSweep_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	path := forge(t, dir, NewRecord(kindDirectory, filepath.Join(dir, "s1"), nil))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := clean(ctx, path, enders); !errors.Is(err, context.Canceled) || !exist(path) {
		t.Errorf("%v, there %t", err, exist(path))
	}
}

// Ten thousand sessions leave a small journal, which still lists what lives.
func TestJournal_IsCompacted(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(dir string) (*journal, error){
		"file": newJournal, "memory": func(string) (*journal, error) { return newMemoryJournal() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := stateDir(t)
			j, err := make(dir)
			if err != nil {
				t.Fatal(err)
			}
			var largest int64
			write := func(r Record) {
				t.Helper()
				if err := j.write(r); err != nil {
					t.Fatal(err)
				}
				info, err := j.file.Stat()
				if err != nil {
					t.Fatal(err)
				}
				largest = max(largest, info.Size())
			}
			write(NewRecord(kindDirectory, "/lives", nil))
			for i := range 10_000 {
				private := fmt.Sprintf("/state/s%012x", i)
				write(NewRecord(kindDirectory, private, nil))
				write(NewRecord("subreaper", strconv.Itoa(2*i+10), Session{Start: "123456"}))
				write(Session{ID: 2*i + 11, Start: "123456", Autogroup: "/autogroup-123456"}.Record())
				write(NewRecord("fingerprint", fmt.Sprint(i), map[string]string{"dir": private}))
				write(NewPart("fingerprint", fmt.Sprint(i), fmt.Sprint(i), map[string]string{"boot": "b"}))
				write(NewPart("fingerprint", fmt.Sprint(i), fmt.Sprint(i+1), map[string]string{"boot": "b"}))
				write(EndedPart("fingerprint", fmt.Sprint(i), fmt.Sprint(i)))
				if i == 5000 {
					continue // this one goes on
				}
				write(Ended("fingerprint", fmt.Sprint(i)))
				write(Ended("subreaper", strconv.Itoa(2*i+10)))
				write(EndedSession(2*i + 11))
				write(Ended(kindDirectory, private))
			}
			read, err := readJournal(soon(t), j.reader)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes at most", largest)
			if largest > 2*leastCompaction {
				t.Errorf("it has grown to %d bytes", largest)
			}
			var got []string
			for _, r := range read.list() {
				line, _ := json.Marshal(r)
				got = append(got, string(line))
			}
			want := []string{
				`{"kind":"directory","key":"/lives"}`, `{"kind":"directory","key":"/state/s000000001388"}`,
				`{"kind":"subreaper","key":"10010","data":{"id":0,"start":"123456"}}`,
				`{"kind":"session","key":"10011","data":{"id":10011,"start":"123456","autogroup":"/autogroup-123456"}}`,
				`{"kind":"fingerprint","key":"5000","data":{"dir":"/state/s000000001388"}}`,
				`{"kind":"fingerprint","key":"5000","part":"5001","data":{"boot":"b"}}`,
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") || read.origin == nil || *read.origin != Here() {
				t.Errorf("it lists, from %v:\n%s", read.origin, strings.Join(got, "\n"))
			}
			if name == "file" && !j.inPlace() {
				t.Error("its name leads to another file")
			}
			if err := j.close(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// rewrite is a sidecar that does nothing but write its journal anew, while
// directories come and go. Its argument is the state directory, and a second
// one gives it a watchdog.
func rewrite(args []string) {
	options := Options{StateDir: args[0]}
	if len(args) > 1 {
		options.Watchdog = func() (string, []string) {
			command := helper("watchdog")
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
			ready()
		}
		private, err := share.MakeDir()
		if err != nil {
			panic(err)
		}
		if living = append(living, private); i >= 5 {
			if err := errors.Join(os.Remove(living[0]), e.write(Ended(kindDirectory, living[0]))); err != nil {
				panic(err)
			}
			living = living[1:]
		}
		_ = e.journal.rewrite(func() error { e.journal.compact(); return nil })
	}
}

// Whenever a sidecar is killed while it compacts its journal: what lived is
// found, by the next sidecar and by the watchdog.
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
				dir := stateDir(t)
				command := helper("rewrite", dir)
				if by == "the watchdog" {
					command = helper("rewrite", dir, "watched")
				}
				startReady(command)
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond) // the moment of death is what the round is about
				_ = command.Process.Kill()
				_ = command.Wait()
				if by == "the next sidecar" {
					if err := Sweep(soon(t), dir); err != nil {
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
// removes at once: a watchdog knows nothing of a file that had no name of its
// own yet.
func mustBeEmpty(t *testing.T, dir string, unnamed bool) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		left = nil
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if !unnamed || !strings.HasPrefix(entry.Name(), newJournalPrefix) || strings.HasSuffix(entry.Name(), journalSuffix) {
				left = append(left, entry.Name())
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Fatalf("left: %q", left)
}

// At each state that the files are in while a journal is compacted, each length
// of the new one included, a sweep finds everything.
func TestJournal_EachStateOfACompactionIsComplete(t *testing.T) {
	t.Parallel()
	for state := 0; ; state++ {
		dir := stateDir(t)
		j, err := newJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		var private []string
		for i := range 3 {
			private = append(private, filepath.Join(dir, fmt.Sprintf("s%d", i)))
			if err := errors.Join(j.write(NewRecord(kindDirectory, private[i], nil)), os.Mkdir(private[i], 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		text, err := j.entries.text()
		if err != nil {
			t.Fatal(err)
		}
		last := state > len(text)
		if last {
			if err := j.begin(dir, j.path); err != nil {
				t.Fatal(err)
			}
		} else {
			made, err := makeJournal(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := made.file.Write(text[:state]); err != nil {
				t.Fatal(err)
			}
			made.close()
		}
		if err := j.leave(); err != nil {
			t.Fatal(err)
		}
		sweepAll(t, dir)
		if last {
			t.Logf("%d states", state+1)
			return
		}
	}
}

// sweepAll sweeps until nothing is left. A process that another test has just
// forked holds a lock of ours for a moment.
func sweepAll(t *testing.T, dir string) {
	t.Helper()
	var left []os.DirEntry
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if err := Sweep(soon(t), dir); err != nil {
			t.Error(err)
		}
		if left, _ = os.ReadDir(dir); len(left) == 0 {
			return
		}
	}
	t.Fatalf("left: %v", left)
}

// A sweep that has opened a journal just before its owner goes on in another
// file gets its lock, and must not take the owner for dead.
func TestSweep_OfAFileThatItsOwnerHasLeft(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	j, err := newJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(dir, "s1")
	if err := errors.Join(j.write(NewRecord(kindDirectory, private, nil)), os.Mkdir(private, 0o700)); err != nil {
		t.Fatal(err)
	}
	opened, err := openJournalFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := j.rewrite(func() error { j.compact(); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := lock(opened, unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("the file before is not locked: an older version would carry it out (%v)", err)
	}
	if names(j.path, opened) {
		t.Error("it was not written anew: this test shows nothing")
	}
	if err := Sweep(soon(t), dir); err != nil || !exist(private) {
		t.Errorf("%v, there %t", err, exist(private))
	}
	if err := j.close(); err != nil {
		t.Error(err)
	}
}

func TestFinishes_DoesNotWaitForWhatHangs(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	begun := time.Now()
	if err := finishes(50*time.Millisecond, func() error {
		<-hang
		return nil
	}); !errors.Is(err, errHangs) || time.Since(begun) > timeout/2 {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	if err := finishes(timeout, func() error { return os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
		t.Error(err)
	}
}
