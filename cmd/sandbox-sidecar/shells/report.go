//go:build unix

package shells

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ReportVariable names the file that gets what this program says of a command
// line, if it is set. An editor shows it to the user. On standard error it would
// be mixed with the command's output, which the editor may write into a text.
const ReportVariable = "SANDBOX_SHELL_REPORT"

var errNotOwn = errors.New("expected a regular file that only you can write")

// OpenReport opens the file that ReportVariable names. It must exist in dir,
// places.User.Reports, so that whoever sets the variable has nothing else
// appended to. Only the user may write it: others could forge reports, or read
// them from a pipe.
func OpenReport(path, dir string) (*os.File, error) {
	if dir == "" || filepath.Dir(path) != dir {
		return nil, fmt.Errorf("%s: expected a file in %q, found %q", ReportVariable, dir, path)
	}
	file, err := openIn(dir, filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("%s: open %s: %w", ReportVariable, path, err)
	}
	info, err := file.Stat()
	if err == nil {
		stat := info.Sys().(*syscall.Stat_t)
		own := int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
		if !info.Mode().IsRegular() || !own || stat.Nlink != 1 {
			err = errNotOwn
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %s: %w", ReportVariable, path, err)
	}
	return file, nil
}

// openIn opens a file of a directory. Neither may be a symlink.
func openIn(dir, name string) (*os.File, error) {
	parent, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(parent)
	// O_NONBLOCK: a pipe without a reader must not hold up the command.
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(parent, name, flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir, name)), nil
}
