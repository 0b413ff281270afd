package lifecycle

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// enclosed is what a killer says that has proved to be in an enclosure; anything else is why it is not.
const enclosed = "enclosed"

// killerReadyFD is the pipe in the killer on which it says that.
const killerReadyFD = 3

// RunKiller is a killer's whole life: it waits for the end of its socket's stream and kills everybody in its enclosure, which nobody
// outruns. So it does when its keeper is killed. It returns the exit status.
func RunKiller() int {
	unix.CloseOnExec(killerReadyFD)
	keeper := os.Getppid()
	err := proveEnclosure(keeper)
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

// proveEnclosure returns nil where this process is in an enclosure, and its keeper is not. Outside of one, a killer would end everybody there
// is. It goes by a signal that nothing else would refuse.
func proveEnclosure(keeper int) error {
	user, err := realUser(keeper)
	if err != nil {
		return fmt.Errorf("find user of keeper: %w", err)
	}
	if user != os.Geteuid() { // who has the same may signal it; see kill(2)
		return fmt.Errorf("the keeper is user %d's, and the killer %d's", user, os.Geteuid())
	}
	if err := unix.Kill(keeper, 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the keeper can be signalled (%w)", errors.Join(err, unix.ENOTSUP))
	}
	return nil
}

// realUser is the real user id of a process; see proc_pid_status(5).
func realUser(pid int) (int, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if fields := strings.Fields(string(line)); len(fields) > 1 && fields[0] == "Uid:" {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, errors.New("the kernel does not tell")
}

// killer is what a keeper has of the killer of its session. The zero value has none.
type killer struct {
	conn *os.File // its end closed, the killer strikes; nil where there is none, or it was told to
	pid  int      // 0 until it was met
}

// open makes the socket, and returns the leader's end.
func (k *killer) open() (*os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	k.conn = os.NewFile(uintptr(fds[0]), "killer")
	return os.NewFile(uintptr(fds[1]), "leader"), nil
}

// meet learns which process the killer is. It has said so before anything of its session ran.
func (k *killer) meet() {
	if k.conn == nil || k.pid != 0 {
		return
	}
	var said [20]byte
	if n, _, err := unix.Recvfrom(int(k.conn.Fd()), said[:], unix.MSG_DONTWAIT); err == nil {
		k.pid, _ = strconv.Atoi(string(said[:n]))
	}
}

// strike has everybody in the enclosure killed, and the killer end. It returns at once.
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

// tryEnclosure proves that sessions can be enclosed here: a process encloses itself and cannot signal its parent any more.
func tryEnclosure() error {
	keeper := os.Getppid()
	if err := unix.Kill(keeper, 0); err != nil {
		return fmt.Errorf("signal the parent, to begin with: %w", err)
	}
	if err := enterEnclosure(); err != nil {
		return err
	}
	return proveEnclosure(keeper)
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
