//go:build unix

package message

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var errNotOwn = errors.New("it is not a directory of this user alone (mode 0700)")

// OpenOwn opens the directory of the overlays, given by its real path, if it
// belongs to the user alone.
func OpenOwn(real string) (*os.File, error) {
	file, err := os.OpenFile(real, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := checkOwn(file); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func checkOwn(dir *os.File) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return &os.PathError{Op: "use", Path: dir.Name(), Err: errNotOwn}
	}
	return nil
}
