package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// newKept makes a group below a subreaper, which must leave nothing behind.
func newSubreaperGroup(t *testing.T) *subreaperGroup {
	t.Helper()
	group := testSubreapers(t).newGroup(nil)
	t.Cleanup(func() {
		if _, err := group.Kill(soon(t)); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := group.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if group.subreaper.pid != 0 && running(group.subreaper.pid) {
			t.Errorf("the subreaper %d is still there", group.subreaper.pid)
		}
		if killed, err := group.Kill(soon(t)); killed != 0 || err != nil {
			t.Errorf("killing a closed group: %d, %v", killed, err)
		}
	})
	return group
}

// output starts a helper by a function like os.StartProcess and returns what it
// prints, without what differs from one process to the next.
func output(t *testing.T, start func(string, []string, *os.ProcAttr) (Process, error), attr *os.ProcAttr) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	attr.Files = append(attr.Files, write, nil, write)
	command := helper("describe", "bytes that are no text: \xff\xfe")
	process, err := start(command.Path, command.Args, attr)
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := process.Wait(false); err != nil || !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("%v, %v", status, err)
	}
	return regexp.MustCompile(`pipe:\[\d+\]`).ReplaceAllString(string(text), "pipe")
}

func TestSubreaper_LeaderIsStartedAsItIsWithoutOne(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	for name, attr := range map[string]func() *os.ProcAttr{
		"own session": func() *os.ProcAttr {
			return &os.ProcAttr{Dir: dir, Env: []string{"A=\xff", "B="}, Sys: &syscall.SysProcAttr{Setsid: true}}
		},
		"own group": func() *os.ProcAttr {
			return &os.ProcAttr{Env: []string{}, Sys: &syscall.SysProcAttr{Setpgid: true}}
		},
		"the caller's environs": func() *os.ProcAttr { return &os.ProcAttr{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			null := func() *os.ProcAttr {
				file, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { file.Close() })
				a := attr()
				a.Files = []*os.File{file}
				return a
			}
			with, without := output(t, newSubreaperGroup(t).Start, null()), output(t, Start, null())
			if with != without || !strings.Contains(with, "descriptor 3 pipe") || !strings.Contains(with, `\xff`) {
				t.Errorf("with a subreaper:\n%s\nwithout:\n%s", with, without)
			}
		})
	}
}

// An editor that was started by nohup(1) ignores the hang-up, and so do its
// children: with a subreaper, too.
func TestSubreaper_IgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	path, argv := subreaperCommand()
	k := testSubreapers(t)
	k.command = func() (string, []string) {
		return "/bin/sh", []string{"sh", "-c", `trap "" HUP TSTP; exec "$0" "$@"`, path, argv[1]}
	}
	group := k.newGroup(nil)
	printed := output(t, group.Start, &os.ProcAttr{Files: []*os.File{nil}, Sys: &syscall.SysProcAttr{Setsid: true}})
	ignored := regexp.MustCompile(`SigIgn:\t([0-9a-f]{16})\n`).FindStringSubmatch(printed)
	if ignored == nil {
		t.Fatalf("the leader says:\n%s", printed)
	}
	// Whoever started the tests may ignore others, too.
	const both = 1<<(unix.SIGHUP-1) | 1<<(unix.SIGTSTP-1)
	if mask, err := strconv.ParseUint(ignored[1], 16, 64); err != nil || mask&both != both {
		t.Errorf("the leader says:\n%s", printed)
	}
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}

func TestSubreaper_SaysWhyALeaderCannotBeStarted(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]error{"/no/such/program": unix.ENOENT, "/": unix.EACCES} {
		group := newSubreaperGroup(t)
		_, err := group.Start(path, []string{path}, &os.ProcAttr{})
		var failed *os.PathError
		if !errors.Is(err, want) || !errors.As(err, &failed) || failed.Path != path {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := group.Start(path, []string{path}, &os.ProcAttr{}); err == nil {
			t.Errorf("%s: a group has started twice", path)
		}
	}
	if _, err := openSubreapers(func() (string, []string) {
		return "/bin/true", []string{"true"}
	}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a subreaper that is none is taken for one")
	}
	if _, err := openSubreapers(nil, nil); err == nil {
		t.Error("no subreaper is taken for one")
	}
}

