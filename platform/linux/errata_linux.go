package linux

import ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

// fixedErrata returns the faults that the kernel has fixed, as bits; see
// unfixedErrata.
func fixedErrata() int {
	fixed, err := ll.LandlockGetErrata()
	if err != nil {
		return 0
	}
	return fixed
}
