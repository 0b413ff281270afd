//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

var selfActions = map[string]action{
	"environ":     func([]string) error { return showList("/proc/self/environ") },
	"cmdline":     func([]string) error { return showList("/proc/self/cmdline") },
	"descriptors": descriptors,
	"cgroup":      func([]string) error { return show(unix.AT_FDCWD, "/proc/self/cgroup", 0) },
}

// showList prints a file of NUL-terminated entries, one quoted entry on each
// line.
func showList(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		fmt.Printf("entry %q\n", entry)
	}
	return nil
}

// maxDescriptor bounds the search of descriptors.
const maxDescriptor = 4096

// descriptors prints the descriptors above stderr that this process has
// inherited. It tries each number, because listing /proc/self/fd would open
// one.
func descriptors([]string) error {
	for fd := 3; fd < maxDescriptor; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		switch {
		case errors.Is(err, unix.EBADF):
			continue
		case err != nil:
			return err
		case flags&unix.FD_CLOEXEC != 0:
			continue // opened by this program's own runtime: an inherited descriptor does not have the flag
		}
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			return err
		}
		fmt.Printf("descriptor %d %s\n", fd, link)
	}
	return nil
}
