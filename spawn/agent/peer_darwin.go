package agent

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer is the user at the other end of a connection.
func peer(c *net.UnixConn) (uid int, err error) {
	err = control(c, func(fd int) error {
		credentials, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if err == nil {
			uid = int(credentials.Uid)
		}
		return err
	})
	return uid, err
}
