package caller

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// highest is the highest descriptor that is passed on.
const highest = 1023

// room is what starting a process needs above the highest descriptor and one
// for each of them.
const room = 64

// Inherited returns the descriptors above 2 that the caller has left to this
// process, by Fd and in rising order, and the numbers of those that are too high
// to be passed on, which it closes. Call it once, before anything else is started.
// The others are close-on-exec afterwards.
func Inherited() (files []*os.File, tooHigh []int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, nil // nobody gets any of them: the stage closes what it is not told of
	}
	var numbers []int
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= unix.Stderr {
			continue
		}
		// What Go's runtime and this program have opened is close-on-exec.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		unix.CloseOnExec(fd)
		numbers = append(numbers, fd)
	}
	slices.Sort(numbers)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		limit.Cur = 0 // none is passed on
	}
	for _, fd := range numbers {
		if fd > highest || uint64(fd+2*len(numbers)+room) > limit.Cur {
			tooHigh = append(tooHigh, fd)
			unix.Close(fd) // whoever waits for that does not wait for the program
			continue
		}
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}
	return files, tooHigh
}
