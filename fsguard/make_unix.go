//go:build unix

package fsguard

import (
	"io/fs"
	"os"
	"syscall"
)

// othersDirectory reports whether this process is root, and a directory is
// another user's and not for everybody, as /tmp is.
func othersDirectory(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Geteuid() == 0 && stat.Uid != 0 && info.Mode()&fs.ModeSticky == 0
}
