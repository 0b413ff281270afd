package subreaper

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

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// newSubreaperGroup makes a group below a subreaper, which must leave nothing
// behind.
func newSubreaperGroup(t *testing.T) *Group {
	t.Helper()
	group := testSubreapers(t).NewGroup(nil)
	t.Cleanup(func() {
		if _, err := group.Kill(proctest.Soon(t)); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := group.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if group.subreaper.PID != 0 && proctest.Running(group.subreaper.PID) {
			t.Errorf("the subreaper %d is still there", group.subreaper.PID)
		}
		if killed, err := group.Kill(proctest.Soon(t)); killed != 0 || err != nil {
			t.Errorf("killing a closed group: %d, %v", killed, err)
		}
	})
	return group
}

// A subreaper that has not started the leader in time, or answers nonsense, may
// live on, and nobody reads what it reports. The group can be ended all the
// same: otherwise it would linger, with its directory and its record in the
// journal, as long as the sidecar lives.
func TestSubreaper_ThatDoesNotStartTheLeaderIsEnded(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	group.command = func() (path string, argv []string) {
		return "/bin/sh", []string{"sh", "-c", "echo nonsense >&3; cat <&3 >/dev/null"}
	}
	command := proctest.Helper("wait")
	if _, err := group.Start(command.Path, command.Args, &os.ProcAttr{}); err == nil {
		t.Fatal("a leader was started")
	}
	begun := time.Now()
	if killed, err := group.Kill(proctest.Soon(t)); killed != 0 || err != nil {
		t.Errorf("killed %d: %v", killed, err)
	}
	t.Logf("%d ms", time.Since(begun).Milliseconds())
}

// output starts a helper with a function like os.StartProcess and returns its
// output, without what differs between processes.
func output(t *testing.T, start func(string, []string, *os.ProcAttr) (proc.Process, error), attr *os.ProcAttr) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	attr.Files = append(attr.Files, write, nil, write)
	command := proctest.Helper("describe", "bytes that are no text: \xff\xfe")
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
	dir := proctest.StateDir(t)
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
			with, without := output(t, newSubreaperGroup(t).Start, null()), output(t, proc.Start, null())
			if with != without || !strings.Contains(with, "descriptor 3 pipe") || !strings.Contains(with, `\xff`) {
				t.Errorf("with a subreaper:\n%s\nwithout:\n%s", with, without)
			}
		})
	}
}

// An editor that was started by nohup(1) ignores the hang-up, and so do its
// children, with or without a subreaper.
func TestSubreaper_IgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	path, argv := command()
	k := testSubreapers(t)
	k.command = func() (string, []string) {
		return "/bin/sh", []string{"sh", "-c", `trap "" HUP TSTP; exec "$0" "$@"`, path, argv[1]}
	}
	group := k.NewGroup(nil)
	printed := output(t, group.Start, &os.ProcAttr{Files: []*os.File{nil}, Sys: &syscall.SysProcAttr{Setsid: true}})
	ignored := regexp.MustCompile(`SigIgn:\t([0-9a-f]{16})\n`).FindStringSubmatch(printed)
	if ignored == nil {
		t.Fatalf("the leader reports:\n%s", printed)
	}
	// The tests may have been started with other ignored signals.
	const both = 1<<(unix.SIGHUP-1) | 1<<(unix.SIGTSTP-1)
	if mask, err := strconv.ParseUint(ignored[1], 16, 64); err != nil || mask&both != both {
		t.Errorf("the leader reports:\n%s", printed)
	}
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}

func TestSubreaper_ReportsWhyALeaderCannotBeStarted(t *testing.T) {
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
	if _, err := Open(func() (string, []string) {
		return "/bin/true", []string{"true"}
	}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a subreaper that is none is taken for one")
	}
	if _, err := Open(nil, nil); err == nil {
		t.Error("no subreaper is taken for one")
	}
}

func TestSubreaper_ReportsStopsAndEnds(t *testing.T) {
	t.Parallel()
	process, gate, output, err := proctest.Start(newSubreaperGroup(t).Start, proctest.Helper("tree", "1"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	gate.Close()
	proctest.ReadReady(output)
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

// Each kind of process that escapes other mechanisms is found. Processes that
// have ended by themselves are not counted.
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
			pids := proctest.StartIn(t, group.Start, proctest.Helper(test.command[0], test.command[1:]...))
			if test.stop {
				for _, pid := range pids {
					harness.Stop(t, pid)
				}
			}
			if name == "daemon" || name == "is ended" {
				harness.Eventually(t, "the leader has ended", func() bool { return !proctest.Running(pids[0]) })
			}
			start := time.Now()
			killed, err := group.Kill(proctest.Soon(t))
			t.Logf("killed %d in %s", killed, time.Since(start))
			if err != nil || killed < test.least {
				t.Errorf("killed %d, expected %d or more: %v", killed, test.least, err)
			}
			if name == "is ended" && killed != 0 {
				t.Errorf("killed %d of an empty group", killed)
			}
			proctest.MustBeGone(t, pids)
			if children := below(t, group.subreaper.PID); len(children) > 0 {
				t.Errorf("below the subreaper are %v", children)
			}
			if killed, err := group.Kill(proctest.Soon(t)); killed != 0 || err != nil {
				t.Errorf("a second kill killed %d: %v", killed, err)
			}
		})
	}
}

