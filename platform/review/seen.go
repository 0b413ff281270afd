package review

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
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
	whyCame  = "; it was moved here with a directory"
	whyUnmet = "the last search was another one, or did not see everything: what was moved here since is not listed"
)

// seen is what searches of a directory have met.
type seen struct {
	Version int    `json:"version"`
	Top     uint64 `json:"top"`   // identifies the directory
	Views   []view `json:"views"` // one for each way to search it, the newest last
}

// view is what the last search of its kind has met that has seen everything.
type view struct {
	// ID differs if other names are searched for, and Table if other names of the
	// built-in table are, or in other directories.
	ID    string `json:"id"`
	Table string `json:"table"`
	// Begun is when the search began, or the last process of its session ended, in
	// nanoseconds of Unix time; 0 if there was none that has seen everything.
	Begun int64 `json:"begun"`
	Marks marks `json:"marks"`
	// Gap: a later search has not seen everything.
	Gap bool `json:"gap,omitempty"`
}

// marks are sorted; see mark. As text they are in base64, most significant byte
// first.
type marks []uint64

func (m marks) MarshalText() ([]byte, error) {
	data := make([]byte, 0, 8*len(m))
	for _, one := range m {
		data = binary.BigEndian.AppendUint64(data, one)
	}
	return []byte(base64.StdEncoding.EncodeToString(data)), nil
}

func (m *marks) UnmarshalText(text []byte) error {
	data, err := base64.StdEncoding.DecodeString(string(text))
	*m = nil
	for ; len(data) >= 8; data = data[8:] {
		*m = append(*m, binary.BigEndian.Uint64(data))
	}
	return err
}

func (m marks) has(one uint64) bool {
	_, known := slices.BinarySearch(m, one)
	return known
}

// mark is what a file has as long as it does not change, under any name. Who can
// write it cannot choose it: the kernel alone sets the time. where is what a symlink
// leads to by its names.
func mark(info fs.FileInfo, where string) uint64 {
	sum := sha256.Sum256([]byte(changeTime(info) + where))
	return binary.BigEndian.Uint64(sum[:])
}

// topOf identifies a directory, as long as it is the same, and says on which device
// it is; 0 if there is none.
func topOf(dir string) (id, device uint64) {
	info, err := fsguard.Lstat(dir)
	if err != nil {
		return 0, 0
	}
	number, device := inode(info)
	sum := sha256.Sum256([]byte(fmt.Sprint(number)))
	return binary.BigEndian.Uint64(sum[:]), device
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
		table := one.builtIn
		for _, top := range slices.Sorted(slices.Values(one.tops)) {
			if top != one.project && policy.Contains(one.project, top) { // is searched by itself
				table += "\x00" + top
			}
		}
		sum := sha256.Sum256([]byte(table))
		one.viewTable = hex.EncodeToString(sum[:8])
	}
}

// readSeen reads what was met before. What cannot be understood, is about another
// directory, or of the future, counts as nothing.
func (s *State) readSeen() (seen, uint64) {
	top, device := topOf(s.project)
	none := seen{Version: seenVersion, Top: top}
	file, err := fsguard.ReadFile(s.memory, maxSeenFile)
	var found seen
	if err != nil || len(file.Data) > maxSeenFile || json.Unmarshal(file.Data, &found) != nil ||
		found.Version != seenVersion || found.Top != top || top == 0 {
		return none, device
	}
	found.Views = slices.DeleteFunc(found.Views, func(v view) bool { return v.Begun >= time.Now().UnixNano() })
	return found, device
}

// recall reads what all searches of the session's directories have met before.
func (s *State) recall() {
	for _, one := range s.all() {
		if one.memory != "" {
			one.last, one.device = one.readSeen()
		}
	}
}

// forget frees that.
func (s *State) forget() {
	for _, one := range s.all() {
		one.last = seen{}
	}
}

// lastMet is when the last search that would have met a file began; 0 if there was
// none. ofTable: its name is in the built-in table.
func (s *State) lastMet(ofTable bool) (begun int64) {
	for _, one := range s.last.Views {
		if one.Table == s.viewTable && (ofTable || one.ID == s.id) {
			begun = max(begun, one.Begun)
		}
	}
	return begun
}

// came reports whether a file that the search meets is old and was not met before:
// it has come with a directory around it. where is as for mark, ofTable as for
// lastMet.
func (w *search) came(info fs.FileInfo, where string, ofTable bool) bool {
	if _, device := inode(info); w.memory == "" || device != w.device {
		return false
	}
	id := mark(info, where)
	w.met = append(w.met, id)
	// What another program made during the first milliseconds of that search counts,
	// too: its time may lie before. See outlast.
	begun := w.lastMet(ofTable)
	if begun == 0 || !changedAt(info).Before(time.Unix(0, begun)) {
		return false
	}
	return !slices.ContainsFunc(w.kin, func(one *State) bool {
		return slices.ContainsFunc(one.last.Views, func(v view) bool { return v.Marks.has(id) })
	})
}

// keep writes what the search has met. If it has not seen everything, it notes that,
// and the next search says so.
func (w *search) keep(begun time.Time) {
	if w.memory == "" {
		return
	}
	slices.Sort(w.met)
	w.met = slices.Compact(w.met)
	complete := !w.missed && !w.silent && len(w.met) <= maxSeen
	kept, _ := w.readSeen() // another session may have ended meanwhile
	if kept.Top == 0 {
		return
	}
	same := func(v view) bool { return v.ID == w.id && v.Table == w.viewTable }
	i := slices.IndexFunc(kept.Views, same)
	var before view
	if i >= 0 {
		before = kept.Views[i]
		kept.Views = slices.Delete(kept.Views, i, i+1)
	}
	usable := slices.ContainsFunc(kept.Views, func(v view) bool { return v.Table == w.viewTable && v.Begun > 0 })
	if complete && (before.Gap || i < 0 && len(kept.Views) > 0 && !usable) {
		w.list.add(w.project, Changed, reason{why: whyUnmet})
	}
	now := view{ID: w.id, Table: w.viewTable, Begun: begun.UnixNano(), Marks: w.met}
	switch {
	case !complete:
		now.Begun, now.Marks, now.Gap = before.Begun, before.Marks, true
	case before.Begun > now.Begun: // of a session that has ended later
		now = before
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
	_ = fsguard.ReplaceSoon(w.memory, data, 0o600)
	outlast(begun) // what others make once the session has ended is newer
}
