package fsguard

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// isLocal: mounts with MNT_LOCAL get this kind here.
func isLocal(kind string) bool { return kind == "local" }

// tableLife is how long the table is reused: nothing reports a change.
const tableLife = 100 * time.Millisecond

var mountTable struct {
	mu   sync.Mutex // guards the fields below
	last *mounts
	read time.Time
}

// table is the recent mount table. The kernel has it in memory (MNT_NOWAIT,
// getfsstat(2)).
func table() *mounts {
	t := &mountTable
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && time.Since(t.read) < tableLife {
		return t.last
	}
	n, err := unix.Getfsstat(nil, unix.MNT_NOWAIT)
	found := make([]unix.Statfs_t, n+8)
	if err == nil {
		n, err = unix.Getfsstat(found, unix.MNT_NOWAIT)
	}
	if err != nil {
		n = 0
	}
	t.last, t.read = newMounts(asTree(found[:n])), time.Now()
	return t.last
}

// asTree makes every mount a child of the nearest one above it. That is enough,
// because nothing covers another mount.
func asTree(found []unix.Statfs_t) []mount {
	var list []mount
	for i := range found {
		kind := unix.ByteSliceToString(found[i].Fstypename[:])
		if found[i].Flags&unix.MNT_LOCAL != 0 {
			kind = "local"
		}
		point := unix.ByteSliceToString(found[i].Mntonname[:])
		list = append(list, mount{id: i + 1, device: point, point: point, kind: kind})
	}
	for i := range list {
		for _, above := range list {
			// The nearest one above it.
			if above.id != list[i].id && within(above.point, list[i].point) &&
				(list[i].parent == 0 || len(above.point) > len(list[list[i].parent-1].point)) {
				list[i].parent = above.id
			}
		}
	}
	return list
}
