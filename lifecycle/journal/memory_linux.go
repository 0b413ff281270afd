package journal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// makeMemoryFile makes a file without a name, locked and opened twice. It is in
// memory, or in the temporary directory if /proc cannot open it a second time.
func makeMemoryFile() (*journalFile, error) {
	fd, err := unix.MemfdCreate("sandbox-sidecar-journal", unix.MFD_CLOEXEC)
	if err != nil {
		return makeUnnamedFile()
	}
	file := os.NewFile(uintptr(fd), "journal")
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		file.Close()
		return makeUnnamedFile()
	}
	made := &journalFile{file: file, reader: os.NewFile(uintptr(again), "journal")}
	if err := Lock(file, unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, file.Close(), made.reader.Close())
	}
	return made, nil
}