func TestSubreaper_TellsOfStopsAndEnds(t *testing.T) {
	t.Parallel()
	process, gate, output, err := start(newSubreaperGroup(t), helper("tree", "1"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	gate.Close()
	readReady(output)
	if err := process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if status, err := process.Wait(true); err != nil || !status.Stopped() || status.StopSignal() != unix.SIGSTOP {
		t.Errorf("%#x, %v", status, err)
	}
	if err := process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status, err := process.Wait(true); err != nil || !status.Signaled() || status.Signal() != unix.SIGKILL {
		t.Errorf("%#x, %v", status, err)
	}
	if err := process.Signal(unix.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signalling what has ended: %v", err)
	}
}

// Each kind of process that is known to survive elsewhere is found, and those
// that have ended by themselves are not counted.
func TestSubreaper_KillsEverythingBelow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		command []string
		stop    bool
		least   int
	}{
		"leader":   {command: []string{"wait"}, least: 1},
		"tree":     {command: []string{"tree", "40"}, least: 41},
		"stopped":  {command: []string{"tree", "3"}, stop: true, least: 4},
		"headless": {command: []string{"headless"}, least: 1},
		"daemon":   {command: []string{"daemon"}, least: 1},
		"daemons":  {command: []string{"many", "10"}},
		"respawn":  {command: []string{"respawn", "400", "400", "setsid"}},
		"hoppers":  {command: []string{"hop", "8"}, least: 1},
		"is ended": {command: []string{"exit", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := newSubreaperGroup(t)
			pids := startIn(t, group, helper(test.command[0], test.command[1:]...))
			if test.stop {
				for _, pid := range pids {
					if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
						t.Fatal(err)
					}
				}
			}
			if name == "daemon" || name == "is ended" {
				harness.Eventually(t, "the leader has ended", func() bool { return !running(pids[0]) })
			}
			begun := time.Now()
			killed, err := group.Kill(soon(t))
			t.Logf("killed %d in %s", killed, time.Since(begun))
			if err != nil || killed < test.least {
				t.Errorf("killed %d, expected %d or more: %v", killed, test.least, err)
			}
			if name == "is ended" && killed != 0 {
				t.Errorf("killed %d of nobody", killed)
			}
			mustBeGone(t, pids)
			if children := below(t, group.subreaper.pid); len(children) > 0 {
				t.Errorf("below the subreaper are %v", children)
			}
			if killed, err := group.Kill(soon(t)); killed != 0 || err != nil {
				t.Errorf("a second kill killed %d: %v", killed, err)
			}
		})
	}
}

// below lists a process's descendants.
func below(t *testing.T, pid int) []processID {
	t.Helper()
	table, err := processTable()
	if err != nil {
		t.Fatal(err)
	}
	return living(descendants(table, func(entry processEntry) bool { return entry.parent == pid }))
}

// The end of the socket is all that a subreaper needs to know of its sidecar's
// death.
func TestSubreaper_EndsItsSessionWhenTheSidecarDies(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	pids := startIn(t, group, helper("daemon"))
	pids = append(pids, group.subreaper.pid)
	group.closing.Store(true) // a dead sidecar does not complain of it
	group.conn.file.Close()
	harness.Eventually(t, "the session and its subreaper are gone", func() bool {
		for _, pid := range pids {
			if running(pid) {
				return false
			}
		}
		return true
	})
}

