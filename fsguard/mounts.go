package fsguard

import (
	"path/filepath"
	"strings"
)

// mount is one line of the mount table.
type mount struct {
	id, parent int
	device     string // identifies the file system
	point      string
	kind       string
}

// mounts is the mount table at one moment.
type mounts struct {
	list  []mount
	below map[int][]int // by a mount's id, the mounts on it
	root  int           // index in list; -1 if unknown
	// remote is true if any file system is not local.
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
		// The kernel's own mounts, such as the one of binfmt_misc, belong to no
		// user.
		if !isLocal(one.kind) && !within("/proc", one.point) && !within("/sys", one.point) {
			m.remote = true
		}
	}
	return m
}

// at is the mount of a clean path without symlinks. If the path passes a remote
// mount, at is the last of those, because the kernel looks up names there too.
// It is nil if that is unknown. A remote root counts only for what is directly
// on it: without the root nothing here runs at all.
func (m *mounts) at(path string) *mount {
	if m.root < 0 {
		return nil
	}
	at, remote := m.root, -1
	for range m.list {
		if at != m.root && !isLocal(m.list[at].kind) {
			remote = at
		}
		next := -1
		for _, i := range m.below[m.list[at].id] {
			// The first mount on the way. Of several at one place the later one
			// covers the earlier one, on which it is mounted.
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

// remoteOf is the file system of a clean path without symlinks, if the helper
// must make calls on it; otherwise nil. It asks once whether the table has changed.
func remoteOf(path string) *remote { return table().remoteOf(path) }

func (m *mounts) remoteOf(path string) *remote {
	if !m.remote || !filepath.IsAbs(path) {
		return nil
	}
	at := m.at(filepath.Clean(path))
	if at == nil || isLocal(at.kind) {
		return nil
	}
	return remoteNamed(at.device, at.kind)
}

func anyRemote() bool { return table().remote }
