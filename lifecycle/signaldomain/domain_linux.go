package signaldomain

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// An signal domain is a Landlock domain of which all that is said is that
// nobody in it can signal anybody outside (LANDLOCK_SCOPE_SIGNAL, Linux 6.12).
// Who is in it may kill "everybody", which is everybody in it. The kernel does
// so under a lock that each fork takes too (kill_something_info in
// kernel/signal.c, copy_process in kernel/fork.c): either the child is there to
// be killed, or its parent is killed before there is one. So no process can
// outrun it, as it can outrun one that looks for it in /proc.
//
// Every domain denies renaming and linking between directories
// (LANDLOCK_ACCESS_FS_REFER) unless it says otherwise, and one that says
// anything about files denies mounting. The leader therefore enters a signal
// domain when it has mounted what it wants, and the one who kills is started
// there:
//
//	subreaper                leader                              domain killer
//	socket, start ──────► mount; enter the signal domain
//	                      start (as the subreaper's child) ────► prove the signal domain by a signal to the subreaper
//	     ◄─────────────────────────────────────────────────── its process id
//	                      (confine itself) ◄───────────────── "in domain", end of stream
//	                      prove that the domain killer cannot be signalled; execute the session's program
//	end of stream ──────────────────────────────────────────► kill everybody in the signal domain, and end

// domainFD is the leader's end of the socket, in the leader and in the
// domain killer.
const socketFD = 4

// SignalDomain is a leader that has put itself into a signal domain, and not
// executed its program yet.
type Domain struct {
	domainKiller int
	ready        *os.File
}

// EnterSignalDomain puts the calling thread into a signal domain, and with it
// what the thread starts and executes from then on. It is for the leader of a
// group whose UseSignalDomain was called, once: before it is confined and after
// it has mounted. Privileges cannot be gained from then on (no_new_privs). The
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
		Dir: "/", Env: proc.SmallRuntime,
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd(), socketFD},
		// The session's program is not to find a child that it never had.
		Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_PARENT},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start domain killer: %w", err), ready.Close())
	}
	return &Domain{domainKiller: pid, ready: ready}, nil
}

// Confirm waits until the domain killer stands, and proves that the calling
// thread, which must have been confined, can do nothing to it.
func (e *Domain) Confirm() error {
	defer e.ready.Close()
	said, err := io.ReadAll(e.ready)
	switch {
	case err != nil:
		return fmt.Errorf("wait for domain killer: %w", err)
	case string(said) != inDomain:
		return fmt.Errorf("enter signal domain: the domain killer says %q", said)
	}
	if err := unix.Kill(e.domainKiller, 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("enter signal domain: its domain killer can be signalled (%w)", errors.Join(err, unix.ENOTSUP))
	}
	return nil
}

func Restrict() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER, Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Offsetof(attr.Quiet_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("create ruleset: %w", errno)
	}
	defer unix.Close(int(ruleset))
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /: %w", err)
	}
	defer unix.Close(root)
	everywhere := unix.LandlockPathBeneathAttr{Allowed_access: unix.LANDLOCK_ACCESS_FS_REFER, Parent_fd: int32(root)}
	_, _, errno = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&everywhere)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("add rule: %w", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("enforce ruleset: %w", errno)
	}
	return nil
}
