//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A tracer is a reaper that stops every process of the sidecar's own program at
// each system call (ptrace(2)), counts these steps, and kills at one of them.
// It begins on SIGUSR1 or at the start. A program that the sidecar executes for
// the user is not traced further. The tracer prints "armed", and at its end
// "steps=N".
type tracer struct {
	program string // the sidecar's binary
	sidecar int
	target  target
	at      int // the step at which to kill; 0: none

	steps  int
	dead   bool // the sidecar is
	status int
}

// target is which process is killed at a step, and whose steps count.
type target string

const (
	targetStart   target = "start"   // the sidecar, at any process's step from its own start on
	targetSidecar target = "sidecar" // the sidecar, at any process's step
	targetBoth    target = "both"    // the sidecar and its watchdog, at any process's step
	// the process that takes the step, if it is not the sidecar: a stage, the
	// watchdog, or a process that will become either
	targetHelper   target = "helper"
	targetWatchdog target = "watchdog" // the process that takes a step when the sidecar is dead
)

// idle are system calls whose effect no other process can see: whether a
// process dies before or after one makes no difference. A step is any other
// call. Closing is idle because dying closes.
var idle = []uint64{
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_EPOLL_PWAIT, unix.SYS_SCHED_YIELD,
	unix.SYS_MADVISE, unix.SYS_MMAP,
	unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN,
	unix.SYS_SIGALTSTACK,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_TGKILL, unix.SYS_SCHED_GETAFFINITY, unix.SYS_RESTART_SYSCALL,
	unix.SYS_PRLIMIT64, unix.SYS_BRK,
	unix.SYS_GETRANDOM, unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_FSTATFS,
	unix.SYS_STATFS, unix.SYS_READLINKAT,
	unix.SYS_GETDENTS64, unix.SYS_LSEEK, unix.SYS_FCNTL, unix.SYS_UNAME, unix.SYS_CLOSE, unix.SYS_GETUID,
	unix.SYS_GETEUID, unix.SYS_PPOLL,
	unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_CREATE1, unix.SYS_EVENTFD2, unix.SYS_PRCTL, unix.SYS_GETSOCKNAME,
	unix.SYS_GETPEERNAME, unix.SYS_GETSOCKOPT,
}

// playTracer runs the role with TARGET STEP PROGRAM COMMAND…. The command leads
// to the program, the sidecar's. If that is traced from its start on, it stops
// itself right before.
func playTracer(args []string) int {
	runtime.LockOSThread() // a process is traced by a thread
	at, err := strconv.Atoi(args[1])
	if err != nil {
		return complain(err)
	}
	armed := make(chan os.Signal, 1)
	signal.Notify(armed, unix.SIGUSR1)
	sidecar, err := startBelow(args[3:])
	if err != nil {
		return complain(err)
	}
	program, err := filepath.EvalSymlinks(args[2])
	if err != nil {
		return complain(err)
	}
	t := &tracer{program: program, sidecar: sidecar, target: target(args[0]), at: at, status: -1}
	if t.target == targetStart {
		if _, err := unix.Wait4(sidecar, nil, unix.WUNTRACED, nil); err != nil {
			return complain(err)
		}
	} else {
		<-armed
	}
	if err := t.arm(); err != nil {
		return complain(err)
	}
	_ = unix.Kill(sidecar, unix.SIGCONT) // it is stopped if it is traced from the start
	fmt.Fprintln(os.Stderr, "armed")
	status := t.watch()
	fmt.Fprintf(os.Stderr, "steps=%d\n", t.steps)
	return status
}

const traceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
	unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL

// arm begins to trace every thread of the sidecar, including those that start
// meanwhile.
func (t *tracer) arm() error {
	seized := map[int]bool{}
	for before := -1; before != len(seized); {
		before = len(seized)
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", t.sidecar))
		if err != nil {
			return err
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || seized[tid] {
				continue
			}
			seized[tid] = true
			err = ptrace(unix.PTRACE_SEIZE, tid, traceOptions)
			switch {
			// ended, or started by one that is already traced
			case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EPERM):
			case err != nil:
				return fmt.Errorf("trace thread %d: %w", tid, err)
			default:
				if err := ptrace(unix.PTRACE_INTERRUPT, tid, 0); err != nil && !errors.Is(err, unix.ESRCH) {
					return fmt.Errorf("stop thread %d: %w", tid, err)
				}
			}
		}
	}
	return nil
}

