package resolve

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// OldestBy is FS.Oldest of a lister, and of when the inode of a file last changed.
func OldestBy(
	list func(dir string) ([]string, error), changed func(path string) (time.Time, error), dir, file string, most int,
) ([]string, error) {
	names, err := list(dir)
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
	return OldestBy(names, func(path string) (time.Time, error) {
		info, err := fsguard.LstatPlain(path)
		if err != nil {
			return time.Time{}, err
		}
		return changedAt(info), nil
	}, dir, file, most)
}
