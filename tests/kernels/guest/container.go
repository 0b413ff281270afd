//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// enterContainer is enter for a container whose root is the caller.
func enterContainer(args []string) error {
	runtime.LockOSThread() // namespaces and capabilities belong to the thread that makes or drops them
	if err := os.WriteFile(args[0], []byte("0"), 0); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("", readOrder().cgroups(), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	if err := hideProc(); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return syscall.Exec(args[2], args[2:], os.Environ())
}

// hideProc hides files of /proc and makes others read-only, as engines do. The
// kernel then lets no user mount a new /proc.
func hideProc() error {
	for _, file := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list"} {
		if err := unix.Mount("/dev/null", file, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, dir := range []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"} {
		err := errors.Join(unix.Mount(dir, dir, "", unix.MS_BIND, ""),
			unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// containerCapabilities are those that container engines leave to root.
var containerCapabilities = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID,
	unix.CAP_SETUID, unix.CAP_SETPCAP,
	unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SYS_CHROOT, unix.CAP_MKNOD, unix.CAP_AUDIT_WRITE,
	unix.CAP_SETFCAP,
}

// dropCapabilities removes the others from the bounding set, so that root's
// next program does not get them.
func dropCapabilities() error {
	for capability := 0; unix.Prctl(unix.PR_CAPBSET_READ, uintptr(capability), 0, 0, 0) == nil; capability++ {
		if slices.Contains(containerCapabilities, capability) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil {
			return err
		}
	}
	return nil
}
