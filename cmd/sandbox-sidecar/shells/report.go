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

// OpenReport opens the file that ReportVariable names. It must exist, and only
// the user may write it: others could forge reports, or read them from a pipe.
func OpenReport(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s: expected an absolute path, found %q", ReportVariable, path)
	}
	// O_NONBLOCK: a pipe without a reader must not hold up the command.
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ReportVariable, err)
	}
	info, err := file.Stat()
	if err == nil {
		stat := info.Sys().(*syscall.Stat_t)
		if !info.Mode().IsRegular() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
			err = errNotOwn
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %s: %w", ReportVariable, path, err)
	}
	return file, nil
}