// below lists the descendants of a process.
func below(t *testing.T, pid int) []proc.ID {
	t.Helper()
	table, err := proc.Table()
	if err != nil {
		t.Fatal(err)
	}
	return proc.Living(proc.Descendants(table, func(entry proc.Entry) bool { return entry.Parent == pid }))
}

// A subreaper learns of its sidecar's death by the end of the socket alone.
func TestSubreaper_EndsItsSessionWhenTheSidecarDies(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	pids := proctest.StartIn(t, group.Start, proctest.Helper("daemon"))
	pids = append(pids, group.subreaper.PID)
	group.closing.Store(true) // a dead sidecar logs nothing about it
	group.conn.file.Close()
	harness.Eventually(t, "the session and its subreaper are gone", func() bool {
		for _, pid := range pids {
			if proctest.Running(pid) {
				return false
			}
		}
		return true
	})
}

func TestSubreaper_IsContinuedIfItWasStopped(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "3"))
	if err := unix.Kill(group.subreaper.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if killed, err := group.Kill(proctest.Soon(t)); killed != len(pids) || err != nil {
		t.Errorf("killed %d of %d: %v", killed, len(pids), err)
	}
	proctest.MustBeGone(t, pids)
}

func TestSubreaper_IsBypassedIfItDoesNotAnswer(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "3"))
	// It is stopped again whenever it is continued.
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Kill(group.subreaper.PID, unix.SIGSTOP)
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := group.Kill(ctx)
	close(stop)
	<-stopped
	if err != nil && !errors.Is(err, proc.ErrSurvivors) {
		t.Error(err)
	}
	if _, err := group.Kill(proctest.Soon(t)); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, pids)
}

// A session without its subreaper is ended: the leader dies with it, and the
// processes with the session id are found.
func TestSubreaper_ItsDeathEndsTheSession(t *testing.T) {
	t.Parallel()
	k := testSubreapers(t)
	var log bytes.Buffer
	k.log = slog.New(slog.NewTextHandler(&log, nil))
	group := k.NewGroup(nil)
	process, gate, output, err := proctest.Start(group.Start, proctest.Helper("tree", "3"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	gate.Close()
	pids := append([]int{process.PID()}, proctest.ReadReady(output)...)
	ended := make(chan syscall.WaitStatus, 1)
	go func() {
		status, _ := process.Wait(false)
		ended <- status
	}()
	if err := unix.Kill(group.subreaper.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if status := <-ended; !status.Signaled() || status.Signal() != unix.SIGKILL || proctest.Running(pids[0]) {
		t.Errorf("the leader: %#x, and it runs: %t", status, proctest.Running(pids[0]))
	}
	if !strings.Contains(log.String(), "subreaper of a session has died") {
		t.Errorf("the log is %q", log.String())
	}
	if killed, err := group.Kill(proctest.Soon(t)); killed != 3 || err != nil {
		t.Errorf("killed %d: %v", killed, err)
	}
	proctest.MustBeGone(t, pids)
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}

// Every session has a subreaper, so it must be small.
func TestSubreaper_IsSmall(t *testing.T) {
	t.Parallel()
	group := newSubreaperGroup(t)
	proctest.StartIn(t, group.Start, proctest.Helper("wait"))
	status, err := os.ReadFile("/proc/" + strconv.Itoa(group.subreaper.PID) + "/status")
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

func TestSubreaper_ListsDescendantsWithAndWithoutTheKernelsLists(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("tree", "3")
	pids := proctest.StartReady(command)
	t.Cleanup(func() { _ = command.Wait() })
	k := &subreaper{}
	for name, list := range map[string]func() ([]proc.Entry, error){"lists": k.below, "table": k.belowByTable} {
		found, err := list()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		below := map[int]proc.Entry{}
		for _, entry := range found {
			below[entry.PID] = entry
		}
		for _, pid := range pids {
			if entry, ok := below[pid]; !ok || entry.Dead || entry.Birth == 0 {
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
