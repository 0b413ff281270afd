//go:build unix

package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Journal lists what must not outlive this process. Each thing is written down
// before it exists, so that a reader after our death misses nothing. The file
// is locked while we live: a journal whose lock is free belongs to a dead
// sidecar. A process id could not prove that.
//
// Compaction drops what has ended. A new file with what still counts gets the
// name of the old one. Until then the old file is complete, from then on the
// new one is. Both are locked meanwhile.
type Journal struct {
	path string // empty if the journal has no name; then only a process that holds it open can read it

	mu       sync.Mutex // guards the fields below
	file     *os.File   // nil once closed, and if it could not be made
	unmade   error      // why it could not be made; nil otherwise
	reader   *os.File   // the same file, opened again: a process that gets it does not share the lock
	previous *os.File   // the file before; see compact
	entries  entries
	size     int64 // how many bytes were written
	limit    int64 // the size at which the journal is compacted
	torn     bool  // the last line may be incomplete
	// moved is called when the file becomes another one; nil to ignore that.
	moved func(path string, reader *os.File)
}

// Record is one line of a journal: a thing that must not outlive its sidecar, a
// part of one, or the end of either.
type Record struct {
	// Origin is set in the first line only, which holds nothing else.
	Origin *Origin `json:"origin,omitempty"`
	// Kind says which Ender understands the record.
	Kind string `json:"kind,omitempty"`
	// Key identifies the thing among its kind. A later record with the same
	// kind, key and part replaces an earlier one.
	Key string `json:"key,omitempty"`
	// Part identifies a part of the thing. It ends by itself, or with the
	// thing. Empty: the record is about the thing itself.
	Part string `json:"part,omitempty"`
	// Over is true if the thing, or the part, needs no ending any more.
	Over bool `json:"over,omitempty"`
	// Data is what else the Ender needs to know.
	Data json.RawMessage `json:"data,omitempty"`
}

// NewRecord describes a thing. The data must be representable in JSON; nil
// means none.
func NewRecord(kind, key string, data any) Record {
	return NewPart(kind, key, "", data)
}

// NewPart describes a part of a thing.
func NewPart(kind, key, part string, data any) Record {
	r := Record{Kind: kind, Key: key, Part: part}
	if data != nil {
		text, err := json.Marshal(data)
		if err != nil {
			panic(err) // a type that JSON cannot represent is a mistake in this program
		}
		r.Data = text
	}
	return r
}

// Ended records that a thing, with its parts, needs no ending any more.
func Ended(kind, key string) Record { return EndedPart(kind, key, "") }

// EndedPart records that a part needs no ending any more.
func EndedPart(kind, key, part string) Record {
	return Record{Kind: kind, Key: key, Part: part, Over: true}
}

// Decode reads a record's data.
func (r Record) Decode(data any) error {
	if err := json.Unmarshal(r.Data, data); err != nil {
		return fmt.Errorf("read %s %q in journal, perhaps of another version: %w", r.Kind, r.Key, err)
	}
	return nil
}

const (
	// UnnamedPrefix begins the name of a journal that is not complete yet. Its
	// sidecar may have died meanwhile.
	UnnamedPrefix = "new-journal-"
	// Suffix ends the name of every journal.
	Suffix = ".journal"
	// leastCompaction is the size below which a journal is not compacted.
	leastCompaction = 32 << 10
	// mostAttempts bounds how often a journal is made again because a sweep has
	// taken it for a dead sidecar's.
	mostAttempts = 100
)

// New makes this process's journal in the state directory.
func New(stateDir string) (*Journal, error) {
	j := &Journal{}
	origin := Here()
	j.entries.apply(Record{Origin: &origin})
	j.unmade = j.begin(stateDir, "")
	return j, j.unmade
}

// begin continues the journal in a new file of a directory. The file gets the
// given path, or a new one if that is empty. If it fails, the journal is as
// before.
func (j *Journal) begin(dir, path string) error {
	text, err := j.entries.text()
	if err != nil {
		return err
	}
	for range mostAttempts {
		err = j.beginOnce(dir, path, text)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		// Either a sweep came between making and locking the file, and took it
		// for a dead sidecar's, or the directory is gone.
		if _, there := os.Lstat(dir); there != nil {
			break
		}
	}
	return err
}

func (j *Journal) beginOnce(dir, path string, text []byte) error {
	made, err := makeJournal(dir)
	if err != nil {
		return err
	}
	name := made.file.Name()
	if path == "" {
		path = name + Suffix
	}
	if _, err = made.file.Write(text); err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		made.close()
		_ = os.Remove(name)
		return fmt.Errorf("make journal: %w", err)
	}
	j.goOn(made, path, len(text))
	return nil
}

// goOn changes to a file with the same contents as the one before.
func (j *Journal) goOn(made *journalFile, path string, size int) {
	unread, unlocked := j.reader, j.previous
	// The old file stays locked until the next change. A sweep that opened it
	// under its name, and gets its lock after the name is another file's, might
	// take it for a dead sidecar's. Sweep checks the name again, but older
	// versions do not.
	j.previous = j.file
	j.file, j.reader, j.path, j.unmade = made.file, made.reader, path, nil
	j.size, j.limit, j.torn = int64(size), max(leastCompaction, 4*int64(size)), false
	if j.moved != nil {
		j.moved(j.path, j.reader)
	}
	for _, file := range []*os.File{unread, unlocked} {
		if file != nil {
			file.Close()
		}
	}
}

// journalFile is a file that is locked, and opened twice.
type journalFile struct{ file, reader *os.File }

func (f *journalFile) close() {
	f.file.Close()
	if f.reader != nil {
		f.reader.Close()
	}
}

