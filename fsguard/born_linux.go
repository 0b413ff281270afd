package fsguard

import "golang.org/x/sys/unix"

// Born is when the file at a path was made, in nanoseconds since 1970; 0 if that is
// not known, as on a file system that may not answer. It follows no symlink at the
// end of the path.
func Born(path string) int64 {
	if !Local(path) {
		return 0
	}
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &stat)
	if err != nil || stat.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)
}
