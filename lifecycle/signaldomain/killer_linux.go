package signaldomain

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// inDomain is what a domain killer says that has proved to be in a signal
// domain; anything else is why it is not.
const inDomain = "in domain"

// domainReadyFD is the pipe in the domain killer on which it says that.
const readyFD = 3

// RunDomainKiller is a domain killer's whole life: it waits for the end of its
// socket's stream and kills everybody in its signal domain, which nobody
// outruns. So it does when its subreaper is killed. It returns the exit status.
func RunDomainKiller() int {
	unix.CloseOnExec(readyFD)
	err := proveDomain(socketFD)
	if err == nil {
		_, err = unix.Write(socketFD, strconv.AppendInt(nil, int64(os.Getpid()), 10))
	}
	said := inDomain
	if err != nil {
		said = err.Error()
	}
	_, told := unix.Write(readyFD, []byte(said))
	unix.Close(readyFD)
	if err != nil || told != nil {
		return 1
	}
	var nothing [1]byte
	for {
		if _, err := unix.Read(socketFD, nothing[:]); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = unix.Kill(-1, unix.SIGKILL) // ESRCH where nobody is left
	return 0
}

// proveDomain returns nil where this process is in a signal domain, and its
// parent, who has made the socket, is not. Outside of one, a domain killer
// would end everybody there is. It goes by a signal that nothing else would
// refuse: who has the same user may send it; see kill(2). What user the parent
// is, the socket tells. /proc does not where it hides processes (hidepid):
// nobody sees one that is outside of his own domain there, nor one that is
// outside of his own user namespace.
func proveDomain(socket int) error {
	parent, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("find user of subreaper: %w", err)
	}
	if int(parent.Uid) != os.Geteuid() {
		return fmt.Errorf("the subreaper is user %d's, and the domain killer %d's", parent.Uid, os.Geteuid())
	}
	if err := unix.Kill(os.Getppid(), 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the subreaper can be signalled (%w)", errors.Join(err, unix.ENOTSUP))
	}
	if int(parent.Pid) != os.Getppid() { // asked last: it was there until now
		return fmt.Errorf("the subreaper was process %d, and the parent is %d", parent.Pid, os.Getppid())
	}
	return nil
}

// oneUser makes sure that this process is of the user that its sockets tell of:
// they know the effective one, and signals go by the real one too.
func oneUser() error {
	if real, effective := os.Getuid(), os.Geteuid(); real != effective {
		return fmt.Errorf("the process acts as user %d for user %d", effective, real)
	}
	return nil
}

// domain killer is what a subreaper has of the domain killer of its session.
// The zero value has none.
type Killer struct {
	conn *os.File // its end closed, the domain killer strikes; nil where there is none, or it was told to
	pid  int      // 0 until it was met
}

// open makes the socket, and returns the leader's end.
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

// meet learns which process the domain killer is. It has said so before
// anything of its session ran.
func (k *Killer) learnPID() {
	if k.conn == nil || k.pid != 0 {
		return
	}
	var said [20]byte
	if n, _, err := unix.Recvfrom(int(k.conn.Fd()), said[:], unix.MSG_DONTWAIT); err == nil {
		k.pid, _ = strconv.Atoi(string(said[:n]))
	}
}

// strike has everybody in the signal domain killed, and the domain killer end.
// It returns at once.
func (k *Killer) Kill() {
	if k.conn != nil {
		k.learnPID()
		k.conn.Close()
		k.conn = nil
	}
}

// Unasked reports whether a child is the domain killer and was not told to kill.
func (k *Killer) Unasked(pid int) bool { return k.Is(pid) && k.conn != nil }

// is reports whether a child is the domain killer.
func (k *Killer) Is(pid int) bool {
	k.learnPID()
	return k.pid == pid
}

// tryDomain proves that sessions can use a signal domain here: a process enters
// one itself and cannot signal its parent any more.
func Try(socket int) error {
	if err := oneUser(); err != nil {
		return err
	}
	if err := unix.Kill(os.Getppid(), 0); err != nil {
		return fmt.Errorf("signal the parent, to begin with: %w", err)
	}
	if err := Restrict(); err != nil {
		return err
	}
	return proveDomain(socket)
}

// passDomainSocket gives a leader its end of the domain killer's socket.
func PassSocket(attr *syscall.ProcAttr, end *os.File) error {
	if len(attr.Files) > socketFD {
		return errors.New("start a leader that is in a signal domain: it has too many descriptors")
	}
	for len(attr.Files) < socketFD {
		attr.Files = append(attr.Files, ^uintptr(0)) // closed
	}
	attr.Files = append(attr.Files, end.Fd())
	return nil
}
