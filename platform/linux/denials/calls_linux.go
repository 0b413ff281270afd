package denials

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// operation is what a system call does with a path argument.
type operation uint8

const (
	opOpen     operation = iota // open, as the flags say
	opCreate                    // create a name that must not exist yet
	opLink                      // rename something to a name that may exist already
	opRemove                    // remove a name
	opTruncate                  // truncate a file
	opExecute                   // execute a program
)

// pathArg says which argument of a call is a path.
type pathArg struct {
	op operation
	// dir is the number of the argument with the directory descriptor, path
	// that of the path.
	dir, path int8
	// flags is the number of the argument with the flags; none if the call has
	// no flags.
	flags int8
}

const (
	workDir = -1 // for dir: the path is relative to the working directory
	none    = -1
)

// pathArgs lists the system calls on paths that Landlock may deny, by name. For
// a hard link only the new name is checked: if the file itself may not be
// linked, the kernel answers EXDEV and programs copy instead.
var pathArgs = sync.OnceValue(func() map[string][]pathArg {
	return map[string][]pathArg{
		"open":       {{opOpen, workDir, 0, 1}},
		"openat":     {{opOpen, 0, 1, 2}},
		"openat2":    {{opOpen, 0, 1, none}}, // see flagsOf
		"creat":      {{opOpen, workDir, 0, none}},
		"unlink":     {{opRemove, workDir, 0, none}},
		"unlinkat":   {{opRemove, 0, 1, none}},
		"rmdir":      {{opRemove, workDir, 0, none}},
		"rename":     {{opRemove, workDir, 0, none}, {opLink, workDir, 1, none}},
		"renameat":   {{opRemove, 0, 1, none}, {opLink, 2, 3, none}},
		"renameat2":  {{opRemove, 0, 1, none}, {opLink, 2, 3, none}},
		"mkdir":      {{opCreate, workDir, 0, none}},
		"mkdirat":    {{opCreate, 0, 1, none}},
		"mknod":      {{opCreate, workDir, 0, none}},
		"mknodat":    {{opCreate, 0, 1, none}},
		"link":       {{opCreate, workDir, 1, none}},
		"linkat":     {{opCreate, 2, 3, none}},
		"symlink":    {{opCreate, workDir, 1, none}},
		"symlinkat":  {{opCreate, 1, 2, none}},
		"truncate":   {{opTruncate, workDir, 0, none}},
		"truncate64": {{opTruncate, workDir, 0, none}},
		"execve":     {{opExecute, workDir, 0, none}},
		"execveat":   {{opExecute, 0, 1, 4}},
	}
})

// needs is what a policy must grant so that a request is not denied, whatever
// exists at its path: at the path itself, and above, in its directory. A name that
// is created or removed must be writable itself, or it is protected. It may be
// called without Go's scheduler.
//
//go:nosplit
//go:norace
func needs(op operation, flags openFlags) (at, above policy.Access) {
	switch op {
	case opExecute:
		return policy.Execute, 0
	case opTruncate:
		return policy.Write, 0
	case opOpen:
		if flags.reads() {
			at |= policy.Read
		}
		if flags.writes() || flags.has(unix.O_CREAT) {
			at |= policy.Write
		}
		if flags.has(unix.O_CREAT) {
			above = policy.Write
		}
		return at, above
	default:
		return policy.Write, policy.Write
	}
}

// openFlags are the flags of open(2).
type openFlags uint64

//go:nosplit
//go:norace
func (f openFlags) has(flag openFlags) bool { return f&flag == flag }

// writes reports whether the file is opened for writing. O_TRUNC writes,
// whatever the access mode says.
//
//go:nosplit
//go:norace
func (f openFlags) writes() bool {
	mode := f & unix.O_ACCMODE
	return mode == unix.O_WRONLY || mode == unix.O_RDWR || f&unix.O_TRUNC != 0
}

//go:nosplit
//go:norace
func (f openFlags) reads() bool {
	mode := f & unix.O_ACCMODE
	return mode == unix.O_RDONLY || mode == unix.O_RDWR
}

// follows reports whether open(2) follows a symlink at the end of the path.
func (f openFlags) follows() bool {
	return f&unix.O_NOFOLLOW == 0 && !f.has(unix.O_CREAT|unix.O_EXCL)
}
