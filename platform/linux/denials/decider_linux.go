package denials

import (
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Decider answers the most frequent calls as FastPath does, but without Go's
// scheduler and without allocating; see [notify.Decider]. It only lets calls
// continue that SlowPath would not report. It leaves to FastPath: paths that are
// not clean, symlinks, calls with two paths, and everything that may be denied.
// It caches nothing.
type Decider struct {
	observer *Observer
	policy   *policy.Policy
	missing  *missing
	calls    *DecidedCalls
	// otherRoots is mayHaveOtherRoot.
	otherRoots bool
	*workspace // nil except between Begin and End
}

// workspace is what a decider needs while it decides. Idle sessions have none.
type workspace struct {
	local  unix.Iovec // text
	remote unix.RemoteIovec
	how    unix.OpenHow
	text   [maxText]byte // the path as the caller wrote it
	// path is the absolute path, after a dot: openat2(2) starts at the session's
	// root.
	path [1 + 2*maxText + 2]byte
	link [64]byte // a path in /proc
	root [2]byte
}

const (
	maxNumber = 512 // of a system call
	maxText   = 1024
	pageSize  = 4096 // the smallest of any machine
)

var workspaces = sync.Pool{New: func() any { return &workspace{} }}

// Begin implements [notify.Decider].
func (d *Decider) Begin() {
	d.workspace = workspaces.Get().(*workspace)
	d.local.Base = &d.text[0]
}

// End implements [notify.Decider].
func (d *Decider) End() {
	workspaces.Put(d.workspace)
	d.workspace = nil
}

// DecidedCalls are the calls that deciders decide about. Sessions share them.
type DecidedCalls struct {
	arch  uint32
	calls [maxNumber]decidedCall // by number
}

// decidedCall is pathArg for a system call that has one path.
type decidedCall struct {
	known bool
	creat bool
	// attributes says that the call changes a file without a path argument of
	// interest; mode is the number of the argument with its mode, or none.
	attributes bool
	mode       int8
	pathArg
}

// NewDecidedCalls takes the names of the calls by their numbers on an
// architecture, as [notify.Key] has them. Those that are none of Calls change
// attributes of a file; modes has the argument with the mode, where they have one.
func NewDecidedCalls(arch uint32, numbers map[int]string, modes map[string]int) *DecidedCalls {
	d := &DecidedCalls{arch: arch}
	for number, name := range numbers {
		if _, path := pathArgs()[name]; !path && number < maxNumber {
			mode, has := modes[name]
			if !has {
				mode = none
			}
			d.calls[number] = decidedCall{known: true, attributes: true, mode: int8(mode)}
			continue
		}
		args := pathArgs()[name]
		if number >= maxNumber || len(args) != 1 || slices.Contains(gitMakers, name) || name == "openat2" {
			continue
		}
		d.calls[number] = decidedCall{known: true, creat: name == "creat", pathArg: args[0]}
	}
	return d
}

// NewDecider returns a decider for an observer.
func NewDecider(o *Observer, calls *DecidedCalls) *Decider {
	return &Decider{
		observer: o, policy: o.options.Policy, missing: o.missing, calls: calls, otherRoots: mayHaveOtherRoot,
	}
}

// affixes is a name that must not be created, or how such names begin and end.
type affixes struct {
	before, after string
	wild          bool
}

// mayBeMissing reports whether the last name of the path may be one that must
// not be created.
//
//go:nosplit
//go:norace
func (d *Decider) mayBeMissing(end int) bool {
	start := end
	for start > 1 && d.path[start-1] != '/' {
		start--
	}
	size := end - start
	for i := range d.missing.affixes {
		m := &d.missing.affixes[i]
		if size < len(m.before)+len(m.after) || !m.wild && size != len(m.before) {
			continue
		}
		same := true
		for j := 0; same && j < len(m.before); j++ {
			same = d.path[start+j] == m.before[j]
		}
		for j := 0; same && j < len(m.after); j++ {
			same = d.path[end-len(m.after)+j] == m.after[j]
		}
		if same {
			return true
		}
	}
	return false
}

// Decide implements [notify.Decider].
//
//go:nosplit
//go:norace
func (d *Decider) Decide(n *notify.Notification) bool {
	if n.Arch != d.calls.arch || uint32(n.Number) >= maxNumber || !d.calls.calls[n.Number].known ||
		d.observer.begun == 0 {
		return false
	}
	c := &d.calls.calls[n.Number]
	if c.attributes {
		if c.mode != none && n.Args[c.mode]&modeMarks != 0 {
			return false // see ChangeMode
		}
		d.observer.changed = 1
		return true
	}
	var flags openFlags
	switch {
	case c.creat:
		flags = unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	case c.flags != none:
		flags = openFlags(uint32(n.Args[c.flags]))
	}
	if c.op == opOpen && flags&unix.O_PATH != 0 {
		return true
	}
	size := d.read(n)
	if c.op == opOpen && mayOpenDevice(flags) && (d.isText(nullPath, size) || d.isText(ttyPath, size)) {
		return false // see openDevice
	}
	if c.op != opExecute && (c.op != opOpen || flags&openChanges != 0) {
		d.observer.changed = 1
	}
	if size == 0 || !d.clean(size) {
		return false
	}
	follow := c.op == opTruncate || c.op == opExecute && flags&unix.AT_SYMLINK_NOFOLLOW == 0 ||
		c.op == opOpen && flags&unix.O_NOFOLLOW == 0 && flags&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL
	end, bare := d.absolute(n, c, size)
	if end == 0 {
		return false
	}
	if (follow || d.text[0] == '/') && d.otherRoots && !d.sessionsRoot(n) {
		return false
	}
	if (c.op == opCreate || c.op == opOpen && flags&unix.O_CREAT != 0) && d.mayBeMissing(end) {
		return false
	}
	return d.harmless(c.op, flags, follow, bare, end)
}

// read copies the path from the caller's memory, and returns its length; 0 if
// it must be read otherwise.
//
//go:nosplit
//go:norace
func (d *Decider) read(n *notify.Notification) int {
	address := n.Args[d.calls.calls[n.Number].path]
	// What is behind the end of a page may not be mapped.
	size := min(maxText, pageSize-int(address%pageSize))
	d.local.Len = uint64(size)
	d.remote.Base, d.remote.Len = uintptr(address), size
	got, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(n.TID), uintptr(unsafe.Pointer(&d.local)), 1,
		uintptr(unsafe.Pointer(&d.remote)), 1, 0)
	if errno != 0 {
		return 0
	}
	for i := 0; i < int(got) && i < maxText; i++ {
		if d.text[i] == 0 {
			return i
		}
	}
	return 0
}

