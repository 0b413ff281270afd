//go:build unix

package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// makeUnnamedFile makes a file and removes its name before anything is written
// to it. Nobody finds it by a name, although sessions may read and write
// temporary directories.
func makeUnnamedFile() (*journalFile, error) {
	file, err := os.CreateTemp("", UnnamedPrefix)
	if err != nil {
		return nil, err
	}
	again, err := openAgain(file)
	err = errors.Join(err, os.Remove(file.Name()))
	if err == nil {
		err = Lock(file, unix.LOCK_NB)
	}
	if err != nil {
		made := journalFile{file, again}
		made.close()
		return nil, err
	}
	return &journalFile{file, again}, nil
}
