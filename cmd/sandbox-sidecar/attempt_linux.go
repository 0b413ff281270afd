package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// abstractSockets reports whether a socket can have a name that is no path.
const abstractSockets = true

// systemAttempts are the actions that only Linux has.
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
		// Landlock decides before the device, which answers ENOTTY.
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != unix.ENOTTY {
			return err
		}
		return nil
	},
	// The port of this machine by the name that sessions have for it, or by its
	// address without a session.
	"host": func(port string) error {
		conn, err := net.Dial("tcp", net.JoinHostPort(hosts.HostName, port))
		if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
			conn, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		}
		if err != nil {
			return err
		}
		return conn.Close()
	},
	"mode": func(path string) error { return unix.Chmod(path, 0o600) }, // which it has
	// The argument is a text to append, and after a colon the file. Its directory
	// is missing where there are no overlays.
	"append": func(argument string) error {
		text, path, _ := strings.Cut(argument, ":")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		_, err = file.WriteString(text)
		return errors.Join(err, file.Close())
	},
	"fork": func(number string) error {
		n, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		return forkMany(n)
	},
	"namespace": func(string) error {
		// A flag that does not exist: nothing is made. The kernel answers EINVAL,
		// the filter EPERM.
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

// doctorProcesses is the limit of doctor's session. The attack needs some more.
const doctorProcesses = 128

// forkMany has so many processes at once. They end with it.
func forkMany(number int) error {
	var children []int
	var refused error
	for len(children) < number && refused == nil {
		pid, errno := forkAndWait()
		if errno != 0 {
			refused = errno
			continue
		}
		children = append(children, pid)
	}
	for _, pid := range children {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	return refused
}

// forkAndWait starts a process that waits for its end. A process that was forked
// and not executed has half a Go runtime, so it may only call the kernel.
//
//go:norace
func forkAndWait() (int, unix.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// systemProofs are the attacks that only Linux has.
var systemProofs = []proof{
	{
		protection: "filesystem", attack: "control a device that may only be read and written (ioctl)",
		// Not /dev/null: the observer may open it for a session, as no ioctl
		// controls it.
		act: "ioctl", on: func(*targets) string { return "/dev/zero" },
	},
	{
		protection: platform.FileTree, attack: "change the mode of a file that is not granted", act: "mode",
		on: (*targets).secret,
	},
	{
		protection: platform.ToolchainCaches, attack: "change a toolchain's cache for programs outside", act: "append",
		on:     func(s *targets) string { return s.token() + ":" + s.cached() },
		effect: (*targets).reachesCache,
	},
	{
		protection: "unix_sockets", attack: "connect to the abstract socket of a process outside", act: "socket",
		on: func(s *targets) string {
			return s.abstract
		},
	},
	{
		protection: platform.NetworkHosts, attack: "connect to a host that is not allowed, by its name", act: "host",
		on: func(s *targets) string {
			_, port, _ := net.SplitHostPort(s.server)
			return port
		},
	},
	{
		protection: platform.Limits, attack: "start more processes than the limit", act: "fork",
		on: func(*targets) string { return strconv.Itoa(doctorProcesses + 16) },
	},
	{
		protection: "syscalls", attack: "change the limits of a process outside (prlimit64)", act: "limit",
		on: func(s *targets) string {
			return s.bystander
		},
	},
	{
		protection: "syscalls", attack: "make a user namespace (unshare)", act: "namespace",
		on: func(*targets) string { return "" },
	},
	{
		protection: "syscalls", attack: "run operations that no filter sees (io_uring)", act: "ring",
		on: func(*targets) string { return "" },
	},
	{
		// Not on macOS, whose log of denials arrives at any time.
		protection: platform.Denials, attack: "change a file without a report to the editor",
		act: "write", on: (*targets).secret,
		reported: func(s *targets, d spawn.Denial) bool {
			return d.Access == platform.RefusedWrite && d.Target == s.secret()
		},
	},
}

// system adds to the policy of the session what only Linux can try.
func (s *targets) system(p *policy.Policy) {
	cache := caches().ProbePath()
	p.Rules = append(p.Rules, policy.Rule{Path: cache, Access: policy.ReadWrite, Origin: byDoctor})
	slices.SortFunc(p.Rules, func(a, b policy.Rule) int { return strings.Compare(a.Path, b.Path) })
	p.Caches = []policy.Cache{{Path: cache}}
	p.Limits.Processes = doctorProcesses
}

// token is a text that no other run of doctor has.
func (s *targets) token() string { return filepath.Base(s.dir) }

// cached is a file in a cache. Runs of doctor share it, so that they leave only
// one in the overlay. The last one of several at once removes the real one.
func (s *targets) cached() string { return filepath.Join(caches().ProbePath(), "doctor") }

// reachesCache reports whether the cache that programs outside see has changed.
func (s *targets) reachesCache() bool {
	read := func() string {
		text, _ := os.ReadFile(s.cached())
		return string(text)
	}
	s.undo = append(s.undo, func() {
		if strings.HasSuffix(read(), s.token()) {
			os.Remove(s.cached())
		}
	})
	return strings.Contains(read(), s.token())
}
