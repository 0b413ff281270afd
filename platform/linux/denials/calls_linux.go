package denials

import (
	"golang.org/x/sys/unix"
)

// deed is what a call does with the path that it names.
type operation int

const (
	opOpen     operation = iota // as the flags say
	opCreate                    // a name that must not be there yet
	opLink                      // a name that may be there: something is renamed to it
	opRemove                    // a name
	opTruncate                  // a file off
	opExecute                   // a program
)

// use says where a call names a path.
type pathArg struct {
	op operation
	// dir is the argument that says from where, path that of the path.
	dir, path int
	// flags is the argument with the flags; none where there is none.
	flags int
}

const (
	workDir = -1 // for dir: the path is always from the working directory
	none    = -1
)

// uses lists the calls on paths that Landlock may refuse, by the names that
// filters have for them. A hard link of a file is only looked at for the name
// that it gets: where the file itself may not be linked the answer is EXDEV,
// and programs copy instead.
var pathArgs = map[string][]pathArg{
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

// openFlags are those of an opening.
type openFlags uint64

func (f openFlags) has(flag openFlags) bool { return f&flag == flag }

// writes reports whether the file is opened to be changed. O_TRUNC changes it
// whatever else is asked for.
func (f openFlags) writes() bool {
	mode := f & unix.O_ACCMODE
	return mode == unix.O_WRONLY || mode == unix.O_RDWR || f&unix.O_TRUNC != 0
}

func (f openFlags) reads() bool {
	mode := f & unix.O_ACCMODE
	return mode == unix.O_RDONLY || mode == unix.O_RDWR
}

// follows reports whether a symlink that the path ends in is followed.
func (f openFlags) follows() bool {
	return f&unix.O_NOFOLLOW == 0 && !f.has(unix.O_CREAT|unix.O_EXCL)
}
