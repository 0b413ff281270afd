//go:build linux

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

var linkActions = map[string]action{
	"symlink": two(unix.Symlink),
	"link":    two(unix.Link),
	"rename":  two(unix.Rename),
	"tmpfile": two(tmpfile),
	"exchange": two(func(a, b string) error {
		return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	}),
}

// tmpfile makes a file without a name in a directory, writes to it, and gives
// it a name that may lie elsewhere.
func tmpfile(dir, name string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("planted")); err != nil {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}
