package subreaper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/reserve"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/signaldomain"
)

// subreaper is the process above a session on machines that allow no cgroup. It
// is a child subreaper (prctl(2), Linux 3.4). Every orphan of the session
// becomes its child, so neither setsid nor a second fork escapes. When it has
// no child any more, no process of the session is left.
type subreaper struct {
	conn     *os.File
	reports  *json.Encoder
	children chan os.Signal // SIGCHLD

	domainKiller signaldomain.Killer
	bereft       bool            // the domain killer has ended without being told to
	idle         int             // how many scans in a row have found no other process
	leader       int             // 0 once it was waited for
	marked       map[int]proc.ID // children about to be killed, until they are waited for

	holding bool      // the session is paused, or about to be
	held    []proc.ID // the processes that were stopped for that
}

// reservedThreads are enough for a subreaper: it does one thing after another.
const reservedThreads = 2

// killTimeout bounds the kill after the sidecar's death.
const killTimeout = time.Minute

// Run is a subreaper's whole life; it returns the exit status. It must be
// called on the main goroutine before anything else was started.
func Run() int {
	complain := func(err error) int {
		fmt.Fprintf(os.Stderr, "sandbox-sidecar: subreaper: %v\n", err)
		return 1
	}
	// The kernel signals the leader when the thread that forked it ends; see
	// start. This thread ends only with the process.
	runtime.LockOSThread()
	if err := outliveSignals(); err != nil {
		return complain(err)
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	inherited, err := ownInheritance()
	if err != nil {
		return complain(err)
	}
	conn := os.NewFile(subreaperFD, "sidecar")
	k := &subreaper{conn: conn, reports: json.NewEncoder(conn), children: children, marked: map[int]proc.ID{}}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		k.refuse("become subreaper", err)
		return 1
	}
	orders := json.NewDecoder(conn)
	var first orderMessage
	if err := orders.Decode(&first); err != nil || first.Start == nil {
		return 0 // the sidecar is gone
	}
	for _, fd := range inherited {
		if fd > subreaperFD && !slices.Contains(first.Start.Files, fd) {
			unix.Close(fd)
		}
	}
	started := k.start(first.Start)
	// A terminal is at its end only when no process outside its session holds
	// it.
	for _, fd := range first.Start.Files {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if !started {
		return 1
	}
	proc.ReserveThreads(reservedThreads) // the leader executes nothing of the session's yet
	k.serve(orders)
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if _, err := k.kill(ctx); err != nil {
		return complain(err)
	}
	return 0
}

// outliveSignals keeps the signals of a terminal or an unconfined session from
// ending or stopping this process. They are handled, not ignored, because the
// leader would inherit ignored signals. Those that are ignored already stay
// ignored for the leader.
func outliveSignals() error {
	handled := make(chan os.Signal, 1)
	for _, number := range []syscall.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGALRM, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU,
	} {
		ignored, err := ignores(number)
		if err != nil {
			return err
		}
		if !ignored {
			signal.Notify(handled, number)
		}
	}
	return nil
}

// ignores reports whether this process ignores a signal. Package signal knows only
// some of those that were ignored before the Go runtime started. It asks the
// kernel: gVisor's /proc/self/status has no such set.
func ignores(number syscall.Signal) (bool, error) {
	var now struct { // struct sigaction of the kernel, in 64-bit programs
		handler, flags, restorer uintptr
		mask                     uint64
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), 0, uintptr(unsafe.Pointer(&now)),
		unsafe.Sizeof(now.mask), 0, 0)
	if errno != 0 {
		return false, fmt.Errorf("find out whether %v is ignored: %w", number, errno)
	}
	const ignore = 1 // SIG_IGN
	return now.handler == ignore, nil
}

// ownInheritance lists the descriptors that this process was started with, and
// makes them close-on-exec: the leader gets its own by number. Descriptors that
// the Go runtime has opened are close-on-exec already, and are not listed.
func ownInheritance() ([]int, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, fmt.Errorf("list descriptors: %w", err)
	}
	var inherited []int
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		unix.CloseOnExec(fd)
		inherited = append(inherited, fd)
	}
	return inherited, nil
}

// refuse reports that there will be no leader, and why.
func (k *subreaper) refuse(attempt string, cause error) {
	var errno syscall.Errno
	if !errors.As(cause, &errno) {
		errno = unix.EIO
	}
	_ = k.reports.Encode(reportMessage{Errno: errno, Attempt: attempt})
}

