package signaldomain

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/reserve"
)

// A signal domain is a Landlock domain whose only rule is that no process in it
// can signal a process outside (LANDLOCK_SCOPE_SIGNAL, Linux 6.12). Inside,
// kill(-1) kills exactly the processes of the domain, and is atomic with
// respect to fork. docs/design/signal-domain.md has the reasons.
//
//	subreaper                leader                              domain killer
//	socket, start ──────► mount; enter the signal domain
//	                      start (as the subreaper's child) ────► prove the signal domain by a signal to the subreaper
//	     ◄─────────────────────────────────────────────────── its process id
//	                      (confine itself) ◄───────────────── "in domain", end of stream
//	                      prove that the domain killer cannot be signalled; execute the session's program
//	end of stream ──────────────────────────────────────────► kill every process in the signal domain, and end

// socketFD is the leader's end of the socket, in the leader and in the domain
// killer.
const socketFD = 4

// errEnded is about a domain killer that has ended before it was ready.
var errEnded = errors.New("the domain killer has ended: too few processes (ulimit -u, pids.max) or memory")

// Domain is a leader that has entered a signal domain, and not executed its
// program yet.
type Domain struct {
	domainKiller int
	ready        *os.File
}

// Enter puts the calling thread into a signal domain, with everything that the
// thread starts and executes from then on. A leader calls it once, if its group
// was told to use a signal domain: after it has mounted and before it is
// confined. The thread cannot gain privileges any more (no_new_privs). The
// goroutine must keep its thread.
func Enter() (*Domain, error) {
	unix.CloseOnExec(socketFD)
	defer unix.Close(socketFD)
	if err := Restrict(); err != nil {
		return nil, fmt.Errorf("enter signal domain: %w", err)
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, ready.Close())
	}
	defer null.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"sandbox-sidecar", "domain-killer"}, &syscall.ProcAttr{
		Dir: "/", Env: reserve.SmallRuntime,
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd(), socketFD},
		// The session's program must not find a child that it has not started.
		Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_PARENT},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start domain killer: %w", err), ready.Close())
	}
	return &Domain{domainKiller: pid, ready: ready}, nil
}

// Confirm waits until the domain killer is ready, and proves that the calling
// thread cannot signal it. The thread must have been confined.
func (e *Domain) Confirm() error {
	defer e.ready.Close()
	report, err := io.ReadAll(e.ready)
	switch {
	case err != nil:
		return fmt.Errorf("wait for domain killer: %w", err)
	case len(report) == 0: // its runtime reports to nobody why it has no threads
		return fmt.Errorf("enter signal domain: %w", errEnded)
	case string(report) != inDomain:
		return fmt.Errorf("enter signal domain: domain killer reports %q", report)
	}
	if err := unix.Kill(e.domainKiller, 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("enter signal domain: the session could signal its domain killer (%w)",
			errors.Join(err, unix.ENOTSUP))
	}
	return nil
}

// Restrict puts this thread into a Landlock domain that confines signals
// (LANDLOCK_SCOPE_SIGNAL, Linux 6.12) and nothing else.
func Restrict() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	ruleset, err := ll.LandlockCreateRuleset(
		&ll.RulesetAttr{HandledAccessFS: ll.AccessFSRefer, Scoped: ll.ScopeSignal}, 0)
	if err != nil {
		return fmt.Errorf("create ruleset: %w", err)
	}
	defer unix.Close(ruleset)
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /: %w", err)
	}
	defer unix.Close(root)
	everywhere := ll.PathBeneathAttr{AllowedAccess: ll.AccessFSRefer, ParentFd: root}
	if err := ll.LandlockAddPathBeneathRule(ruleset, &everywhere, 0); err != nil {
		return fmt.Errorf("add rule: %w", err)
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("enforce ruleset: %w", err)
	}
	return nil
}
