package denials

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// git opens /dev/null for writing whenever it starts, and bash opens /dev/tty.
// Such a session has changed nothing, but if the call went on, another thread
// could give it another path. So the observer answers the call itself.

const (
	nullPath = "/dev/null"
	ttyPath  = "/dev/tty"
)

// The numbers of both devices (Documentation/admin-guide/devices.txt).
var nullDevice, ttyDevice = unix.Mkdev(1, 3), unix.Mkdev(5, 0)

// deviceFlags are those with which a device is opened for a caller.
const deviceFlags = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND | unix.O_NONBLOCK | unix.O_NOCTTY |
	unix.O_NOFOLLOW | unix.O_CLOEXEC

// mayOpenDevice reports whether an open with these flags is for writing, and could
// be of a device. It may be called without Go's scheduler.
//
//go:nosplit
//go:norace
func mayOpenDevice(flags openFlags) bool { return flags&openChanges != 0 && flags&^deviceFlags == 0 }

// openDevice answers a call that opens /dev/null for writing, and one that opens
// /dev/tty without a terminal. It returns false if the call is another, or if that
// fails.
func (o *Observer) openDevice(call *notify.Call, list []pathArg) bool {
	if list[0].op != opOpen || list[0].flags == none {
		return false
	}
	flags := openFlags(uint32(call.Args[list[0].flags]))
	if !mayOpenDevice(flags) {
		return false
	}
	text, err := call.Text(call.Args[list[0].path])
	if err != nil || text != nullPath && text != ttyPath || !o.grants(newRequest(opOpen, flags&^unix.O_CREAT), text) {
		return false
	}
	root, err := rootOf(call.TID)
	if err != nil {
		return false
	}
	defer unix.Close(root)
	if mayHaveOtherRoot && otherRoot(call.TID) {
		return false
	}
	held, device, err := holdDevice(root, text)
	if err != nil {
		return false
	}
	defer unix.Close(held)
	switch {
	case text == nullPath && device == nullDevice:
		kept := int(flags) & (unix.O_ACCMODE | unix.O_APPEND | unix.O_NONBLOCK)
		fd, err := unix.Open(fdPath(held), kept|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		defer unix.Close(fd)
		return call.ReturnFD(fd, flags.has(unix.O_CLOEXEC)) == nil
	case text == ttyPath && device == ttyDevice && lacksTerminal(call.TID):
		call.Fail(unix.ENXIO) // as tty_open_current_tty() does (drivers/tty/tty_io.c)
		return true
	}
	return false
}

// holdDevice finds a device that everybody may read and write below a root
// directory, without opening it, and returns its number.
func holdDevice(root int, path string) (held int, device uint64, err error) {
	held, err = unix.Openat2(root, "."+path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: inMemory})
	if err != nil {
		return -1, 0, err
	}
	const everybody = 0o666
	var stat unix.Stat_t
	if err = unix.Fstat(held, &stat); err == nil &&
		(stat.Mode&unix.S_IFMT != unix.S_IFCHR || stat.Mode&everybody != everybody) {
		err = unix.ENODEV
	}
	if err != nil {
		unix.Close(held)
		return -1, 0, err
	}
	return held, stat.Rdev, nil
}

// lacksTerminal reports whether a process has no controlling terminal.
func lacksTerminal(tid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	if err != nil {
		return false
	}
	// The name may hold anything: state, parent, process group, session, terminal.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 4 && string(fields[4]) == "0"
}