// makeJournal makes an empty file in a directory, under a temporary name.
func makeJournal(dir string) (*journalFile, error) {
	file, err := os.CreateTemp(dir, UnnamedPrefix)
	if err != nil {
		return nil, fmt.Errorf("make journal: %w", err)
	}
	made := &journalFile{file: file}
	if err = Lock(file, 0); err == nil {
		made.reader, err = openAgain(file)
	}
	if err != nil {
		made.close()
		_ = os.Remove(file.Name())
		return nil, fmt.Errorf("make journal: %w", err)
	}
	return made, nil
}

// openAgain opens a file by its name, if the name still leads to it.
func openAgain(file *os.File) (*os.File, error) {
	again, err := Open(file.Name())
	if err != nil {
		return nil, err
	}
	first, err := file.Stat()
	if err == nil {
		var second os.FileInfo
		if second, err = again.Stat(); err == nil && !os.SameFile(first, second) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		again.Close()
		return nil, err
	}
	return again, nil
}

// NewMemory makes a journal that is in no directory. A process that holds it
// open can read it, the next sidecar cannot.
func NewMemory() (*Journal, error) {
	j := &Journal{}
	origin := Here()
	j.entries.apply(Record{Origin: &origin})
	j.unmade = j.toMemory()
	return j, j.unmade
}

// withoutFile is the error of a change of a journal that has no file.
func (j *Journal) withoutFile() error {
	if j.unmade != nil {
		return j.unmade
	}
	return fmt.Errorf("write journal: %w", os.ErrClosed)
}

// toMemory continues the journal without a name. It tries to remove the old
// file.
func (j *Journal) toMemory() error {
	text, err := j.entries.text()
	if err != nil {
		return err
	}
	made, err := makeMemoryFile()
	if err != nil {
		return fmt.Errorf("make journal: %w", err)
	}
	if _, err := made.file.Write(text); err != nil {
		made.close()
		return fmt.Errorf("make journal: %w", err)
	}
	old := j.path
	j.goOn(made, "", len(text))
	if old != "" {
		_ = os.Remove(old)
	}
	return nil
}

// Write adds a record. The file system has it before Write returns. Whether the
// disk has it does not matter, because nothing that is listed survives a power
// cut.
func (j *Journal) Write(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return j.withoutFile()
	}
	line = append(line, '\n')
	if j.torn {
		line = append([]byte("\n"), line...)
	}
	n, err := j.file.Write(line)
	j.size += int64(n)
	if err != nil {
		j.torn = true
		return fmt.Errorf("write journal: %w", err)
	}
	j.torn = false
	j.entries.apply(r)
	if j.size >= j.limit {
		j.compact()
	}
	return nil
}

// compact drops what has ended. If that fails, the journal continues as it is.
// The lock is held.
func (j *Journal) compact() {
	var err error
	if j.path == "" {
		err = j.toMemory()
	} else {
		err = j.begin(filepath.Dir(j.path), j.path)
	}
	if err != nil {
		j.limit = 2 * j.size
	}
}

// OnMove calls a function with the journal's file now, and again whenever the
// file becomes another one. The reader stays open until the next call.
func (j *Journal) OnMove(moved func(path string, reader *os.File)) {
	_ = j.rewrite(func() error {
		moved(j.path, j.reader)
		j.moved = moved
		return nil
	})
}

// MoveTo continues the journal in a directory, under a new name.
func (j *Journal) MoveTo(dir string) error {
	return j.rewrite(func() error { return j.begin(dir, "") })
}

// MoveToMemory continues the journal without a name.
func (j *Journal) MoveToMemory() error { return j.rewrite(j.toMemory) }

// DropFile continues the journal without a name, if it has one.
func (j *Journal) DropFile() error {
	return j.rewrite(func() error {
		if j.path == "" {
			return nil
		}
		return j.toMemory()
	})
}

// rewrite calls a function that changes the file, with the lock held.
func (j *Journal) rewrite(do func() error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return j.withoutFile()
	}
	return do()
}

// InPlace reports whether the journal's name still leads to it. It is false for
// a journal without a name.
func (j *Journal) InPlace() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file != nil && j.path != "" && names(j.path, j.file)
}

// names reports whether a path leads to an open file, without following a link.
func names(path string, file *os.File) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	open, err := file.Stat()
	return err == nil && os.SameFile(there, open)
}

// Path is the journal's name; empty if it has none.
func (j *Journal) Path() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.path
}

// Compact drops what has ended now. That also happens by itself from time to
// time.
func (j *Journal) Compact() error {
	return j.rewrite(func() error { j.compact(); return nil })
}

// Close removes the journal. Nothing that it lists may be left.
func (j *Journal) Close() error { return j.end(true) }

// Leave gives up the lock: a reader of the journal then ends what is left.
func (j *Journal) Leave() error { return j.end(false) }

func (j *Journal) end(remove bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	var err error
	if remove && j.path != "" && names(j.path, j.file) {
		err = os.Remove(j.path) // before the lock is free, or a sweep could take it for a dead sidecar's
	}
	for _, file := range []*os.File{j.previous, j.reader, j.file} {
		if file != nil {
			// A child that is just being started shares the lock until it execs.
			_ = unix.Flock(int(file.Fd()), unix.LOCK_UN)
			file.Close()
		}
	}
	j.file, j.reader, j.previous = nil, nil, nil
	return err
}

// Lock takes the lock of a journal. With unix.LOCK_NB as flag it fails if the
// lock is taken; with 0 it waits until the owner has ended.
func Lock(file *os.File, flag int) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|flag)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("lock journal: %w", err)
		}
	}
}
