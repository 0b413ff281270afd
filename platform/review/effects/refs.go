package effects

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// The bounds of what is read of a repository. Each start of a session waits for
// it.
const (
	maxLoose     = 2000     // files and directories of refs
	maxPacked    = 32 << 20 // bytes of packed-refs
	maxRef       = 64 << 10 // bytes of a file with refs, such as FETCH_HEAD
	maxWorktrees = 64
	maxRefDepth  = 32
	maxKept      = 64
	maxInspected = 100_000 // files of refs beyond maxLoose, when the session ends
	maxFresh     = 256     // new ones among them that are compared
)

// inspectTime bounds the search for new files of refs. Tests have more.
var inspectTime = 500 * time.Millisecond

// rootRefs are the files beside HEAD from which git takes commits, and the
// reflog that "git stash" reads.
var rootRefs = []string{
	"HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD",
	"AUTO_MERGE", "MERGE_AUTOSTASH", "BISECT_START", "rebase-merge/autostash", "rebase-apply/autostash",
	"rebase-merge/orig-head", "rebase-merge/onto",
}

const packedRefs = "packed-refs"

// stashLog holds the entries of the stash but the last.
const stashLog = "logs/refs/stash"

// worktree is the directory of a working tree's own refs and index: that of the
// repository, or one in its "worktrees".
type worktree struct {
	dir   string
	index string    // the signature of its index
	log   string    // that of logs/HEAD
	todo  [2]string // those of todoFiles
}

// todoFiles are the lists of commands of unfinished operations.
var todoFiles = [2]string{"rebase-merge/git-rebase-todo", "sequencer/todo"}

// snapshot is the state of the refs of one repository.
type snapshot struct {
	scope    Scope
	previous *snapshot // only while it is read
	// signatures are those of the files in loose, and of packed-refs.
	signatures map[string]string
	// loose has the text of each file, by its name in the repository's directory.
	loose map[string]string
	// packed is the text of packed-refs.
	packed []byte
	// reftable is what names the tables of a repository that has those instead,
	// and their signatures.
	reftable  string
	worktrees []worktree
	dirs      []string // the directories of all that, absolute
	// crowded: there is more than is read, or it cannot be read.
	crowded bool
	// silent: the file system does not answer.
	silent bool
}

// kept are the states that were read last. Many sessions start in a repository,
// and few of its refs change in between.
var kept struct {
	sync.Mutex
	of map[string]*snapshot
}

// read reads the state of a repository; nil if there is none, or if the file
// system does not answer. What has not
// changed since a previous state is not read again.
func read(repository string, scope Scope, previous *snapshot) *snapshot {
	if _, err := fsguard.Lstat(filepath.Join(repository, "HEAD")); err != nil {
		return nil
	}
	kept.Lock()
	if previous == nil {
		previous = kept.of[repository]
	}
	kept.Unlock()
	s := &snapshot{
		scope: scope, previous: previous, loose: map[string]string{}, signatures: map[string]string{},
	}
	s.worktree(repository, "")
	s.directory(repository, "refs", 1)
	worktrees := filepath.Join(repository, "worktrees")
	names, err := fsguard.ReadDir(worktrees, maxWorktrees+1)
	if err == nil {
		s.dirs = append(s.dirs, worktrees)
	}
	s.crowded = s.crowded || len(names) > maxWorktrees
	s.failed(err)
	for _, one := range names[:min(len(names), maxWorktrees)] {
		s.worktree(repository, "worktrees/"+one.Name+"/")
		s.directory(repository, "worktrees/"+one.Name+"/refs", 1)
	}
	s.packed = s.text(repository, packedRefs, maxPacked)
	s.previous = nil
	if s.silent {
		return nil // nothing is claimed about it
	}
	kept.Lock()
	defer kept.Unlock()
	if kept.of == nil || len(kept.of) >= maxKept {
		kept.of = map[string]*snapshot{}
	}
	kept.of[repository] = s
	return s
}

// failed notes an error of something that may not be there.
func (s *snapshot) failed(err error) {
	s.crowded = s.crowded || unread(err)
	s.silent = s.silent || errors.Is(err, fsguard.ErrNoAnswer)
}

