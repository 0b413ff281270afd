//go:build unix

package fsguard

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// systemStat is the system's own description of a file.
type systemStat = syscall.Stat_t

// onlyDirectory is a flag with which nothing but a directory is opened.
const onlyDirectory = syscall.O_DIRECTORY

// modeIn is the mode of a regular file of an open directory.
func modeIn(dir *os.File, entry fs.DirEntry) (fs.FileMode, error) {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), entry.Name(), &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return fs.ModeIrregular, nil // another file has taken its place
	}
	return fs.FileMode(stat.Mode) & fs.ModePerm, nil
}