// isText reports whether the path, of that size, is a short text.
//
//go:nosplit
//go:norace
func (d *Decider) isText(text string, size int) bool {
	if size != len(text) || size > maxText {
		return false
	}
	for i := range len(text) {
		if d.text[i] != text[i] {
			return false
		}
	}
	return true
}

// clean reports whether the path is one that path.Clean leaves as it is, and has
// no "..".
//
//go:nosplit
//go:norace
func (d *Decider) clean(size int) bool {
	part := 0 // the length of the part before i
	for i := 0; i <= size && i < maxText; i++ {
		if i < size && d.text[i] != '/' {
			part++
			continue
		}
		switch {
		case part == 0 && (i > 0 || size == 1): // "//", a "/" at the end, and "/"
			return false
		case part == 1 && d.text[i-1] == '.', part == 2 && d.text[i-1] == '.' && d.text[i-2] == '.':
			return false
		}
		part = 0
	}
	return true
}

// absolute makes the path absolute, and returns where it ends; 0 if that is not
// possible. bare says that the name was relative to a directory, and has no
// other directory in it.
//
//go:nosplit
//go:norace
func (d *Decider) absolute(n *notify.Notification, c *decidedCall, size int) (end int, bare bool) {
	d.path[0] = '.'
	end = 1
	if d.text[0] != '/' {
		at := d.procLink(n.TID)
		if c.dir == workDir || int32(n.Args[c.dir]) == unix.AT_FDCWD {
			d.append(at, 'c', 'w', 'd', 0)
		} else {
			if int32(n.Args[c.dir]) < 0 {
				return 0, false
			}
			at = d.append(at, 'f', 'd', '/', 0)
			d.append(d.appendNumber(at-1, uint32(n.Args[c.dir])), 0, 0, 0, 0)
		}
		got := d.readlink(unsafe.Pointer(&d.path[1]), maxText)
		if got <= 0 || got >= maxText || d.path[1] != '/' || d.deleted(1+got) {
			return 0, false
		}
		if got > 1 {
			d.path[1+got] = '/'
			got++
		}
		end, bare = 1+got, true
	}
	for i := 0; i < size && i < maxText && end < len(d.path)-1; i++ {
		bare = bare && d.text[i] != '/'
		d.path[end] = d.text[i]
		end++
	}
	d.path[end] = 0
	return end, bare
}