// watch follows all of them to their ends and returns the sidecar's exit
// status.
func (t *tracer) watch() int {
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return t.status
		case err != nil:
		case status.Exited(), status.Signaled():
			if tid == t.sidecar {
				t.dead, t.status = true, status.ExitStatus()
			}
		case status.Stopped():
			t.goOn(tid, status)
		}
	}
}

// eventStop is PTRACE_EVENT_STOP, which threads report that are traced from
// birth or were interrupted.
const eventStop = 128

// goOn continues a stopped thread as if it were not traced, unless this is the
// step.
func (t *tracer) goOn(tid int, status unix.WaitStatus) {
	deliver := 0
	switch event := int(status) >> 16; {
	case event == unix.PTRACE_EVENT_EXEC:
		if program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", tid)); err != nil || program != t.program {
			_ = ptrace(unix.PTRACE_DETACH, tid, 0)
			return
		}
	case event == eventStop && status.StopSignal() != unix.SIGTRAP:
		_ = ptrace(unix.PTRACE_LISTEN, tid, 0) // a group stop: it stays stopped
		return
	case event != 0:
	case status.StopSignal() == unix.SIGTRAP|0x80:
		t.step(tid)
	default:
		deliver = int(status.StopSignal())
	}
	_ = ptrace(unix.PTRACE_SYSCALL, tid, uintptr(deliver)) // ESRCH: it was killed
}

// step counts a system call at its entry.
func (t *tracer) step(tid int) {
	var info struct {
		op   uint8
		_    [23]byte // architecture, instruction and stack pointer
		nr   uint64
		args [6]uint64
		_    [16]byte
	}
	const getSyscallInfo, entry = 0x420e, 1 // PTRACE_GET_SYSCALL_INFO, Linux 5.3
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(tid), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	newThread := info.nr == unix.SYS_CLONE && info.args[0]&unix.CLONE_THREAD != 0
	if errno != 0 || info.op != entry || slices.Contains(idle, info.nr) || newThread {
		return
	}
	process := groupOf(tid)
	if t.target == targetWatchdog && !t.dead {
		t.dead = !harness.Alive(t.sidecar) // its end may be reported later than that of a quick watchdog
	}
	if t.dead != (t.target == targetWatchdog) || t.target == targetHelper && process == t.sidecar {
		return
	}
	if t.target == targetWatchdog && isSubreaper(process) {
		// Only it knows the processes that have left the session id. So nothing is
		// promised for the death of both.
		return
	}
	if t.steps++; t.steps != t.at {
		return
	}
	switch t.target {
	case targetBoth:
		for pid := range children(t.sidecar) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if slices.Contains(splitArgs(line), "watchdog") {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		_ = unix.Kill(t.sidecar, unix.SIGKILL)
	case targetSidecar, targetStart:
		_ = unix.Kill(t.sidecar, unix.SIGKILL)
	default:
		_ = unix.Kill(process, unix.SIGKILL)
	}
	fmt.Fprintf(os.Stderr, "killed before system call %d of process %d\n", info.nr, process)
}

// underTracer makes a command start below a tracer.
func underTracer(t testing.TB, command *exec.Cmd, wrap func(*exec.Cmd), target target, step int) {
	t.Helper()
	if target == targetStart {
		command.Args = append([]string{"/bin/sh", "-c", `kill -STOP $$; exec "$@"`, "-", command.Path},
			command.Args[1:]...)
		command.Path = "/bin/sh"
	}
	wrap(command)
	inRole(t, command, "tracer", string(target), strconv.Itoa(step), harness.Binary(t))
}

func ptrace(request, tid int, data uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
