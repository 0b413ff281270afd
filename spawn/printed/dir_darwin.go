package printed

import "github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/libsystem"

// DirOf is the working directory of a process; "" if it cannot be read.
func DirOf(pid int) string {
	dir, err := libsystem.WorkingDir(pid)
	if err != nil {
		return ""
	}
	return dir
}
