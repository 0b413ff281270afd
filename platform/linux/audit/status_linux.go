package audit

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrOff means that audit is disabled. An administrator can change that at any
// time.
var ErrOff = errors.New("audit is off on this machine")

// enabled returns ErrOff if audit is disabled: waiting for a record would then
// be in vain. Without permission to ask it returns nil, and the canary decides.
func enabled() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return fmt.Errorf("bound the wait for audit's status: %w", err)
	}
	request := make([]byte, unix.SizeofNlMsghdr)
	binary.NativeEndian.PutUint32(request, unix.SizeofNlMsghdr)
	binary.NativeEndian.PutUint16(request[4:], unix.AUDIT_GET)
	binary.NativeEndian.PutUint16(request[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("ask whether audit is on: %w", err)
	}
	reply := make([]byte, 1<<10)
	n, from, err := unix.Recvfrom(fd, reply, 0)
	if err != nil {
		return fmt.Errorf("ask whether audit is on: %w", err)
	}
	if !sentByKernel(from) {
		return errors.New("ask whether audit is on: the answer is not the kernel's")
	}
	on, err := readStatus(reply[:n])
	switch {
	case errors.Is(err, unix.EPERM):
		return nil // asking needs CAP_AUDIT_CONTROL, reading the log does not
	case err != nil:
		return fmt.Errorf("ask whether audit is on: %w", err)
	case !on:
		return ErrOff
	}
	return nil
}

// readStatus parses an answer: an error, or a struct audit_status
// (linux/audit.h), whose second member is the answer.
func readStatus(reply []byte) (on bool, err error) {
	if len(reply) < unix.SizeofNlMsghdr+4 {
		return false, errors.New("the answer is too short")
	}
	body := reply[unix.SizeofNlMsghdr:]
	switch kind := binary.NativeEndian.Uint16(reply[4:]); {
	case kind == unix.NLMSG_ERROR:
		return false, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
	case kind == unix.AUDIT_GET && len(body) >= 8:
		return binary.NativeEndian.Uint32(body[4:]) != 0, nil
	default:
		return false, fmt.Errorf("the answer is of kind %d", kind)
	}
}
