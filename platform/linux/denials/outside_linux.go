package denials

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// A session's own mounts are read-only outside its grants (namespace.Tree). So
// whether the sandbox refuses a change, or the file system does, shows in the
// sidecar's mounts. A file that the user allows is opened for writing there.

var errOtherFile = errors.New("the path leads to another file outside the session's mounts")

// outside opens, by the sidecar's own mounts, the file that a descriptor of the
// session's mounts refers to. The path is its real one. The caller closes the
// descriptor.
func outside(fd int, path string) (int, error) {
	if err := fsguard.Answers(path); err != nil {
		return -1, err
	}
	var own, theirs unix.Stat_t
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	opened, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return -1, err
	}
	if err := errors.Join(unix.Fstat(opened, &own), unix.Fstat(fd, &theirs)); err != nil ||
		own.Dev != theirs.Dev || own.Ino != theirs.Ino {
		unix.Close(opened)
		return -1, errors.Join(err, errOtherFile)
	}
	return opened, nil
}

// readOnlyOutside reports whether the file of a descriptor of the session's
// mounts cannot be written outside either, because the file system there is
// read-only.
func readOnlyOutside(fd int, path string) bool {
	opened, err := outside(fd, path)
	if err != nil {
		return false
	}
	defer unix.Close(opened)
	return errors.Is(unix.Faccessat2(opened, "", unix.W_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS), unix.EROFS)
}