// start starts the leader. If it fails, it has reported why.
func (k *subreaper) start(s *startOrder) bool {
	attr := &syscall.ProcAttr{Dir: string(s.Dir), Env: stringsOf(s.Env), Sys: s.Sys}
	for _, fd := range s.Files {
		attr.Files = append(attr.Files, uintptr(fd)) // -1 means closed here too
	}
	if s.InDomain {
		end, err := k.domainKiller.Open()
		if err != nil {
			k.refuse("make socket of domain killer", err)
			return false
		}
		defer end.Close()
		signaldomain.PassSocket(attr, end)
	}
	if s.TryDomain {
		if err := signaldomain.Try(subreaperFD); err != nil {
			k.refuse("enter signal domain", err)
			return false
		}
	}
	// If somebody kills this process and the sidecar, nobody is left to end a
	// leader that ignores the hang-up. Then the kernel kills it. That is a
	// second line of defence: the leader's descendants do not inherit it, and a
	// setuid program loses it. In a new process id namespace the runtime's
	// check for a parent that died too early takes every parent for another,
	// and kills the child.
	if s.Sys.Pdeathsig == 0 && s.Sys.Cloneflags&unix.CLONE_NEWPID == 0 {
		s.Sys.Pdeathsig = unix.SIGKILL
	}
	var pid int
	err := reserve.Leave(func() (err error) {
		pid, err = syscall.ForkExec(string(s.Path), stringsOf(s.Argv), attr)
		return err
	})
	if err != nil {
		k.refuse("fork/exec", err)
		return false
	}
	k.leader = pid
	entry, err := proc.Find(pid) // an ended process keeps its entry until it is waited for
	if err != nil {
		k.refuse("find leader", err)
		_ = unix.Kill(pid, unix.SIGKILL)
		return false
	}
	_ = k.reports.Encode(reportMessage{Started: &startedReport{PID: pid, Birth: entry.Birth}})
	return true
}

// serve carries out orders until the sidecar is gone, or the session's domain
// killer, without which the session must not live.
func (k *subreaper) serve(decoder *json.Decoder) {
	orders := make(chan orderMessage)
	go func() {
		defer close(orders)
		for {
			var order orderMessage
			if decoder.Decode(&order) != nil {
				return
			}
			orders <- order
		}
	}()
	for {
		if k.reap(); k.bereft {
			return
		}
		select {
		case <-k.children:
		case order, ok := <-orders:
			switch {
			case !ok:
				return
			case order.Kill != nil:
				k.answer(order.Kill)
			case order.Hold != nil:
				k.carryOutHold(order.Hold)
			case order.Signal != 0 && k.leader != 0:
				_ = unix.Kill(k.leader, order.Signal) // nobody else waits for it, so the number is still its own
			}
		}
	}
}

func (k *subreaper) answer(order *killOrder) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(order.Milliseconds)*time.Millisecond)
	defer cancel()
	count, err := k.kill(ctx)
	result := killedReport{ID: order.ID, Count: count}
	if err != nil {
		result.Left = []int{}
		if survivors, ok := errors.AsType[*proc.Survivors](err); ok {
			result.Left = append(result.Left, survivors.PIDs...)
		}
	}
	_ = k.reports.Encode(reportMessage{Killed: &result})
}

// reap waits for every child that has ended, and reports the leader's end. It
// returns true if there is no child any more. Then there is no descendant
// either: each would have become a child when its parents died.
func (k *subreaper) reap() (none bool) {
	for {
		var status unix.WaitStatus
		// WALL also finds threads that have made this process their tracer
		// (PTRACE_TRACEME), without which their process would never end.
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WUNTRACED|unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return true // ECHILD; the call has no other error
		case pid == 0:
			return false
		default:
			k.changed(pid, syscall.WaitStatus(status))
		}
	}
}

// changed handles a child that has stopped or ended.
func (k *subreaper) changed(pid int, status syscall.WaitStatus) {
	if status.Stopped() {
		if pid == k.leader && !k.holding {
			_ = k.reports.Encode(reportMessage{Stopped: &status})
		}
		return
	}
	delete(k.marked, pid)
	k.bereft = k.bereft || k.domainKiller.Unasked(pid)
	k.domainKiller.Ended(pid)
	if pid == k.leader {
		k.leader = 0
		_ = k.reports.Encode(reportMessage{Ended: &status})
	}
}
