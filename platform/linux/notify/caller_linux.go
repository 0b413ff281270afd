package notify

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Read copies the caller's memory. The caller may change it at any time, so
// decide on one copy only. The error is EFAULT if not all of it can be read,
// and EPERM if the caller hides its memory (prctl(2), PR_SET_DUMPABLE) or Yama
// forbids the access.
func (c *Call) Read(address uint64, into []byte) error {
	if len(into) == 0 {
		return nil
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(c.TID, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
	if err == nil && n != len(into) {
		err = unix.EFAULT
	}
	if err != nil {
		return fmt.Errorf("read memory of thread %d: %w", c.TID, err)
	}
	return nil
}

// Memory is the memory of a caller, for writing.
type Memory struct{ file *os.File }

// Memory opens the caller's memory. The error is EPERM as for Read. It stays the
// caller's even if another process gets its number.
func (c *Call) Memory() (*Memory, error) {
	file, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", c.TID), os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open memory of thread %d: %w", c.TID, err)
	}
	if !c.Valid() { // so that it is not another's already
		file.Close()
		return nil, fmt.Errorf("open memory of thread %d: %w", c.TID, ErrGone)
	}
	return &Memory{file}, nil
}

// Write changes the memory. The error is EFAULT if not all can be written.
func (m *Memory) Write(address uint64, data []byte) error {
	if address > math.MaxInt64 {
		return unix.EFAULT
	}
	if n, err := m.file.WriteAt(data, int64(address)); n != len(data) {
		return errors.Join(unix.EFAULT, err)
	}
	return nil
}

// Close closes the memory.
func (m *Memory) Close() { m.file.Close() }

// Text copies a NUL-terminated string, as Read does. The error is ENAMETOOLONG
// if it has PATH_MAX bytes or more, as the kernel says of a path.
func (c *Call) Text(address uint64) (string, error) {
	// Read in pieces that do not cross the end of a page: the next page may not
	// be mapped.
	const page, first = 4096, 256
	var text []byte
	for size := uint64(first); len(text) < unix.PathMax; size = page {
		piece := make([]byte, min(size, page-address%page))
		if err := c.Read(address, piece); err != nil {
			return "", err
		}
		end := bytes.IndexByte(piece, 0)
		if end >= 0 && len(text)+end < unix.PathMax {
			return string(append(text, piece[:end]...)), nil
		}
		text = append(text, piece...)
		address += uint64(len(piece))
	}
	return "", fmt.Errorf("read memory of thread %d: %w", c.TID, unix.ENAMETOOLONG)
}

// Process returns the caller's process id and the name that the process gives
// itself, which may contain any bytes.
func (c *Call) Process() (pid int, name string, err error) {
	status, err := c.status("Tgid", "Name")
	if err != nil {
		return 0, "", err
	}
	if pid, err = strconv.Atoi(status["Tgid"]); err != nil {
		return 0, "", fmt.Errorf("read process of thread %d: %w", c.TID, err)
	}
	return pid, status["Name"], nil
}

// Umask returns the caller's umask.
func (c *Call) Umask() (uint32, error) {
	status, err := c.status("Umask")
	if err != nil {
		return 0, err
	}
	mask, err := strconv.ParseUint(status["Umask"], 8, 32)
	if err != nil {
		return 0, fmt.Errorf("read umask of thread %d: %w", c.TID, err)
	}
	return uint32(mask), nil
}

// Descriptor duplicates a descriptor of the caller's. The duplicate refers to
// the same open file and is close-on-exec; the caller of Descriptor closes it.
// The error is EBADF if there is no such descriptor, and EPERM as for Read.
func (c *Call) Descriptor(number int) (int, error) {
	process, err := c.pidfd()
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, number, 0)
	if err != nil {
		return -1, fmt.Errorf("duplicate descriptor %d of thread %d: %w", number, c.TID, err)
	}
	return fd, nil
}

// pidfd returns a pidfd of the calling thread. Before PIDFD_THREAD (Linux 6.9)
// it is one of the process. The thread's descriptors are the same, unless it
// has unshared its table (unshare(2)): then another file of the same process is
// used.
func (c *Call) pidfd() (int, error) {
	fd, err := unix.PidfdOpen(c.TID, unix.PIDFD_THREAD)
	if !errors.Is(err, unix.EINVAL) {
		return fd, err
	}
	status, err := c.status("Tgid")
	if err != nil {
		return -1, err
	}
	leader, err := strconv.Atoi(status["Tgid"])
	if err != nil {
		return -1, fmt.Errorf("read process of thread %d: %w", c.TID, err)
	}
	return unix.PidfdOpen(leader, 0)
}

// status reads fields of /proc/TID/status (proc_pid_status(5)).
func (c *Call) status(fields ...string) (map[string]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.TID))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range bytes.Lines(data) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		for _, field := range fields {
			if ok && string(name) == field {
				found[field] = string(bytes.TrimSpace(value))
			}
		}
	}
	if len(found) != len(fields) {
		return nil, fmt.Errorf("read status of thread %d: a field is missing", c.TID)
	}
	return found, nil
}

// interrupted reports whether a signal with a handler is pending. The kernel
// delays it until the call is answered, except for a fatal one
// (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).
func (c *Call) interrupted() bool {
	status, err := c.status("SigPnd", "ShdPnd", "SigBlk", "SigCgt")
	if err != nil {
		return false
	}
	sets := map[string]uint64{}
	for name, text := range status {
		if sets[name], err = strconv.ParseUint(text, 16, 64); err != nil {
			return false
		}
	}
	return (sets["SigPnd"]|sets["ShdPnd"])&sets["SigCgt"]&^sets["SigBlk"] != 0
}
