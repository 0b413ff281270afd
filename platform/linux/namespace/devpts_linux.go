package namespace

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

const (
	// TerminalDir is where a devpts is mounted.
	TerminalDir = "/dev/pts"
	ptmx        = "/dev/ptmx"
)

// setTerminals mounts a devpts of the session's own on /dev/pts and opens the
// session's terminal there. If the session inherits a terminal instead, that
// one keeps its name. If it cannot keep it, the shared devpts stays mounted,
// and the result says why.
func (r *Result) setTerminals(terminal *handshake.Terminal) error {
	devpts, err := newDevpts()
	if err != nil {
		return err
	}
	defer unix.Close(devpts)
	var inherited *inheritedTerminal
	if terminal == nil {
		if inherited, err = inheritTerminal(devpts); err != nil {
			r.NoTerminals = err.Error()
			return nil
		}
	}
	if err := unix.MoveMount(devpts, "", unix.AT_FDCWD, TerminalDir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount devpts: on %s: %w", TerminalDir, err)
	}
	switch {
	case terminal != nil:
		master, err := openTerminal(devpts, terminal)
		if err != nil {
			return err
		}
		r.Passed = append(r.Passed, handshake.PassedFile{Kind: handshake.PassedTerminal, FD: master})
	case inherited != nil:
		if err := inherited.mount(devpts); err != nil {
			return err
		}
		r.Passed = append(r.Passed, handshake.PassedFile{Kind: handshake.PassedHeld, FD: inherited.master})
	}
	r.Terminals = true
	return ensureOwnPTMX(devpts)
}

// newDevpts makes a devpts that is not mounted on a path yet. Each is a separate
// instance (Documentation/filesystems/devpts.rst, Linux 4.7).
func newDevpts() (int, error) {
	context, err := unix.Fsopen("devpts", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make devpts: %w", err)
	}
	defer unix.Close(context)
	for _, option := range [][2]string{{"mode", "620"}, {"ptmxmode", "666"}} {
		if err := unix.FsconfigSetString(context, option[0], option[1]); err != nil {
			return -1, fmt.Errorf("make devpts: option %s: %w", option[0], err)
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, fmt.Errorf("make devpts: %w", err)
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make devpts: %w", err)
	}
	return fd, nil
}

// openMaster opens a new terminal in a devpts and returns its master.
func openMaster(devpts int) (int, error) {
	// Non-blocking: the sidecar gets it, and polls many at once.
	master, err := unix.Openat(devpts, "ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a terminal: %w", err)
	}
	return master, nil
}

// openPeer opens the slave of a master without its path (TIOCGPTPEER,
// ioctl_tty(2)).
func openPeer(master int) (int, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, fmt.Errorf("unlock terminal: %w", err)
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, fmt.Errorf("open slave of terminal: %w", errno)
	}
	return int(fd), nil
}

// openTerminal opens a terminal, makes it the controlling terminal and the
// standard streams of this process, and returns the master.
func openTerminal(devpts int, terminal *handshake.Terminal) (int, error) {
	master, slave, err := newTerminal(devpts, *terminal)
	if err != nil {
		return -1, err
	}
	defer unix.Close(slave)
	if err := unix.IoctlSetInt(slave, unix.TIOCSCTTY, 0); err != nil {
		return -1, fmt.Errorf("make terminal the controlling one: %w", err)
	}
	streams := []int{0, 1, 2}
	if terminal.NoInput {
		streams = streams[1:]
	}
	for _, fd := range streams {
		if err := unix.Dup3(slave, fd, 0); err != nil {
			return -1, fmt.Errorf("make terminal %s: %w", StreamNames[fd], err)
		}
	}
	return master, nil
}

// OpenTerminal opens another terminal of the session's own devpts, from inside.
func OpenTerminal(terminal handshake.Terminal) (master, slave int, err error) {
	devpts, err := unix.Open(TerminalDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("open %s: %w", TerminalDir, err)
	}
	defer unix.Close(devpts)
	return newTerminal(devpts, terminal)
}

// newTerminal opens both ends of a new terminal in a devpts.
func newTerminal(devpts int, terminal handshake.Terminal) (master, slave int, err error) {
	if master, err = openMaster(devpts); err != nil {
		return -1, -1, err
	}
	if slave, err = openPeer(master); err == nil {
		if err = prepare(master, slave, terminal); err == nil {
			return master, slave, nil
		}
		unix.Close(slave)
	}
	unix.Close(master)
	return -1, -1, err
}

// prepare sets the size of a terminal, and has it know that text is UTF-8.
func prepare(master, slave int, terminal handshake.Terminal) error {
	if err := unix.IoctlSetWinsize(master, unix.TIOCSWINSZ,
		&unix.Winsize{Col: terminal.Cols, Row: terminal.Rows}); err != nil {
		return fmt.Errorf("set size of terminal: %w", err)
	}
	termios, err := unix.IoctlGetTermios(slave, unix.TCGETS)
	if err == nil {
		termios.Iflag |= unix.IUTF8 // backspace erases a whole character
		err = unix.IoctlSetTermios(slave, unix.TCSETS, termios)
	}
	if err != nil {
		return fmt.Errorf("set terminal attributes: %w", err)
	}
	return nil
}

