package fsguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrNoHome means that HOME names no directory. A home directory is its
	// user's to make: one that another user has made is closed to that user.
	ErrNoHome = errors.New("the home directory does not exist, and is not made")
	// ErrOthersDirectory means that root would make a directory in one of
	// another user, who could not use it then.
	ErrOthersDirectory = errors.New("root makes no directory there, as it belongs to another user: " +
		"set HOME to root's own")
)

// NotMade reports whether an error is that a directory must not be made, and not
// that it cannot be.
func NotMade(err error) bool { return errors.Is(err, ErrNoHome) || errors.Is(err, ErrOthersDirectory) }

// mayMake returns an error if a directory must not be made: in a home directory
// that does not exist, or by root in a directory of another user. What exists
// already is not judged.
func mayMake(path string) error {
	info, err := Stat(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return nil // making it finds out what is wrong
	}
	home := filepath.Clean(os.Getenv("HOME"))
	if filepath.IsAbs(home) && strings.HasPrefix(filepath.Clean(path)+"/", home+"/") {
		if _, err := Stat(home); errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "mkdir", Path: home, Err: ErrNoHome}
		}
	}
	above := filepath.Clean(path)
	for err != nil && above != filepath.Dir(above) {
		above = filepath.Dir(above)
		if info, err = Stat(above); errors.Is(err, ErrNoAnswer) {
			return err
		}
	}
	if err == nil && othersDirectory(info) {
		return &fs.PathError{Op: "mkdir in", Path: above, Err: ErrOthersDirectory}
	}
	return nil
}
