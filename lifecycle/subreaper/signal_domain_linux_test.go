package subreaper

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/signaldomain"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func init() {
	proctest.Helpers["domain"] = func(args []string) { panic(enterDomainAndExecute(signaldomain.Restrict, args)) }
	// A leader without any other confinement can signal its domain killer. That
	// must be noticed.
	proctest.Helpers["domain only"] = func(args []string) {
		panic(enterDomainAndExecute(func() error { return nil }, args))
	}
}

// enterDomainAndExecute does what a stage does.
func enterDomainAndExecute(confine func() error, argv []string) error {
	runtime.LockOSThread()
	domain, err := signaldomain.Enter()
	if err == nil {
		err = confine()
	}
	if err == nil {
		err = domain.Confirm()
	}
	if err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// inSignalDomain makes a helper the leader of a session that enters a signal
// domain.
func inSignalDomain(command *exec.Cmd) *exec.Cmd { return proctest.Helper("domain", command.Args...) }

// newDomainGroup is a group whose leader enters a signal domain.
func newDomainGroup(t *testing.T, k *Factory) *Group {
	t.Helper()
	if k.DomainProblem != nil {
		harness.Skip(t, "signal_domains", k.DomainProblem.Error())
	}
	group := k.NewGroup(nil)
	if !group.UseSignalDomain() {
		t.Fatal("the group is not in a signal domain")
	}
	t.Cleanup(func() {
		if _, err := group.Kill(proctest.Soon(t)); err != nil {
			t.Error(err)
		}
		if err := group.Close(); err != nil {
			t.Error(err)
		}
	})
	return group
}

// One call kills the processes in a signal domain, however fast they fork, and
// no other process of the same user.
func TestSubreaper_KillsADomainByOneCall(t *testing.T) {
	t.Parallel()
	k := testSubreapers(t)
	bystander := proctest.Helper("wait")
	bystander.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	}()
	all := 0
	for range 5 {
		group := newDomainGroup(t, k)
		pids := proctest.StartIn(t, group.Start,
			inSignalDomain(proctest.Helper("respawn", "100000", "100000", "setsid")))
		domainKiller := domainKillerOf(t, group)
		killed, err := group.Kill(proctest.Soon(t))
		if err != nil {
			t.Error(err)
		}
		all += killed // a chain that is between two processes is not counted
		proctest.MustBeGone(t, append(pids, domainKiller))
	}
	if all == 0 {
		t.Error("no process was killed")
	}
	if !proctest.Running(bystander.Process.Pid) {
		t.Error("a process outside was killed")
	}
}

// A domain killer that somebody has stopped ends with its session.
func TestSubreaper_EndsAStoppedDomainKiller(t *testing.T) {
	t.Parallel()
	group := newDomainGroup(t, testSubreapers(t))
	pids := proctest.StartIn(t, group.Start, inSignalDomain(proctest.Helper("tree", "1")))
	domainKiller := domainKillerOf(t, group)
	harness.Stop(t, domainKiller)
	if _, err := group.Kill(proctest.Soon(t)); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, append(pids, domainKiller))
}

// domainKillerOf finds the domain killer beside a session.
func domainKillerOf(t *testing.T, group *Group) int {
	t.Helper()
	table, err := proc.Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range table {
		if entry.Parent == group.subreaper.PID && entry.Session == entry.PID && entry.PID != group.leader.PID {
			command, _ := os.ReadFile("/proc/" + strconv.Itoa(entry.PID) + "/cmdline")
			if strings.HasSuffix(string(command), "\x00domain-killer\x00") {
				return entry.PID
			}
		}
	}
	t.Fatal("the session has no domain killer")
	return 0
}

// The domain killer alone is enough: when the subreaper is killed, no other
// process searches for what is left. Without a domain killer, a chain survives.
func TestDomainKiller_EndsTheSessionOfASubreaperThatIsKilled(t *testing.T) {
	t.Parallel()
	for _, inDomain := range []bool{true, false} {
		k := testSubreapers(t)
		until := filepath.Join(t.TempDir(), "until")
		if err := os.WriteFile(until, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		group, command := newSubreaperGroup(t), proctest.Helper("respawn", "100000", "100000", "setsid", until)
		if inDomain {
			group, command = newDomainGroup(t, k),
				inSignalDomain(proctest.Helper("respawn", "100000", "100000", "setsid"))
		}
		alive, err := startChain(group, command)
		if err != nil {
			t.Fatal(err)
		}
		defer alive.Close()
		group.closing.Store(true)
		if err := unix.Kill(group.subreaper.PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-group.gone
		if !inDomain {
			if err := awaitEnd(alive, 200*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the chain is dead without a blow, so this shows nothing: %v", err)
			}
			if err := os.Remove(until); err != nil {
				t.Fatal(err)
			}
		}
		if err := awaitEnd(alive, proctest.Timeout); err != nil {
			t.Errorf("inDomain %t: somebody is left: %v", inDomain, err)
		}
	}
}

// startChain starts a chain whose links hold a pipe open. Its end tells that no
// link is left.
func startChain(group *Group, command *exec.Cmd) (alive *os.File, err error) {
	alive, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer end.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer output.Close()
	process, err := group.Start(command.Path, command.Args,
		&os.ProcAttr{Files: []*os.File{null, outputEnd, end}, Sys: &syscall.SysProcAttr{Setsid: true}})
	outputEnd.Close()
	if err != nil {
		return nil, err
	}
	proctest.ReadReady(output)
	_, err = process.Wait(false) // the first link has started the second
	return alive, err
}

func awaitEnd(alive *os.File, within time.Duration) error {
	if err := alive.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	var b [64]byte
	for {
		switch n, err := alive.Read(b[:]); {
		case n > 0: // output of a link that cannot start another
		case errors.Is(err, os.ErrDeadlineExceeded):
			return err
		default:
			return nil
		}
	}
}

// A session whose domain killer is killed, which only a process outside can do,
// is ended.
func TestSubreaper_EndsASessionWithoutItsDomainKiller(t *testing.T) {
	t.Parallel()
	group := newDomainGroup(t, testSubreapers(t))
	pids := proctest.StartIn(t, group.Start, inSignalDomain(proctest.Helper("daemon")))
	if err := unix.Kill(domainKillerOf(t, group), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	proctest.MustBeGone(t, pids)
}

// A leader that can signal its domain killer does not execute its program.
func TestSignalDomain_ProvesThatItsKillerCannotBeSignalled(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"domain": 0, "domain only": 2} {
		group := newDomainGroup(t, testSubreapers(t))
		command := proctest.Helper(name, "/bin/true")
		process, err := group.Start(command.Path, command.Args,
			&os.ProcAttr{Files: []*os.File{nil, nil, nil}, Sys: &syscall.SysProcAttr{Setsid: true}})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := process.Wait(false); err != nil || status.ExitStatus() != want {
			t.Errorf("%s: %v, %v", name, status, err)
		}
	}
}

// Every Landlock domain denies links and renames between directories, unless it
// allows them explicitly.
func TestSignalDomain_DoesNotRestrictRenamesAndLinks(t *testing.T) {
	t.Parallel()
	group := newDomainGroup(t, testSubreapers(t))
	command := proctest.Helper("domain", "/bin/sh", "-c",
		"mkdir a b && : >a/x && ln a/x b/y && ln -s x a/z && ln b/y a/again")
	process, err := group.Start(command.Path, command.Args,
		&os.ProcAttr{Dir: t.TempDir(), Files: []*os.File{nil, nil, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := process.Wait(false); err != nil || status.ExitStatus() != 0 {
		t.Errorf("%v, %v", status, err)
	}
}
