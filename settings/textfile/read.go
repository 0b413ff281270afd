// Package textfile reads small files whole and notices when they change.
//
// [Read] returns the bytes of a file with the [Signature] of what was read.
// [Replace] writes a file in one step.
package textfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// MaxSize bounds a file in bytes. Zed's default settings are 100 KiB.
const MaxSize = 4 << 20

// racyWindow is how long a change may leave no trace in a file's times: their
// granularity is up to 10 ms on Linux and 2 s on FAT. A file that changed less
// than this before it was read is read again next time.
const racyWindow = 2 * time.Second

// Signature identifies the content of a file. It changes if the content or the
// readability may have changed. Signatures are comparable; the zero value
// belongs to no file.
type Signature struct {
	dev, ino            uint64
	Size                int64
	mode                fs.FileMode
	mtime               int64 // nanoseconds since 1970
	ctimeSec, ctimeNsec int64
}

// Racy reports whether the file changed so recently that the next change may
// leave the signature as it is.
func (s Signature) Racy() bool {
	touched := max(s.mtime, time.Unix(s.ctimeSec, s.ctimeNsec).UnixNano())
	return time.Now().UnixNano()-touched < racyWindow.Nanoseconds()
}

// Why a file is not read.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("larger than 4 MiB") // MaxSize
	errUnsteady   = errors.New("it keeps changing while it is read")
)

// Read returns a file's content and the signature of what it read. It follows
// symlinks, because dotfile managers use them.
func Read(path string) ([]byte, Signature, error) {
	for range 3 {
		read, err := fsguard.ReadFile(path, MaxSize)
		if err != nil {
			return nil, Signature{}, err
		}
		before := SignatureOf(read.Before)
		switch {
		case !read.Before.Mode().IsRegular():
			return nil, before, ErrNotRegular
		case len(read.Data) > MaxSize:
			return nil, before, ErrTooLarge
		case SignatureOf(read.After) == before:
			return read.Data, before, nil
		}
	}
	return nil, Signature{}, errUnsteady
}

// Missing reports whether the error means that there is no such file. This
// includes a path that leads through a regular file.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Cause strips the operation and the path from a system error, for messages
// that name the file themselves.
func Cause(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

var errNotPrivate = errors.New("others than its owner can write it, or it is another user's")

// CheckPrivate returns an error unless the file belongs to the user and nobody
// else can write it.
func CheckPrivate(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return errNotPrivate
	}
	return nil
}
