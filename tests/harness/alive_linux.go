package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Alive reports whether a process with this pid exists and is not a zombie.
func Alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, after, ok := bytes.Cut(stat, []byte(") "))
	return ok && len(after) > 0 && after[0] != 'Z' && after[0] != 'X'
}
