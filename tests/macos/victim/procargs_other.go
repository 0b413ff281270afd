//go:build unix && !darwin

package main

import (
	"os"
	"path/filepath"
	"strconv"
)

// procargs reads a file of a process, such as environ.
func procargs(name string, pid int) ([]byte, error) {
	return os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
}
