//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mountProc comes first, because /proc has the order.
func mountProc() error { return unix.Mount("proc", "/proc", "proc", 0, "") }

// mountAll mounts the rest of a system's file systems, and returns what failed.
func mountAll(o order) (notes []string) {
	note := func(what string, err error) {
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %v", what, err))
		}
	}
	mount := func(source, target, kind, options string) {
		note("make "+target, os.MkdirAll(target, 0o755))
		note("mount "+target, unix.Mount(source, target, kind, 0, options))
	}
	mount("sysfs", "/sys", "sysfs", "")
	mount("devtmpfs", "/dev", "devtmpfs", "")
	mount("devpts", "/dev/pts", "devpts", "ptmxmode=666,gid=5,mode=620")
	mount("tmpfs", "/dev/shm", "tmpfs", "mode=1777")
	mount("tmpfs", "/run", "tmpfs", "mode=755")
	if !o.noSecurityFS {
		mount("securityfs", "/sys/kernel/security", "securityfs", "")
	}
	if o.hybrid {
		mount("tmpfs", "/sys/fs/cgroup", "tmpfs", "mode=755")
		mount("cgroup", "/sys/fs/cgroup/pids", "cgroup", "pids")
		mount("cgroup2", o.cgroups(), "cgroup2", "")
	} else {
		mount("cgroup2", o.cgroups(), "cgroup2", "nsdelegate")
	}
	// The kernel's first root cannot be replaced: pivot_root(2), and tests of
	// mounts, need a root that is a mount.
	note("make the root a mount", becomeMount())
	modules, _ := filepath.Glob("/modules/*.ko")
	for _, module := range modules {
		note("load "+module, load(module))
	}
	note("mount the disk", mountDisk("/disk", "/home"))
	for path, mode := range map[string]os.FileMode{
		"/tmp": 0o777 | os.ModeSticky, "/var/tmp": 0o777 | os.ModeSticky, "/home/root": 0o700, "/home/user": 0o700,
	} {
		note("make "+path, os.MkdirAll(path, 0o700))
		note("change mode", os.Chmod(path, mode))
	}
	note("give home", os.Chown("/home/user", user, user))
	// udev makes these links.
	for name, to := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
	} {
		note("link", os.Symlink(to, filepath.Join("/dev", name)))
	}
	note("loopback", loopbackUp())
	// Distributions switch it off, and then there is no attack that a sandbox
	// could stop.
	if err := os.WriteFile("/proc/sys/dev/tty/legacy_tiocsti", []byte("1"), 0); !errors.Is(err, fs.ErrNotExist) {
		note("let terminals be typed into", err)
	}
	return notes
}

// mountDisk mounts the file system in a file.
func mountDisk(file, target string) error {
	image, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer image.Close()
	const device = "/dev/loop0"
	loop, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer loop.Close()
	if err := unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_FD, int(image.Fd())); err != nil {
		return err
	}
	return unix.Mount(device, target, "ext4", 0, "")
}

func becomeMount() error {
	if err := unix.Mount("/", "/mnt", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if err := unix.Chdir("/mnt"); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	return unix.Chdir("/")
}

func load(module string) error {
	file, err := os.Open(module)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.FinitModule(int(file.Fd()), "", 0)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
