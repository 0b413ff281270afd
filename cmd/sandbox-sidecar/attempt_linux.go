package main

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// abstractSockets says that sockets can have names that are no paths.
const abstractSockets = true

// systemAttempts are those of this system alone.
var systemAttempts = map[string]func(argument string) error{
	"limit": func(pid string) error {
		return withPID(pid, func(pid int) error {
			var limit unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &limit); err != nil {
				return err
			}
			return unix.Prlimit(pid, unix.RLIMIT_CORE, &limit, nil)
		})
	},
	"ioctl": func(device string) error {
		fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		// Landlock is asked before the device is; that one says that it is no
		// terminal.
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != unix.ENOTTY {
			return err
		}
		return nil
	},
	"namespace": func(string) error {
		// A flag that does not exist: nothing is made, and a kernel says EINVAL
		// where a filter says EPERM.
		if err := unix.Unshare(unix.CLONE_NEWUSER | 1<<40); err != unix.EINVAL {
			return err
		}
		return nil
	},
	"ring": func(string) error {
		var parameters [120]byte // struct io_uring_params
		fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters[0])), 0)
		if errno != 0 {
			return errno
		}
		return unix.Close(int(fd))
	},
}

// systemProofs are those of this system alone.
var systemProofs = []proof{
	{protection: "filesystem", attack: "give an order to a device that may only be read and written (ioctl)",
		act: "ioctl", on: func(*scenery) string {
			return os.DevNull
		}},
	{protection: "unix_sockets", attack: "connect to the abstract socket of a process outside", act: "socket",
		on: func(s *scenery) string {
			return s.abstract
		}},
	{protection: "syscalls", attack: "change the limits of a process outside (prlimit64)", act: "limit",
		on: func(s *scenery) string {
			return s.bystander
		}},
	{protection: "syscalls", attack: "make a user namespace (unshare)", act: "namespace",
		on: func(*scenery) string { return "" }},
	{protection: "syscalls", attack: "start a ring of operations past every filter (io_uring)", act: "ring",
		on: func(*scenery) string { return "" }},
	{
		// Here alone: the log that tells of refusals on macOS comes when it
		// likes.
		protection: platform.Denials, attack: "try to change a file without a word of it to the editor", act: "write", on: (*scenery).secret,
		told: func(s *scenery, d spawn.Denial) bool {
			return d.Access == platform.RefusedWrite && d.Target == s.secret()
		},
	},
}
