package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// maxFileSize bounds a settings file. Zed's default settings, every comment included, are 100 KiB.
const maxFileSize = 4 << 20

// signature changes whenever a file's content or readability may have. It is comparable.
type signature struct {
	dev, ino            uint64
	size                int64
	mode                fs.FileMode
	mtime               int64 // nanoseconds since 1970
	ctimeSec, ctimeNsec int64
}

// racy reports whether the file was changed so shortly ago that it may change again without changing the signature.
func (s signature) racy() bool {
	touched := max(s.mtime, time.Unix(s.ctimeSec, s.ctimeNsec).UnixNano())
	return time.Now().UnixNano()-touched < racyWindow.Nanoseconds()
}

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = fmt.Errorf("larger than %d MiB", maxFileSize>>20)
	errUnsteady   = errors.New("it keeps changing while it is read")
)

// readFile reads a settings file and the signature of what was read. Symlinks are followed, as dotfile managers need it.
func readFile(path string) ([]byte, signature, error) {
	// O_NONBLOCK: without it, opening a FIFO waits for a writer, perhaps for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, signature{}, err
	}
	defer file.Close()
	for range 3 {
		info, err := file.Stat()
		if err != nil {
			return nil, signature{}, err
		}
		before := signatureOf(info)
		if !info.Mode().IsRegular() {
			return nil, before, errNotRegular
		}
		if info.Size() > maxFileSize {
			return nil, before, errTooLarge
		}
		// The limit holds for the read too: the file may grow meanwhile.
		data, err := io.ReadAll(io.NewSectionReader(file, 0, maxFileSize+1))
		if err != nil {
			return nil, before, err
		}
		if len(data) > maxFileSize {
			return nil, before, errTooLarge
		}
		info, err = file.Stat()
		if err != nil {
			return nil, before, err
		}
		if signatureOf(info) == before {
			return data, before, nil
		}
	}
	return nil, signature{}, errUnsteady
}

// missing reports whether the error means that there is no such file. A path that leads through a file has none either.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// cause strips the operation and the path from a system error: the diagnostic already stands at the file.
func cause(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}
