//go:build unix

package logqueue

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// maxFile is the size from which on a File begins anew.
const maxFile = 256 << 10

// File is the absolute path of a log, for processes whose output nobody reads. Each
// Write appends lines, or none; several processes may write. It follows no symlink.
type File string

// Write appends whole lines. It makes the file, and the directory around it, if they
// are missing.
func (f File) Write(lines []byte) (int, error) {
	if err := fsguard.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return 0, err
	}
	if _, err := appendLines(string(f), lines); err != nil {
		return 0, err
	}
	return len(lines), nil
}

var errNoFile = errors.New("not a regular file")

var appendLines = fsguard.Define("append to a log", func(path string, lines []byte) ([]byte, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND | unix.O_NOFOLLOW | unix.O_NONBLOCK
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNoFile
	case info.Size() >= maxFile:
		if err := file.Truncate(0); err != nil {
			return nil, err
		}
	}
	_, err = file.Write(lines)
	return nil, err
})
