package signaldomain

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// inDomain is the report of a domain killer that has proved to be in a signal
// domain. Any other text is why it is not.
const inDomain = "in domain"

// readyFD is the pipe in the domain killer on which it reports.
const readyFD = 3

// RunDomainKiller is a domain killer's whole life. It waits for the end of its
// socket's stream, which also comes if the subreaper is killed. Then it kills
// every process in its signal domain. It returns the exit status.
func RunDomainKiller() int {
	unix.CloseOnExec(readyFD)
	err := proveDomain(socketFD)
	if err == nil {
		_, err = unix.Write(socketFD, strconv.AppendInt(nil, int64(os.Getpid()), 10))
	}
	report := inDomain
	if err != nil {
		report = err.Error()
	}
	_, reportErr := unix.Write(readyFD, []byte(report))
	unix.Close(readyFD)
	if err != nil || reportErr != nil {
		return 1
	}
	var nothing [1]byte
	for {
		if _, err := unix.Read(socketFD, nothing[:]); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = unix.Kill(-1, unix.SIGKILL) // ESRCH if none is left
	return 0
}

// proveDomain returns nil if this process is in a signal domain, and its
// parent, which has made the socket, is outside. Without a domain, the domain
// killer would kill every process of the user. The proof is a signal that only
// a domain refuses: both are the same user's; see kill(2). The socket tells the
// parent's user. /proc may not: with hidepid, a process sees none outside its
// own Landlock domain or user namespace there.
func proveDomain(socket int) error {
	parent, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("find user of subreaper: %w", err)
	}
	if int(parent.Uid) != os.Geteuid() {
		return fmt.Errorf("the subreaper has user %d, the domain killer %d", parent.Uid, os.Geteuid())
	}
	if err := unix.Kill(os.Getppid(), 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the subreaper can be signalled (%w)", errors.Join(err, unix.ENOTSUP))
	}
	if int(parent.Pid) != os.Getppid() { // checked last: it lived until now
		return fmt.Errorf("the subreaper was process %d, but the parent is %d", parent.Pid, os.Getppid())
	}
	return nil
}

// oneUser makes sure that the real user is the effective one. Sockets report
// the effective user, and signals also depend on the real one.
func oneUser() error {
	if real, effective := os.Getuid(), os.Geteuid(); real != effective {
		return fmt.Errorf("effective user %d differs from real user %d", effective, real)
	}
	return nil
}

// Killer is a subreaper's handle on the domain killer of its session. The zero
// value has none.
type Killer struct {
	conn *os.File // closing it tells the domain killer to kill; nil if there is none, or after Kill
	pid  int      // 0 until it is known

	ended bool // it was waited for
}

// Open makes the socket, and returns the leader's end.
func (k *Killer) Open() (*os.File, error) {
	if err := oneUser(); err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	k.conn = os.NewFile(uintptr(fds[0]), "domain-killer")
	return os.NewFile(uintptr(fds[1]), "leader"), nil
}

// learnPID reads the domain killer's process id, which it sent before any
// program of the session ran.
func (k *Killer) learnPID() {
	if k.conn == nil || k.pid != 0 {
		return
	}
	var report [20]byte
	if n, _, err := unix.Recvfrom(int(k.conn.Fd()), report[:], unix.MSG_DONTWAIT); err == nil {
		k.pid, _ = strconv.Atoi(string(report[:n]))
	}
}

// Kill has every process in the signal domain killed, and the domain killer
// end, also if somebody has stopped it. It returns at once.
func (k *Killer) Kill() {
	if k.conn != nil {
		k.learnPID()
		k.conn.Close()
		k.conn = nil
		k.signal(unix.SIGCONT)
	}
}

// GiveUp kills the domain killer itself, once no other process of the session is
// left: one that is stopped again and again would never end.
func (k *Killer) GiveUp() { k.signal(unix.SIGKILL) }

// Ended says that a child was waited for. If it is the domain killer, its number
// is not used any more.
func (k *Killer) Ended(pid int) {
	if k.Is(pid) {
		k.ended = true
	}
}

func (k *Killer) signal(signal unix.Signal) {
	if k.pid > 0 && !k.ended {
		_ = unix.Kill(k.pid, signal)
	}
}

// Unasked reports whether a child is the domain killer, and was not told to
// kill.
func (k *Killer) Unasked(pid int) bool { return k.Is(pid) && k.conn != nil }

// Is reports whether a child is the domain killer.
func (k *Killer) Is(pid int) bool {
	k.learnPID()
	return k.pid == pid
}

// Try proves that sessions can use signal domains here: this process enters one
// and cannot signal its parent any more. The socket is one that the parent has
// made.
func Try(socket int) error {
	if err := oneUser(); err != nil {
		return err
	}
	if err := unix.Kill(os.Getppid(), 0); err != nil {
		return fmt.Errorf("signal the parent before entering: %w", err)
	}
	if err := Restrict(); err != nil {
		return err
	}
	return proveDomain(socket)
}

// PassSocket gives a leader its end of the domain killer's socket, in place of
// whatever it had there.
func PassSocket(attr *syscall.ProcAttr, end *os.File) {
	for len(attr.Files) <= socketFD {
		attr.Files = append(attr.Files, ^uintptr(0)) // closed
	}
	attr.Files[socketFD] = end.Fd()
}
