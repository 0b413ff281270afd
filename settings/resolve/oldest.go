package resolve

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// ErrTooManyNames means that FS.Oldest has not compared the names of a directory,
// because they are more than MaxNames. The kernel lists names in no order, so any of
// them may be the oldest.
var ErrTooManyNames = errors.New("the directory holds too many names to compare")

// OldestBy is FS.Oldest of a lister, and of when the inode of a file last changed.
// The lister may stop after any number of names above MaxNames.
func OldestBy(
	list func(dir string) ([]string, error), changed func(path string) (time.Time, error), dir, file string, most int,
) ([]string, error) {
	names, err := list(dir)
	switch {
	case len(names) > 0 && most <= 0:
		return nil, cmp.Or(err, ErrNotAllFound)
	case len(names) > MaxNames:
		return nil, ErrTooManyNames
	}
	type entry struct {
		name string
		at   time.Time
		has  int // 1: it has no such file
	}
	var entries []entry
	for _, name := range names {
		one := entry{name: name}
		var missing error
		if one.at, missing = changed(filepath.Join(dir, name, file)); missing != nil {
			one.has = 1
		}
		entries = append(entries, one)
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.has, b.has), a.at.Compare(b.at), cmp.Compare(a.name, b.name))
	})
	names = names[:0:0]
	for _, one := range entries[:min(len(entries), most)] {
		names = append(names, one.name)
	}
	if err == nil && len(entries) > most {
		err = ErrNotAllFound
	}
	return names, err
}

func oldest(dir, file string, most int) ([]string, error) {
	bound := MaxNames + 1
	if most <= 0 {
		bound = 1 // whether there is any
	}
	list := func(dir string) ([]string, error) { return namesUpTo(dir, bound) }
	return OldestBy(list, func(path string) (time.Time, error) {
		// Behind a symlink the file may be an older one than any that is made now.
		info, err := fsguard.LstatPlain(filepath.Dir(path))
		if err == nil && !info.IsDir() {
			return time.Time{}, fs.ErrNotExist
		}
		if err == nil {
			info, err = fsguard.LstatPlain(path)
		}
		if err != nil {
			return time.Time{}, err
		}
		return changedAt(info), nil
	}, dir, file, most)
}
