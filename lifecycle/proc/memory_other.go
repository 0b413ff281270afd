//go:build unix && !linux

package proc

// MachineMemory is not needed where no session's memory can be limited.
func MachineMemory() int64 { return 0 }