// ensureOwnPTMX makes /dev/ptmx open terminals of the session's own devpts. The
// usual device node does so already: the kernel uses the devpts in the pts
// directory beside it. A container may have bound the ptmx of its own devpts
// there; then the session's is mounted over it.
func ensureOwnPTMX(devpts int) error {
	err := provePTMX(devpts)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	node, err := unix.OpenTree(devpts, "ptmx", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open ptmx: %w", err)
	}
	defer unix.Close(node)
	if err := unix.MoveMount(node, "", unix.AT_FDCWD, ptmx, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount ptmx: on %s: %w", ptmx, err)
	}
	return provePTMX(devpts)
}

var errOtherDevpts = errors.New("it opens terminals of another devpts")

// provePTMX opens a terminal by /dev/ptmx and returns an error unless it is in
// the devpts.
func provePTMX(devpts int) error {
	master, err := unix.Open(ptmx, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", ptmx, err)
	}
	defer unix.Close(master)
	peer, err := openPeer(master)
	if err != nil {
		return err
	}
	defer unix.Close(peer)
	var own, got unix.Stat_t
	if err := errors.Join(unix.Fstat(devpts, &own), unix.Fstat(peer, &got)); err != nil {
		return err
	}
	if own.Dev != got.Dev {
		return fmt.Errorf("open %s: %w", ptmx, errOtherDevpts)
	}
	return nil
}

// IsTerminal reports whether a descriptor is a terminal.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// inheritedTerminal is a terminal of the shared devpts that the session runs
// on. Programs find a terminal's name by its number in /dev/pts (ttyname(3)), so
// it must have that number in the session's own devpts too.
type inheritedTerminal struct {
	number int
	node   int // the terminal, as a mount that is not on a path yet
	master int // keeps the number reserved in the session's devpts
}

// maxInherited bounds the number of a terminal that can be inherited: each
// number below it costs an open terminal for a moment.
const maxInherited = 512

// inheritTerminal prepares the first standard stream that is a terminal of
// /dev/pts. It returns nil if there is none.
func inheritTerminal(devpts int) (*inheritedTerminal, error) {
	number, found := sharedTerminal()
	if !found {
		return nil, nil
	}
	node, err := unix.OpenTree(unix.AT_FDCWD, TerminalDir+"/"+strconv.Itoa(number),
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return nil, fmt.Errorf("open terminal %d: %w", number, err)
	}
	// The tree is read-only by now. Programs change the mode of their terminal
	// (mesg, tmux), which is no grant of the shared devpts.
	if err := unix.MountSetattr(node, "", unix.AT_EMPTY_PATH,
		&unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil && !errors.Is(err, unix.EPERM) {
		unix.Close(node)
		return nil, fmt.Errorf("make terminal %d writable: %w", number, err)
	}
	t := &inheritedTerminal{number: number, node: node}
	if t.master, err = takeNumber(devpts, number); err != nil {
		unix.Close(node)
		return nil, err
	}
	return t, nil
}

// sharedTerminal returns the number of the first standard stream that is a
// terminal of /dev/pts.
func sharedTerminal() (number int, found bool) {
	// Each major number has 256 terminals (Documentation/admin-guide/devices.txt).
	const unix98Major, unix98Majors = 136, 8
	for fd := range StreamNames {
		var stream, named unix.Stat_t
		if !IsTerminal(fd) || unix.Fstat(fd, &stream) != nil {
			continue
		}
		rdev := uint64(stream.Rdev) //nolint:unconvert // narrower on some architectures
		major, minor := unix.Major(rdev), unix.Minor(rdev)
		if major < unix98Major || major >= unix98Major+unix98Majors {
			continue
		}
		number := int(major-unix98Major)<<8 + int(minor)
		err := unix.Lstat(TerminalDir+"/"+strconv.Itoa(number), &named)
		if err == nil && named.Dev == stream.Dev && named.Ino == stream.Ino {
			return number, true
		}
	}
	return 0, false
}

// takeNumber opens terminals of a devpts until one has the wanted number, and
// returns that master. A devpts gives out its lowest free number.
func takeNumber(devpts, number int) (int, error) {
	if number > maxInherited {
		return -1, fmt.Errorf("the number of the terminal, %d, is above %d", number, maxInherited)
	}
	for range number + 1 {
		master, err := openMaster(devpts)
		if err != nil {
			return -1, err
		}
		got, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
		if err != nil {
			return -1, fmt.Errorf("read terminal's number: %w", err)
		}
		if got == number {
			return master, nil
		}
		defer unix.Close(master)
	}
	return -1, fmt.Errorf("no new terminal got the number %d", number)
}

// mount mounts the terminal under its number in the session's devpts.
func (t *inheritedTerminal) mount(devpts int) error {
	defer unix.Close(t.node)
	if err := unix.MoveMount(t.node, "", devpts, strconv.Itoa(t.number), unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount terminal: on %s/%d: %w", TerminalDir, t.number, err)
	}
	return nil
}
