package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// enclosed is what a killer says that has proved to be in an enclosure;
// anything else is why it is not.
const enclosed = "enclosed"

// killerReadyFD is the pipe in the killer on which it says that.
const killerReadyFD = 3

// RunKiller is a killer's whole life: it waits for the end of its socket's
// stream and kills everybody in its enclosure, which nobody outruns. So it does
// when its subreaper is killed. It returns the exit status.
func RunKiller() int {
	unix.CloseOnExec(killerReadyFD)
	err := proveEnclosure(enclosureFD)
	if err == nil {
		_, err = unix.Write(enclosureFD, strconv.AppendInt(nil, int64(os.Getpid()), 10))
	}
	said := enclosed
	if err != nil {
		said = err.Error()
	}
	_, told := unix.Write(killerReadyFD, []byte(said))
	unix.Close(killerReadyFD)
	if err != nil || told != nil {
		return 1
	}
	var nothing [1]byte
	for {
		if _, err := unix.Read(enclosureFD, nothing[:]); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = unix.Kill(-1, unix.SIGKILL) // ESRCH where nobody is left
	return 0
}

// proveEnclosure returns nil where this process is in an enclosure, and its
// parent, who has made the socket, is not. Outside of one, a killer would end
// everybody there is. It goes by a signal that nothing else would refuse: who
// has the same user may send it; see kill(2). What user the parent is, the
// socket tells. /proc does not where it hides processes (hidepid): nobody sees
// one that is outside of his own domain there, nor one that is outside of his
// own user namespace.
func proveEnclosure(socket int) error {
	parent, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("find user of subreaper: %w", err)
	}
	if int(parent.Uid) != os.Geteuid() {
		return fmt.Errorf("the subreaper is user %d's, and the killer %d's", parent.Uid, os.Geteuid())
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

// killer is what a subreaper has of the killer of its session. The zero value
// has none.
type killer struct {
	conn *os.File // its end closed, the killer strikes; nil where there is none, or it was told to
	pid  int      // 0 until it was met
}

// open makes the socket, and returns the leader's end.
func (k *killer) open() (*os.File, error) {
	if err := oneUser(); err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	k.conn = os.NewFile(uintptr(fds[0]), "killer")
	return os.NewFile(uintptr(fds[1]), "leader"), nil
}

// meet learns which process the killer is. It has said so before anything of
// its session ran.
func (k *killer) meet() {
	if k.conn == nil || k.pid != 0 {
		return
	}
	var said [20]byte
	if n, _, err := unix.Recvfrom(int(k.conn.Fd()), said[:], unix.MSG_DONTWAIT); err == nil {
		k.pid, _ = strconv.Atoi(string(said[:n]))
	}
}

// strike has everybody in the enclosure killed, and the killer end. It returns
// at once.
func (k *killer) strike() {
	if k.conn != nil {
		k.meet()
		k.conn.Close()
		k.conn = nil
	}
}

// is reports whether a child is the killer.
func (k *killer) is(pid int) bool {
	k.meet()
	return k.pid == pid
}

// tryEnclosure proves that sessions can be enclosed here: a process encloses
// itself and cannot signal its parent any more.
func tryEnclosure() error {
	if err := oneUser(); err != nil {
		return err
	}
	if err := unix.Kill(os.Getppid(), 0); err != nil {
		return fmt.Errorf("signal the parent, to begin with: %w", err)
	}
	if err := enterEnclosure(); err != nil {
		return err
	}
	return proveEnclosure(subreaperFD)
}

// giveEnclosure gives a leader its end of the killer's socket.
func giveEnclosure(attr *syscall.ProcAttr, end *os.File) error {
	if len(attr.Files) > enclosureFD {
		return errors.New("start a leader that is enclosed: it has too many descriptors")
	}
	for len(attr.Files) < enclosureFD {
		attr.Files = append(attr.Files, ^uintptr(0)) // closed
	}
	attr.Files = append(attr.Files, end.Fd())
	return nil
}
