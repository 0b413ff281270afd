//go:build unix

package usersocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Listen makes a socket with a name in a private directory just below the state
// directory. The caller removes the directory. The socket has its name once it
// listens: a process that is refused there finds one that nobody listens on any
// more.
func Listen(dir, name string) (*net.UnixListener, error) {
	path := filepath.Join(dir, name)
	made := path + ".new"
	short, done, err := address(made)
	if err != nil {
		return nil, err
	}
	defer done()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // the directory goes
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// Dial connects to a socket with a name of a process of this user. It is closed
// again if it is not at such a place, or if the peer is another user's process or
// in a session. pid is the peer's process id, if it is known.
func Dial(stateDir, path, name string, end time.Time) (c *net.UnixConn, pid int, err error) {
	if err := check(stateDir, path, name); err != nil {
		return nil, 0, err
	}
	short, done, err := address(path)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	raw, err := (&net.Dialer{Deadline: end}).Dial("unix", short)
	if err != nil {
		return nil, 0, err
	}
	c = raw.(*net.UnixConn)
	if pid, err = Peer(c); err != nil {
		c.Close()
		return nil, pid, err
	}
	return c, pid, nil
}

// check refuses a path at which somebody else than a process of the user outside
// sessions may listen: any that is not in a private directory just below the
// state directory.
func check(stateDir, path, name string) error {
	dir := filepath.Dir(path)
	if stateDir == "" || path != filepath.Clean(path) || filepath.Base(path) != name || filepath.Dir(dir) != stateDir {
		return errors.New("not a socket of a sidecar of this user")
	}
	for _, file := range []struct {
		path string
		kind os.FileMode
	}{{stateDir, os.ModeDir}, {dir, os.ModeDir}, {path, os.ModeSocket}} {
		info, err := fsguard.Lstat(file.path)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || info.Mode().Type() != file.kind || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%s: not private to this user", file.path)
		}
	}
	return nil
}

// Peer returns the process id of the process at the other end. The error means
// that it is another user's process, or in a session.
func Peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who peer
	if controlErr := raw.Control(func(fd uintptr) { who, err = peerOf(int(fd)) }); controlErr != nil || err != nil {
		return 0, errors.Join(controlErr, err)
	}
	free := who.free()
	if who.uid != os.Geteuid() {
		return 0, fmt.Errorf("the peer is a process of user %d", who.uid)
	}
	return who.pid, free
}
