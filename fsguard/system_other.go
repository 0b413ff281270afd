//go:build !unix

package fsguard

import (
	"io/fs"
	"os"
)

// systemStat is empty on this system.
type systemStat struct{}

// onlyDirectory is a flag with which nothing but a directory is opened.
const onlyDirectory = 0

// modeIn is the mode of a regular file of an open directory.
func modeIn(_ *os.File, entry fs.DirEntry) (fs.FileMode, error) {
	info, err := entry.Info()
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}
