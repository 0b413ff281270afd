//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// withFuse mounts a FUSE file system on a directory, sends its descriptor over
// the socket that is descriptor 3, and becomes another program. It needs a
// mount namespace of its own and the right to mount in it. The other program
// keeps that right only as root.
func withFuse(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%w: no directory, or no program", errMisuse)
	}
	runtime.LockOSThread() // ambient capabilities belong to the thread
	const socket = 3
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", device, os.Getuid(), os.Getgid())
	if err := unix.Mount("hangs", args[0], "fuse.hangs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(device), nil, 0); err != nil {
		return err
	}
	unix.Close(socket)
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec(args[1], args[1:], os.Environ())
}
