package review

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// changeTime returns the inode's number and the time of its last change.
func changeTime(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprint(stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
	}
	return ""
}

// changedAt returns the time of the inode's last change.
func changedAt(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return info.ModTime()
}

// inode returns the inode's number, and that of its device; 0 if they are not known.
func inode(info fs.FileInfo) (number, device uint64) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino, stat.Dev
	}
	return 0, 0
}

// outlast waits until new files get times that are not before a moment. The kernel
// uses the time of its last tick (see fileTimeLag), as this clock does.
func outlast(moment time.Time) {
	for range 2 * fileTimeLag / time.Millisecond {
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil || !time.Unix(now.Unix()).Before(moment) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