func TestSubreaper_ThatIsStoppedIsNotInTheWay(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	pids := startIn(t, group, helper("tree", "3"))
	if err := unix.Kill(group.subreaper.pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if killed, err := group.Kill(soon(t)); killed != len(pids) || err != nil {
		t.Errorf("killed %d of %d: %v", killed, len(pids), err)
	}
	mustBeGone(t, pids)
}

func TestSubreaper_ThatIgnoresUsIsGoneAround(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	pids := startIn(t, group, helper("tree", "3"))
	// Stopped again whenever it is continued.
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Kill(group.subreaper.pid, unix.SIGSTOP)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := group.Kill(ctx)
	close(stop)
	<-stopped
	if err != nil && !errors.Is(err, ErrSurvivors) {
		t.Error(err)
	}
	if _, err := group.Kill(soon(t)); err != nil {
		t.Error(err)
	}
	mustBeGone(t, pids)
}

// Without its subreaper a session is ended: its leader dies with it, and what
// has kept the session id is found.
func TestSubreaper_ThatDiesTakesItsSessionWithIt(t *testing.T) {
	t.Parallel()
	k := testSubreapers(t)
	var log bytes.Buffer
	k.log = slog.New(slog.NewTextHandler(&log, nil))
	group := k.newGroup(nil)
	process, gate, output, err := start(group, helper("tree", "3"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	gate.Close()
	pids := append([]int{process.PID()}, readReady(output)...)
	ended := make(chan syscall.WaitStatus, 1)
	go func() {
		status, _ := process.Wait(false)
		ended <- status
	}()
	if err := unix.Kill(group.subreaper.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := <-ended; !status.Signaled() || status.Signal() != unix.SIGKILL || running(pids[0]) {
		t.Errorf("the leader: %#x, and it runs: %t", status, running(pids[0]))
	}
	if !strings.Contains(log.String(), "subreaper of a session has died") {
		t.Errorf("the log says %q", log.String())
	}
	if killed, err := group.Kill(soon(t)); killed != 3 || err != nil {
		t.Errorf("killed %d: %v", killed, err)
	}
	mustBeGone(t, pids)
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}

// A dead sidecar's subreaper that was stopped is continued by the sweep, and
// one that was killed with its sidecar leaves the session id.
func TestSweep_EndsWhatSubreapersHold(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(*subreaperGroup) error{
		"stopped": func(g *subreaperGroup) error { return unix.Kill(g.subreaper.pid, unix.SIGSTOP) },
		"killed":  func(g *subreaperGroup) error { return unix.Kill(g.subreaper.pid, unix.SIGKILL) },
		"alive":   func(*subreaperGroup) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := stateDir(t)
			tracker := &Tracker{reason: errors.New("none for this test"), recovery: recovery{options: Options{StateDir: dir}},
				subreapers: testSubreapers(t)}
			made, err := tracker.NewGroup("g")
			if err != nil {
				t.Fatal(err)
			}
			group := made.(*subreapedGroup).subreaperGroup
			pids := startIn(t, group, helper("tree", "3"))
			if err := does(group); err != nil {
				t.Fatal(err)
			}
			// The sidecar dies.
			group.closing.Store(true)
			group.conn.file.Close()
			tracker.recovery.journal.file.Close()
			// A child that another test forks just now shares the journal's
			// lock until it execs.
			harness.Eventually(t, "the journal is carried out", func() bool {
				if err := Sweep(soon(t), dir); err != nil {
					t.Fatal(err)
				}
				left, _ := os.ReadDir(dir)
				return len(left) == 0
			})
			mustBeGone(t, append(pids, group.subreaper.pid))
			<-group.gone
		})
	}
}

// Who has left the session id is known as long as the subreaper lives, and
// found again when somebody kills that in the middle of its work.
func TestEndMembers_FindsWhatASubreaperHasHeld(t *testing.T) {
	t.Parallel()
	k := testSubreapers(t)
	group := k.newGroup(nil)
	pids := startIn(t, group, helper("daemon"))
	members, err := membersBelow(group.subreaper)
	if err != nil {
		t.Fatal(err)
	}
	group.closing.Store(true)
	if err := unix.Kill(group.subreaper.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-group.gone
	orphan := pids[len(pids)-1]
	if !running(orphan) {
		t.Fatal("the daemon is dead already: this test shows nothing")
	}
	if err := endMembers(soon(t), members); err != nil {
		t.Error(err)
	}
	mustBeGone(t, pids)
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}

func TestTracker_KeepsSessionsWhereNoCgroupCanBeMade(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	tracker := &Tracker{reason: errors.New("read-only file system"), recovery: recovery{options: Options{StateDir: dir}}}
	tracker.subreapers = testSubreapers(t)
	group, err := tracker.NewGroup("g")
	if err != nil {
		t.Fatal(err)
	}
	got := group.Tracking()
	if got != tracker.Tracking() || got.Mechanism != MechanismSubreaper || got.Guarantee ||
		!strings.Contains(got.Detail, "read-only file system") || got.Fix == "" {
		t.Errorf("tracking is %+v", got)
	}
	if inDomain := got.InSignalDomain(); !inDomain.Guarantee || inDomain.Fix != "" ||
		inDomain.Mechanism != MechanismSubreaper {
		t.Errorf("in a signal domain: %+v", inDomain)
	}
	pids := startIn(t, group, helper("daemon"))
	if err := tracker.Close(); err != nil {
		t.Error(err)
	}
	mustBeGone(t, pids)
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left in the state directory: %v", left)
	}
}

// A subreaper stands beside every session, so it must be small.
func TestSubreaper_IsSmall(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	startIn(t, group, helper("wait"))
	status, err := os.ReadFile("/proc/" + strconv.Itoa(group.subreaper.pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kilobytes, err := strconv.Atoi(strings.Fields(value)[0])
			if t.Logf("RssAnon %d kB", kilobytes); err != nil || kilobytes > 20<<10 {
				t.Errorf("a subreaper holds %d kB: %v", kilobytes, err)
			}
		}
	}
}

func TestSubreaper_FindsWhatIsBelowWithAndWithoutTheKernelsLists(t *testing.T) {
	t.Parallel()
	command := helper("tree", "3")
	pids := startReady(command)
	t.Cleanup(func() { _ = command.Wait() })
	k := &subreaper{}
	for name, list := range map[string]func() ([]processEntry, error){"lists": k.below, "table": k.belowByTable} {
		found, err := list()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		below := map[int]processEntry{}
		for _, entry := range found {
			below[entry.pid] = entry
		}
		for _, pid := range pids {
			if entry, ok := below[pid]; !ok || entry.dead || entry.birth == 0 {
				t.Errorf("%s: process %d is %+v", name, pid, entry)
			}
		}
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}
