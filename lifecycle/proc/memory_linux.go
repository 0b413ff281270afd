package proc

import (
	"sync"

	"golang.org/x/sys/unix"
)

// MachineMemory is how much memory the machine has, in bytes; 0 if nobody knows.
var MachineMemory = sync.OnceValue(func() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
})
