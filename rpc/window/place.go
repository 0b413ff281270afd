//go:build unix

package window

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// name is that of the socket in its directory.
const name = "window"

// check refuses a path at which somebody else than a sidecar of the user may
// listen: any that is not in a private directory just below the state directory.
func check(stateDir, path string) error {
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

// checkPeer refuses a peer that is another user's process, or in a session.
func checkPeer(c *net.UnixConn) (peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, err
	}
	var who peer
	if controlErr := raw.Control(func(fd uintptr) { who, err = peerOf(int(fd)) }); controlErr != nil || err != nil {
		return peer{}, errors.Join(controlErr, err)
	}
	if who.uid != os.Geteuid() {
		return peer{}, fmt.Errorf("the peer is a process of user %d", who.uid)
	}
	return who, who.free()
}

// peer is the process at the other end.
type peer struct{ uid, pid int }
