package review

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
	// maxSeen bounds what one search may meet, maxViews the views of a directory,
	// and maxSeenFile the bytes of its file.
	maxSeen     = 20_000
	maxViews    = 4
	maxSeenFile = 4 << 20
	// maxSeenDirs and maxSeenAge bound the files.
	maxSeenDirs = 200
	maxSeenAge  = 90 * 24 * time.Hour
)

const (
	whyCame  = "; it has come with a directory that was moved"
	whyUnmet = "the search before this one did not see everything: what was moved here since then is not listed"
)

// seen is what searches of a directory have met.
type seen struct {
	Version int    `json:"version"`
	Top     uint64 `json:"top"`   // identifies the directory
	Views   []view `json:"views"` // one for each way to search it, the newest last
}

// view is what the last search has met that was to find the same and has seen
// everything.
type view struct {
	ID string `json:"id"` // of what it was to find, and where
	// Begun is when the search began, in nanoseconds of Unix time.
	Begun int64 `json:"begun"`
	// Marks are sorted; see mark.
	Marks []uint64 `json:"marks"`
	// Gap: a later search has not seen everything.
	Gap bool `json:"gap,omitempty"`
}

// mark is what a file has as long as it does not change, under any name. Who can
// write it cannot choose it: the kernel alone sets the time. where is what a symlink
// leads to by its names.
func mark(info fs.FileInfo, where string) uint64 {
	sum := sha256.Sum256([]byte(changeTime(info) + where))
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
// for each directory that is searched. No session may write it. "" keeps nothing.
// Nothing is kept of a network disk, whose numbers of inodes need not last.
func (s *State) Remember(dir string) {
	for _, one := range s.all() {
		if one.memory = ""; dir == "" || one.project == "" || !fsguard.Local(one.project) {
			continue
		}
		one.memory = filepath.Join(dir, places.Note(one.project)+".json")
		sum := sha256.Sum256([]byte(one.id + strings.Join(one.tops, "\x00")))
		one.viewID = hex.EncodeToString(sum[:8])
	}
}

// read reads what was met before. What cannot be understood, is about another
// directory, or of the future, counts as nothing.
func (s *State) readSeen() seen {
	none := seen{Version: seenVersion, Top: topOf(s.project)}
	file, err := fsguard.ReadFile(s.memory, maxSeenFile)
	var found seen
	if err != nil || len(file.Data) > maxSeenFile || json.Unmarshal(file.Data, &found) != nil ||
		found.Version != seenVersion || found.Top != none.Top || none.Top == 0 {
		return none
	}
	found.Views = slices.DeleteFunc(found.Views, func(v view) bool { return v.Begun >= time.Now().UnixNano() })
	return found
}

// recall reads what all searches of the session's directories have met before.
func (s *State) recall() {
	for _, one := range s.all() {
		if one.memory != "" {
			one.last = one.readSeen()
		}
	}
}

// before is the view of the same search; nil if there was none.
func (s *State) viewBefore() *view {
	for i := range s.last.Views {
		if s.last.Views[i].ID == s.viewID {
			return &s.last.Views[i]
		}
	}
	return nil
}

// came reports whether a file that the search meets is old and was not met before:
// it has come with a directory around it. where is as for mark.
func (w *search) came(info fs.FileInfo, where string) bool {
	if w.memory == "" {
		return false
	}
	id := mark(info, where)
	w.met = append(w.met, id)
	if w.viewBefore() == nil {
		return false
	}
	newest := int64(0)
	for _, one := range w.last.Views {
		newest = max(newest, one.Begun)
	}
	// What another program made during the first milliseconds of that search counts,
	// too: its time may lie before. See outlast.
	if !changedAt(info).Before(time.Unix(0, newest)) {
		return false
	}
	return !slices.ContainsFunc(w.kin, func(one *State) bool {
		return slices.ContainsFunc(one.last.Views, func(v view) bool {
			_, known := slices.BinarySearch(v.Marks, id)
			return known
		})
	})
}

// keep writes what the search has met. If it has not seen everything, it notes that,
// and the next search says so.
func (w *search) keep(begun time.Time) {
	if w.memory == "" || w.silent {
		return
	}
	w.missed = w.missed || len(w.met) > maxSeen
	if before := w.viewBefore(); before != nil && before.Gap && !w.missed {
		w.list.add(w.project, Changed, reason{why: whyUnmet})
	}
	kept := w.readSeen() // another session may have ended meanwhile
	if kept.Top == 0 {
		return
	}
	now := view{ID: w.viewID, Begun: begun.UnixNano(), Gap: w.missed}
	for i, one := range kept.Views {
		if one.ID != w.viewID {
			continue
		}
		if w.missed || one.Begun > now.Begun {
			now.Begun, now.Marks = one.Begun, one.Marks
		}
		kept.Views = slices.Delete(kept.Views, i, i+1)
		break
	}
	switch {
	case w.missed && now.Marks == nil:
		return // there is nothing to compare with
	case !w.missed && now.Marks == nil:
		slices.Sort(w.met)
		now.Marks = slices.Compact(w.met)
	}
	kept.Views = append(kept.Views, now)
	kept.Views = kept.Views[max(0, len(kept.Views)-maxViews):]
	data, err := json.Marshal(kept)
	if err != nil {
		return
	}
	dir := filepath.Dir(w.memory)
	if err := fsguard.MkdirAll(dir, 0o700); err != nil {
		return // the next search knows less
	}
	if len(kept.Views) == 1 {
		fsguard.Prune(dir, ".json", maxSeenDirs-1, maxSeenAge)
	}
	_ = fsguard.Replace(w.memory, data, 0o600)
	outlast(begun) // what others make once the session has ended is newer
}
