package review

import (
	"fmt"
	"io/fs"
	"syscall"
)

// changeTime returns the inode's number and the time of its last change.
func changeTime(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
	}
	return ""
}
