package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// enclosure is a Landlock domain of which all that is said is that nobody in it can signal anybody outside (LANDLOCK_SCOPE_SIGNAL,
// Linux 6.12). The thread that enters it may then kill "everybody", which is everybody in it. The kernel does so under a lock that each
// fork takes too (kill_something_info in kernel/signal.c, copy_process in kernel/fork.c): either the child is there to be killed, or
// its parent is killed before there is one. So no process can outrun it, as it can outrun one that looks for it in /proc.
//
// Every domain denies renaming and linking between directories (LANDLOCK_ACCESS_FS_REFER) unless it says otherwise, and one that says anything
// about files denies mounting. Whoever is enclosed can therefore rename as before, and not mount.
type enclosure struct {
	thread int // 0 where there is none
}

// enter puts the calling thread into an enclosure, for good, and with it what it starts from then on. It must be the main thread, and stay
// the goroutine's. Privileges cannot be gained in it (no_new_privs). It is proved by a signal to the parent, which must be outside.
func (e *enclosure) enter() error {
	if unix.Gettid() != os.Getpid() {
		return errors.New("not the main thread")
	}
	outside := os.Getppid()
	if err := unix.Kill(outside, 0); err != nil {
		return fmt.Errorf("signal the parent, to begin with: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_REFER, Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0)
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
	_, _, errno = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&everywhere)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("add rule: %w", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("enforce ruleset: %w", errno)
	}
	if err := unix.Kill(outside, 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the parent can still be signalled (%w)", errors.Join(err, unix.ENOTSUP))
	}
	e.thread = unix.Gettid()
	return nil
}

// kill ends everybody in the enclosure but this process, if it has one. From any other thread it would end everybody there is.
func (e *enclosure) kill() {
	if e.thread != 0 && e.thread == unix.Gettid() {
		_ = unix.Kill(-1, unix.SIGKILL) // ESRCH where nobody is
	}
}
