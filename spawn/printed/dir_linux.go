package printed

import (
	"os"
	"strconv"
)

// DirOf is the working directory of a process; "" if it cannot be read.
func DirOf(pid int) string {
	dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return ""
	}
	return dir
}
