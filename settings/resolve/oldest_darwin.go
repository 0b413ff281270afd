package resolve

import (
	"io/fs"
	"syscall"
	"time"
)

// changedAt is when the inode last changed, which no program can set back. Of a
// remote file it is when the content did.
func changedAt(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctimespec.Unix())
	}
	return info.ModTime()
}
