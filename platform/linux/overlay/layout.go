//go:build unix

package overlay

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay/message"
)

// The directory of a user's overlays has a directory for each cache, and:
const (
	// startLock is held by whoever starts a holder, or clears caches, and by a
	// holder that ends.
	startLock = "start.lock"
	// useLock is held as long as a holder lives, or a sidecar that has used it.
	// Sessions may use the overlays until then.
	useLock = "use.lock"
	// probeName is a directory with an overlay that tests whether overlays work.
	probeName = "probe"
)

// The directory of a cache has:
const (
	// pathName is a file with the path of the real cache.
	pathName = "path"
	// upperName has what sessions have changed.
	upperName = "upper"
	// workName is the kernel's.
	workName = "work"
	// emptyName takes the place of the real cache if sessions must not see that.
	emptyName = "empty"
)

// nameOf is the name of a cache's directory.
func nameOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:12])
}

var errNoDir = errors.New("set XDG_CACHE_HOME or HOME to a directory")

// openDir makes the directory of the overlays and opens it. The result has no
// symlink in its path.
func openDir(dir string) (*os.File, error) {
	if dir == "" {
		return nil, errNoDir
	}
	if err := fsguard.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return openMade(dir)
}

// openMade opens the directory of the overlays if it exists and belongs to the
// user alone.
func openMade(dir string) (*os.File, error) {
	real, err := fsguard.EvalSymlinks(dir)
	var named *fs.PathError
	if err != nil && !errors.As(err, &named) {
		err = &fs.PathError{Op: "open", Path: dir, Err: err} // as of a file in the way
	}
	if err != nil {
		return nil, err
	}
	return message.OpenOwn(real)
}

// openLock opens a lock file without locking it.
func openLock(dir *os.File, name string) (*os.File, error) {
	return openFile(dir, name, unix.O_CREAT)
}

func openFile(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// lock locks a file. The kernel releases it with the last descriptor. The error
// is EWOULDBLOCK if another holds it and how has LOCK_NB.
func lock(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