// unread reports whether something that is there could not be read.
func unread(err error) bool {
	return err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// worktree reads what a working tree has for itself.
func (s *snapshot) worktree(repository, prefix string) {
	dir := filepath.Join(repository, prefix)
	s.dirs = append(s.dirs, dir, filepath.Join(dir, "logs/refs"))
	for _, name := range rootRefs {
		s.file(repository, prefix+name)
	}
	if prefix == "" {
		s.file(repository, stashLog)
	}
	tables := string(s.text(repository, prefix+"reftable/tables.list", maxRef))
	s.reftable += tables
	if tables != "" {
		s.dirs = append(s.dirs, filepath.Join(dir, "reftable"))
	}
	for name := range strings.Lines(tables) {
		s.reftable += s.sign(dir, "reftable/"+strings.TrimSpace(name)) + "\n"
	}
	w := worktree{dir: dir, index: s.sign(dir, "index"), log: s.sign(dir, "logs/HEAD")}
	for i, name := range todoFiles {
		w.todo[i] = s.sign(dir, name)
	}
	s.worktrees = append(s.worktrees, w)
}

// sign is the signature of a file; "" if there is none.
func (s *snapshot) sign(dir, name string) string {
	info, err := fsguard.Lstat(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return s.scope.Signature(info)
}

// file reads one file with refs.
func (s *snapshot) file(repository, name string) {
	most := maxRef
	if name == stashLog {
		most = 1 << 20
	}
	if text := s.text(repository, name, most); text != nil {
		s.loose[name] = string(text)
	}
}

// text reads a file of a repository; nil if there is none.
func (s *snapshot) text(repository, name string, most int) []byte {
	path := filepath.Join(repository, name)
	info, err := fsguard.Lstat(path)
	if err == nil && info.Mode().IsRegular() {
		s.signatures[name] = s.scope.Signature(info)
		if text, known := s.known(name, info); known {
			return text
		}
	}
	if err == nil {
		var found fsguard.File
		if found, err = fsguard.ReadFile(path, most); err == nil && len(found.Data) <= most {
			return found.Data
		}
	}
	s.crowded = s.crowded || err == nil
	s.failed(err)
	return nil
}

// known returns what the previous state has of a file, if that was old then
// already: what is new can change again without another time.
func (s *snapshot) known(name string, info fs.FileInfo) ([]byte, bool) {
	p := s.previous
	if p == nil || p.signatures[name] != s.signatures[name] || p.scope.New(info) {
		return nil, false
	}
	if name == packedRefs {
		return p.packed, p.packed != nil
	}
	text, known := p.loose[name]
	return []byte(text), known
}

// directory reads the refs in a directory.
func (s *snapshot) directory(repository, dir string, depth int) {
	if len(s.loose) >= maxLoose || depth > maxRefDepth {
		s.crowded = true
		return
	}
	entries, err := fsguard.ReadDir(filepath.Join(repository, dir), maxLoose)
	s.crowded = s.crowded || len(entries) == maxLoose
	s.failed(err)
	if err == nil {
		s.dirs = append(s.dirs, filepath.Join(repository, dir))
	}
	for _, entry := range entries {
		name := dir + "/" + entry.Name
		kind := entry.Type
		if kind&fs.ModeSymlink != 0 { // git follows it
			if info, err := fsguard.Stat(filepath.Join(repository, name)); err == nil {
				kind = info.Mode().Type()
			}
		}
		switch {
		case len(s.loose) >= maxLoose:
			s.crowded = true
			return
		case kind.IsDir():
			s.directory(repository, name, depth+1)
		case strings.HasSuffix(name, ".lock"):
		default:
			s.file(repository, name)
		}
	}
}

// inspection is the search for what has changed among more refs than are read.
type inspection struct {
	*State
	end       time.Time
	inspected int
	// fresh are new files of refs, by their name in the repository's directory.
	fresh []string
	// more: something else has changed, or there is too much to see that.
	more bool
}

// inspect looks until a time for changes in a repository that a snapshot does not
// hold; nil if it holds nothing.
func (s *State) inspect(repository string, known *snapshot, end time.Time) inspection {
	i := inspection{State: s, end: end}
	i.directories(repository, "refs", known)
	for _, name := range []string{packedRefs, "FETCH_HEAD", stashLog} {
		held := known != nil && name == packedRefs && known.packed != nil
		if known != nil && !held {
			_, held = known.loose[name]
		}
		i.more = i.more || !held && i.isNew(repository, name)
	}
	if known == nil {
		for _, name := range slices.Concat(rootRefs, todoFiles[:], []string{"index", "reftable/tables.list"}) {
			i.more = i.more || i.isNew(repository, name)
		}
	}
	names, err := fsguard.ReadDir(filepath.Join(repository, "worktrees"), maxInspected)
	i.more = i.more || unread(err)
	for _, one := range names {
		prefix := "worktrees/" + one.Name + "/"
		if known != nil && slices.ContainsFunc(known.worktrees, func(w worktree) bool {
			return w.dir == filepath.Join(repository, prefix)
		}) {
			continue
		}
		i.directories(repository, prefix+"refs", known)
		for _, name := range slices.Concat(rootRefs, todoFiles[:], []string{"index"}) {
			i.more = i.more || i.isNew(repository, prefix+name)
		}
	}
	return i
}

func (i *inspection) isNew(repository, name string) bool {
	info, err := fsguard.Lstat(filepath.Join(repository, name))
	return unread(err) || err == nil && i.scope.New(info)
}

// directories inspects the files of refs below one. A directory has changed with
// the files that are new in it; if none is, one was removed. A removal beside a new
// one is not noticed.
func (i *inspection) directories(repository, dir string, known *snapshot) {
	for queue := []string{dir}; len(queue) > 0 && !i.more; queue = queue[1:] {
		entries, err := fsguard.ReadDir(filepath.Join(repository, queue[0]), maxInspected)
		if unread(err) {
			i.more = true
			return
		}
		changed, explained := err == nil && i.isNew(repository, queue[0]), false
		for _, entry := range entries {
			name := queue[0] + "/" + entry.Name
			if i.inspected++; i.inspected == maxInspected || time.Now().After(i.end) {
				i.more = true
				return
			}
			if entry.Type.IsDir() {
				queue = append(queue, name)
			}
			if strings.HasSuffix(name, ".lock") || !i.isNew(repository, name) {
				continue
			}
			explained = true
			if entry.Type.IsDir() || known != nil && known.loose[name] != "" {
				continue
			}
			if i.more = len(i.fresh) == maxFresh || !entry.Type.IsRegular(); i.more {
				return
			}
			i.fresh = append(i.fresh, name)
		}
		i.more = i.more || changed && !explained
	}
}

// aligned are two snapshots of which each holds a part of the refs, without those
// that only one happens to hold: after with the fresh ones, and with those of before
// that are there and were not read again; before with those that are as old, and of
// which nothing else is known. more: something could not be read.
func aligned(repository string, before, after *snapshot, fresh []string) (old, now *snapshot, more bool) {
	first, last := *before, *after
	first.loose, last.loose = maps.Clone(before.loose), maps.Clone(after.loose)
	add := func(name string) {
		found, err := fsguard.ReadFile(filepath.Join(repository, name), maxRef)
		switch {
		case err != nil && !unread(err), errors.Is(err, syscall.EISDIR):
		case err != nil || found.Data == nil || len(found.Data) > maxRef:
			more = true
		default:
			last.loose[name] = string(found.Data)
		}
	}
	for _, name := range fresh {
		add(name)
	}
	for name := range before.loose {
		if _, is := after.loose[name]; !is {
			add(name)
		}
	}
	for name, text := range after.loose {
		info, err := fsguard.Lstat(filepath.Join(repository, name))
		if _, was := before.loose[name]; !was && err == nil && !before.scope.New(info) {
			first.loose[name] = text
		}
	}
	return &first, &last, more
}

// values are the values of all refs by name. A file counts more than a line of
// packed-refs. A ref that was packed has the same value.
func (s *snapshot) values() map[string]string {
	all := make(map[string]string, len(s.loose))
	for line := range strings.Lines(string(s.packed)) {
		id, rest := cutID(strings.TrimRight(line, "\r\n"))
		if id == "" || rest == "" || !strings.ContainsRune(" \t\r", rune(rest[0])) {
			continue
		}
		// Of several lines for one name, git may find any.
		if before, several := all[rest[1:]]; several && before != id {
			id = before + "\n" + id
		}
		all[rest[1:]] = id
	}
	for name, text := range s.loose {
		all[name] = strings.TrimRight(text, "\n")
	}
	return all
}

// same reports whether no ref differs, and no index.
func (s *snapshot) same(other *snapshot) bool {
	if s.reftable != other.reftable || string(s.packed) != string(other.packed) ||
		len(s.loose) != len(other.loose) || len(s.worktrees) != len(other.worktrees) {
		return false
	}
	for name, text := range s.loose {
		if now, is := other.loose[name]; !is || now != text {
			return false
		}
	}
	for i := range s.worktrees {
		if s.worktrees[i] != other.worktrees[i] {
			return false
		}
	}
	return true
}

// ids are the objects that the text of a ref names: one, or one for each line,
// of which a reflog has it second.
func ids(name, text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if name == stashLog {
			_, line, _ = strings.Cut(line, " ")
		}
		if id, _ := cutID(line); strings.Trim(id, "0") != "" {
			list = append(list, id)
		}
	}
	return list
}

// cutID cuts the name of an object off the beginning of a line, as git does: it
// takes capitals, and what follows may be anything but another digit. id is ""
// if there is none.
func cutID(line string) (id, rest string) {
	rest = strings.TrimLeft(line, "0123456789abcdefABCDEF")
	id = strings.ToLower(line[:len(line)-len(rest)])
	if !isID(id) {
		return "", line
	}
	return id, rest
}

// isID reports whether text is the name of an object, by SHA-1 or SHA-256.
func isID(text string) bool {
	if len(text) != 40 && len(text) != 64 {
		return false
	}
	return strings.Trim(text, "0123456789abcdef") == ""
}

// target is the object that a ref of these values leads to; "" if to none.
func target(values map[string]string, prefix, name string) string {
	text := strings.TrimSpace(values[prefix+name])
	for range 5 { // as many as git follows
		next, symbolic := strings.CutPrefix(text, "ref:")
		if !symbolic {
			break
		}
		text = strings.TrimSpace(values[strings.TrimSpace(next)])
	}
	id, _ := cutID(text)
	return id
}

// branchOf is the ref that a HEAD names; "" if it names a commit.
func branchOf(values map[string]string, prefix string) string {
	name, symbolic := strings.CutPrefix(strings.TrimSpace(values[prefix+"HEAD"]), "ref:")
	if !symbolic {
		return ""
	}
	return strings.TrimSpace(name)
}
