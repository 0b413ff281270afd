package fsguard

import (
	"path/filepath"
	"strings"
)

// mount is a line of the table of mounts.
type mount struct {
	id, parent int
	device     string // names the file system
	point      string
	kind       string
}

// mounts is a table of mounts at one moment.
type mounts struct {
	list  []mount
	below map[int][]int // by a mount's id, those on it
	root  int           // of list; -1 where it is not known
	// remote is true where some are not of this machine alone.
	remote bool
}

func newMounts(list []mount) *mounts {
	m := &mounts{list: list, below: map[int][]int{}, root: -1}
	known := map[int]bool{}
	for _, one := range list {
		known[one.id] = true
	}
	for i, one := range list {
		if one.parent != one.id {
			m.below[one.parent] = append(m.below[one.parent], i)
		}
		if one.point == "/" && (!known[one.parent] || one.parent == one.id) {
			m.root = i
		}
		// What the kernel mounts for itself, such as the place of binfmt_misc,
		// is nobody's.
		if !localKinds[one.kind] && !within("/proc", one.point) && !within("/sys", one.point) {
			m.remote = true
		}
	}
	return m
}

// at is the mount that a clean path without symlinks is on, or the last one on
// the way to it that is not of this machine alone, since the kernel looks up
// names there as well; nil if that is not known. A root of that kind counts
// only for what is on it itself: without it nothing here runs at all.
func (m *mounts) at(path string) *mount {
	if m.root < 0 {
		return nil
	}
	at, remote := m.root, -1
	for range m.list {
		if at != m.root && !localKinds[m.list[at].kind] {
			remote = at
		}
		next := -1
		for _, i := range m.below[m.list[at].id] {
			// The one that is met first on the way. Of several at one place the
			// later covers the earlier, on which it is mounted.
			if within(m.list[i].point, path) && (next < 0 || len(m.list[i].point) < len(m.list[next].point)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		at = next
	}
	if remote >= 0 {
		at = remote
	}
	return &m.list[at]
}

// within reports whether a path is a directory or below it. Both are clean.
func within(dir, path string) bool {
	return dir == path || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// remoteOf is the file system of a clean path without symlinks, where calls on
// it are not to be made here; else nil.
func remoteOf(path string) *remote {
	if !filepath.IsAbs(path) || !anyRemote() {
		return nil
	}
	at := table().at(filepath.Clean(path))
	if at == nil || localKinds[at.kind] {
		return nil
	}
	return remoteNamed(at.device, at.kind)
}

func anyRemote() bool { return table().remote }
