package review

import (
	"fmt"
	"io/fs"
	"syscall"
)

// changeTime is the time of the inode's last change, and which inode it is.
func changeTime(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Ino, stat.Ctimespec.Sec, stat.Ctimespec.Nsec)
	}
	return ""
}
