package review

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
)

// What lies in a directory is as old as before if the directory is moved. So a
// search keeps what it has met, and the next one knows what was somewhere else:
// where no search looks, such as node_modules, or outside of what is searched. See
// docs/design/tripwires-and-review.md.

const (
	seenVersion = 1
	// maxSeen bounds what is kept of a directory, and maxSeenFile the bytes of its
	// file. With more, nothing is kept.
	maxSeen     = 20_000
	maxSeenFile = 1 << 20
	// maxSeenDirs and maxSeenAge bound the files.
	maxSeenDirs = 200
	maxSeenAge  = 90 * 24 * time.Hour
)

// seen is what a search has met that has seen everything.
type seen struct {
	Version int    `json:"version"`
	Top     uint64 `json:"top"` // identifies the directory that was searched
	// Begun is when the search began, in nanoseconds of Unix time.
	Begun int64 `json:"begun"`
	// Marks are sorted; see mark.
	Marks []uint64 `json:"marks"`
}

// mark is what a file has as long as it does not change, under any name. Who can
// write it cannot choose it: the kernel alone sets the time.
func mark(info fs.FileInfo) uint64 {
	sum := sha256.Sum256([]byte(changeTime(info)))
	return binary.BigEndian.Uint64(sum[:])
}

// topOf identifies a directory, as long as it is the same; 0 if there is none.
func topOf(dir string) uint64 {
	info, err := fsguard.Lstat(dir)
	if err != nil {
		return 0
	}
	sum := sha256.Sum256([]byte(fmt.Sprint(inode(info))))
	return binary.BigEndian.Uint64(sum[:])
}

// Remember says where searches keep what they have met: a directory of files, one
// for each directory that is searched and what is searched for in it. No session
// may write it. "" keeps nothing.
func (s *State) Remember(dir string) {
	for _, one := range s.all() {
		if one.memory = ""; dir != "" && one.project != "" {
			one.memory = filepath.Join(dir, places.Note(strings.Join(one.tops, "\x00")+one.project)+"-"+one.id+".json")
		}
	}
}

// recall reads what was met before. What cannot be understood, or is about another
// directory, counts as nothing.
func (s *State) recall() {
	for _, one := range s.all() {
		one.last = nil
		if one.memory == "" {
			continue
		}
		file, err := fsguard.ReadFile(one.memory, maxSeenFile)
		var last seen
		if err == nil && json.Unmarshal(file.Data, &last) == nil && last.Version == seenVersion &&
			last.Top != 0 && last.Top == topOf(one.project) && last.Begun < time.Now().UnixNano() {
			one.last = &last
		}
	}
}

// came reports whether a file that the search meets is old and was not met before:
// it has come with a directory around it.
func (w *search) came(info fs.FileInfo) bool {
	if w.memory == "" {
		return false
	}
	id := mark(info)
	w.met = append(w.met, id)
	// What another program made right after that search began counts, too: its time
	// may lie before. See fileTimeLag.
	if w.last == nil || !changedAt(info).Before(time.Unix(0, w.last.Begun)) {
		return false
	}
	return !slices.ContainsFunc(w.kin, func(one *State) bool {
		if one.last == nil {
			return false
		}
		_, known := slices.BinarySearch(one.last.Marks, id)
		return known
	})
}

// keep writes what the search has met, if it has seen everything.
func (w *search) keep(begun time.Time) {
	if w.memory == "" || w.missed || len(w.met) > maxSeen {
		return
	}
	slices.Sort(w.met)
	now := seen{seenVersion, topOf(w.project), begun.UnixNano(), slices.Compact(w.met)}
	if now.Top == 0 || w.last != nil && slices.Equal(w.last.Marks, now.Marks) {
		return // nothing is new: what is kept says as much
	}
	data, err := json.Marshal(now)
	if err != nil {
		return
	}
	dir := filepath.Dir(w.memory)
	if err := fsguard.MkdirAll(dir, 0o700); err != nil {
		return // the next search knows less
	}
	if w.last == nil {
		fsguard.Prune(dir, ".json", maxSeenDirs-1, maxSeenAge)
	}
	_ = fsguard.Replace(w.memory, data, 0o600)
}
