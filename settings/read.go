package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// maxFileSize bounds a settings file. Zed's default settings, every comment
// included, are 100 KiB.
const maxFileSize = 4 << 20

// signature changes whenever a file's content or readability may have. It is
// comparable.
type signature struct {
	dev, ino            uint64
	size                int64
	mode                fs.FileMode
	mtime               int64 // nanoseconds since 1970
	ctimeSec, ctimeNsec int64
}

// racy reports whether the file was changed so shortly ago that it may change
// again without changing the signature.
func (s signature) racy() bool {
	touched := max(s.mtime, time.Unix(s.ctimeSec, s.ctimeNsec).UnixNano())
	return time.Now().UnixNano()-touched < racyWindow.Nanoseconds()
}

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = fmt.Errorf("larger than %d MiB", maxFileSize>>20)
	errUnsteady   = errors.New("it keeps changing while it is read")
)

// readFile reads a settings file and the signature of what was read. Symlinks
// are followed, as dotfile managers need it.
func readFile(path string) ([]byte, signature, error) {
	for range 3 {
		read, err := fsguard.ReadFile(path, maxFileSize)
		if err != nil {
			return nil, signature{}, err
		}
		before := signatureOf(read.Before)
		switch {
		case !read.Before.Mode().IsRegular():
			return nil, before, errNotRegular
		case len(read.Data) > maxFileSize:
			return nil, before, errTooLarge
		case signatureOf(read.After) == before:
			return read.Data, before, nil
		}
	}
	return nil, signature{}, errUnsteady
}

// missing reports whether the error means that there is no such file. A path
// that leads through a file has none either.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// cause strips the operation and the path from a system error: the diagnostic
// already stands at the file.
func cause(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}
