package denials

import (
	"golang.org/x/sys/unix"
)

// deed is what a call does with the path that it names.
type deed int

const (
	opening   deed = iota // as the flags say
	making                // a name that must not be there yet
	placing               // a name that may be there: something is renamed to it
	removing              // a name
	cutting               // a file off
	executing             // a program
)

// use says where a call names a path.
type use struct {
	deed deed
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
var uses = map[string][]use{
	"open":       {{opening, workDir, 0, 1}},
	"openat":     {{opening, 0, 1, 2}},
	"openat2":    {{opening, 0, 1, none}}, // see flagsOf
	"creat":      {{opening, workDir, 0, none}},
	"unlink":     {{removing, workDir, 0, none}},
	"unlinkat":   {{removing, 0, 1, none}},
	"rmdir":      {{removing, workDir, 0, none}},
	"rename":     {{removing, workDir, 0, none}, {placing, workDir, 1, none}},
	"renameat":   {{removing, 0, 1, none}, {placing, 2, 3, none}},
	"renameat2":  {{removing, 0, 1, none}, {placing, 2, 3, none}},
	"mkdir":      {{making, workDir, 0, none}},
	"mkdirat":    {{making, 0, 1, none}},
	"mknod":      {{making, workDir, 0, none}},
	"mknodat":    {{making, 0, 1, none}},
	"link":       {{making, workDir, 1, none}},
	"linkat":     {{making, 2, 3, none}},
	"symlink":    {{making, workDir, 1, none}},
	"symlinkat":  {{making, 1, 2, none}},
	"truncate":   {{cutting, workDir, 0, none}},
	"truncate64": {{cutting, workDir, 0, none}},
	"execve":     {{executing, workDir, 0, none}},
	"execveat":   {{executing, 0, 1, 4}},
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
