package notify

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Identity is the user, group and supplementary groups of a thread: permissions
// are checked by them, and servers see them (credentials(7)).
type Identity struct {
	uid, gid int
	groups   []int
}

// Identity reads the caller's effective identity. It returns the zero value
// unless this process is root: an ordinary user's sessions have the sidecar's
// own identity, and nobody but root can take another.
func (c *Call) Identity() (Identity, error) {
	if os.Geteuid() != 0 {
		return Identity{}, nil
	}
	status, err := c.status("Uid", "Gid", "Groups")
	if err != nil {
		return Identity{}, err
	}
	id := Identity{}
	const effective = 1 // after the real id
	for _, part := range []struct {
		text string
		into *int
	}{{status["Uid"], &id.uid}, {status["Gid"], &id.gid}} {
		fields := strings.Fields(part.text)
		if len(fields) <= effective {
			return Identity{}, fmt.Errorf("read identity of thread %d: a field is missing", c.TID)
		}
		if *part.into, err = strconv.Atoi(fields[effective]); err != nil {
			return Identity{}, fmt.Errorf("read identity of thread %d: %w", c.TID, err)
		}
	}
	for group := range strings.FieldsSeq(status["Groups"]) {
		number, err := strconv.Atoi(group)
		if err != nil {
			return Identity{}, fmt.Errorf("read identity of thread %d: %w", c.TID, err)
		}
		id.groups = append(id.groups, number)
	}
	return id, nil
}

// As runs do with the identity, on another thread if it differs from this
// process's. Without root it runs do unchanged.
func (id Identity) As(do func()) error {
	if os.Geteuid() != 0 {
		do()
		return nil
	}
	own, err := os.Getgroups()
	if err != nil {
		return fmt.Errorf("read our groups: %w", err)
	}
	slices.Sort(own)
	theirs := slices.Sorted(slices.Values(id.groups))
	if id.uid == 0 && id.gid == os.Getegid() && slices.Equal(own, theirs) {
		do()
		return nil
	}
	OnThread(func() {
		if err = id.assume(); err == nil {
			do()
		}
	})
	return err
}

// assume changes the identity of the calling thread only. Package syscall's
// functions would change every thread.
func (id Identity) assume() error {
	groups := make([]uint32, len(id.groups))
	for i, group := range id.groups {
		groups[i] = uint32(group)
	}
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	const keep = ^uintptr(0)
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
	runtime.KeepAlive(groups)
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_SETRESGID, keep, uintptr(id.gid), keep)
	}
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(id.uid), keep)
	}
	if errno != 0 {
		return fmt.Errorf("act as user %d: %w", id.uid, errno)
	}
	return nil
}