// deleted reports whether the path ends as that of a removed directory does.
//
//go:nosplit
//go:norace
func (d *Decider) deleted(end int) bool {
	const mark = " (deleted)"
	if end < len(mark) {
		return false
	}
	for i := range len(mark) {
		if d.path[end-len(mark)+i] != mark[i] {
			return false
		}
	}
	return true
}

// sessionsRoot reports whether the caller has the session's root directory.
//
//go:nosplit
//go:norace
func (d *Decider) sessionsRoot(n *notify.Notification) bool {
	at := d.append(d.procLink(n.TID), 'r', 'o', 'o', 't')
	d.append(at, 0, 0, 0, 0)
	return d.readlink(unsafe.Pointer(&d.root), len(d.root)) == 1 && d.root[0] == '/'
}

// harmless is Observer.harmless.
//
//go:nosplit
//go:norace
func (d *Decider) harmless(op operation, flags openFlags, follow, bare bool, end int) bool {
	dir := end - 1
	for dir > 1 && d.path[dir] != '/' {
		dir--
	}
	granted := d.grants(op, flags, end, max(dir, 2))
	switch {
	case granted && !follow && bare:
		return true // the kernel named the directory, so no symlink is on the way
	case granted && !follow:
		if dir > 1 {
			d.path[dir] = 0
		} else {
			d.path[2] = 0
		}
		found := d.lookup(unix.O_DIRECTORY)
		return found == 0 || found == unix.ENOENT
	case !granted && (op == opCreate || op == opLink || op == opOpen && flags&unix.O_CREAT != 0):
		return false
	}
	found := d.lookup(0)
	return found == unix.ENOENT && !d.policy.IsHidden(d.name(end)) || found == 0 && granted
}

// lookup is Observer.openInMemory for the path.
//
//go:nosplit
//go:norace
func (d *Decider) lookup(flags uint64) unix.Errno {
	root := d.observer.rootFD
	if root < 0 {
		return unix.EBADF
	}
	d.how.Flags, d.how.Mode, d.how.Resolve = unix.O_PATH|unix.O_CLOEXEC|flags, 0, inMemory
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT2, uintptr(root), uintptr(unsafe.Pointer(&d.path)),
		uintptr(unsafe.Pointer(&d.how)), unsafe.Sizeof(d.how), 0, 0)
	if errno == 0 {
		unix.RawSyscall6(unix.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	return errno
}

// grants is Observer.grants. dir is where the path's directory ends. What is
// replaced is left to Go.
//
//go:nosplit
//go:norace
func (d *Decider) grants(op operation, flags openFlags, end, dir int) bool {
	at, above := needs(op, flags)
	return !d.policy.IsReplaced(d.name(end)) && d.policy.InPlace(d.name(end))&at == at &&
		(above == 0 || d.policy.InPlace(d.name(dir))&above == above)
}

// name is the path up to end.
//
//go:nosplit
//go:norace
func (d *Decider) name(end int) string { return unsafe.String(&d.path[1], end-1) }

// procLink writes "/proc/TID/" to link, and returns where it ends.
//
//go:nosplit
//go:norace
func (d *Decider) procLink(tid uint32) int {
	d.append(0, '/', 'p', 'r', 'o')
	d.append(4, 'c', '/', 0, 0)
	at := d.appendNumber(6, tid)
	d.link[at] = '/'
	return at + 1
}

// append writes four bytes to link, and returns where they end.
//
//go:nosplit
//go:norace
func (d *Decider) append(at int, a, b, c, e byte) int {
	d.link[at], d.link[at+1], d.link[at+2], d.link[at+3] = a, b, c, e
	return at + 4
}

// appendNumber writes a number to link, and returns where it ends.
//
//go:nosplit
//go:norace
func (d *Decider) appendNumber(at int, number uint32) int {
	digits := 1
	for rest := number; rest >= 10; rest /= 10 {
		digits++
	}
	for i := at + digits - 1; i >= at; i-- {
		d.link[i] = '0' + byte(number%10)
		number /= 10
	}
	return at + digits
}

// readlink reads the symlink that link names; -1 if that fails.
//
//go:nosplit
//go:norace
func (d *Decider) readlink(into unsafe.Pointer, size int) int {
	const atWorkDir = ^uintptr(99) // AT_FDCWD, which the path does not need
	got, _, errno := unix.RawSyscall6(unix.SYS_READLINKAT, atWorkDir, uintptr(unsafe.Pointer(&d.link)), uintptr(into),
		uintptr(size), 0, 0)
	if errno != 0 {
		return -1
	}
	return int(got)
}
