package fsguard

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Prune removes files from a directory that a program keeps: those whose names end
// in suffix and that have not changed for longer than age, and the oldest of more
// than most. What cannot be removed stays. The caller has found out that the file
// system answers.
func Prune(dir, suffix string, most int, age time.Duration) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type old struct {
		path string
		time time.Time
	}
	var files []old
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), suffix) {
			files = append(files, old{filepath.Join(dir, e.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b old) int {
		return cmp.Or(b.time.Compare(a.time), strings.Compare(a.path, b.path))
	})
	for i, file := range files {
		if i >= most || time.Since(file.time) > age {
			_ = os.Remove(file.path)
		}
	}
}
