//go:build unix

package lifecycle

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// journal lists what must not outlive this process. Each thing is written down before it comes to be, so that whoever reads the journal
// after our death misses nothing. The lock on the file is held as long as we live: a journal whose lock is free belongs to a dead
// sidecar, which no process id could tell for sure.
type journal struct {
	path string

	mu   sync.Mutex // guards file
	file *os.File   // nil once closed
}

// record is one line of a journal; one field is set, or Session or Keeper with Start.
type record struct {
	// Cgroup is a directory below which everything is to be killed and removed.
	Cgroup string `json:"cgroup,omitempty"`
	// Session is a leader's process id: processes of that session are to be killed. Start is the leader's start time.
	Session int    `json:"session,omitempty"`
	Start   string `json:"start,omitempty"`
	// Keeper is the process id of a keeper, with its Start. It ends its session by itself when we die; when both are killed, Session is what
	// remains to look for.
	Keeper int `json:"keeper,omitempty"`
	// Ended is a session or a keeper that needs no care any more.
	Ended int `json:"ended,omitempty"`
	// Remove is a directory below the state directory.
	Remove string `json:"remove,omitempty"`
	// Mark is the id of a session's fingerprint, MarkDir its directory: processes that carry it are to be killed.
	Mark    string `json:"mark,omitempty"`
	MarkDir string `json:"markDir,omitempty"`
	// Relative is a process of the session of Mark, since the start of the machine that Boot names: what descends from it is to be killed.
	Relative uint64 `json:"relative,omitempty"`
	Boot     string `json:"boot,omitempty"`
	// Unmark is a fingerprint that nobody carries any more.
	Unmark string `json:"unmark,omitempty"`
}

// marked is what a journal says of one fingerprint.
type marked struct {
	fingerprint SessionFingerprint
	relatives   []uint64
	boot        string
}

// add takes in what one line says.
func (m *marked) add(r record) {
	m.fingerprint.ID = r.Mark
	if r.MarkDir != "" {
		m.fingerprint.Dir = r.MarkDir
	}
	if r.Relative != 0 {
		m.relatives, m.boot = append(m.relatives, r.Relative), r.Boot
	}
}

const (
	// newJournalPrefix begins the name of a journal that is not locked yet, and so has nothing in it.
	newJournalPrefix = "new-journal-"
	journalSuffix    = ".journal"
)

// newJournal makes this process's journal in the state directory.
func newJournal(stateDir string) (*journal, error) {
	for {
		file, err := os.CreateTemp(stateDir, newJournalPrefix)
		if err != nil {
			return nil, fmt.Errorf("make journal: %w", err)
		}
		j := &journal{path: file.Name() + journalSuffix, file: file}
		if err = lock(file, 0); err == nil {
			err = os.Rename(file.Name(), j.path)
		}
		if err == nil {
			return j, nil
		}
		file.Close()
		_ = os.Remove(file.Name())
		if !errors.Is(err, fs.ErrNotExist) { // a sweep was there between its birth and its lock, and took it for a dead sidecar's
			return nil, fmt.Errorf("make journal: %w", err)
		}
	}
}

// write adds a record. It reaches the file system before it returns; whether it reaches the disk does not matter, because nothing that
// is listed survives a power cut.
func (j *journal) write(r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return fmt.Errorf("write journal: %w", os.ErrClosed)
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// close removes the journal. Nothing that it lists may be left.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := os.Remove(j.path) // before the lock is given up, or a sweep could take it for a dead sidecar's
	j.file.Close()
	j.file = nil
	return err
}

// Sweep ends and removes whatever dead sidecars of this user have left. It touches nothing of a living one's.
func Sweep(ctx context.Context, stateDir string) error {
	entries, err := os.ReadDir(stateDir)
	if err != nil {
		return fmt.Errorf("sweep leftovers: %w", err)
	}
	var failures []error
	for _, entry := range entries {
		// A new one that is not locked is empty, and goes like one that was carried out.
		if strings.HasSuffix(entry.Name(), journalSuffix) || strings.HasPrefix(entry.Name(), newJournalPrefix) {
			failures = append(failures, clean(ctx, filepath.Join(stateDir, entry.Name())))
		}
	}
	return errors.Join(failures...)
}

// clean carries out a journal if it is a dead sidecar's, and removes it. One that is in use is left alone.
func clean(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another was faster
	}
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	defer file.Close()
	if err := lock(file, unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return err
	}
	return settle(ctx, file, path)
}

// lock takes the lock of a journal: with unix.LOCK_NB as flag at once or not at all, with 0 when its owner has ended.
func lock(file *os.File, flag int) error {
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

// settle carries out a locked journal and removes it. Where another has done so before, there is nothing left to find: everything that
// is listed has a name that is used once. What cannot be ended now keeps the journal, for the next sweep.
func settle(ctx context.Context, file *os.File, path string) error {
	if err := carryOut(ctx, file, filepath.Dir(path)); err != nil {
		return fmt.Errorf("clean up after a dead sidecar: %w", err)
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func carryOut(ctx context.Context, file *os.File, stateDir string) error {
	var cgroups, dirs []string
	sessions, keepers := map[int]string{}, map[int]string{}
	marks := map[string]*marked{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r record
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // the last line of a sidecar that died while writing it: what it would have listed never came to be
		}
		switch {
		case r.Cgroup != "":
			cgroups = append(cgroups, r.Cgroup)
		case r.Session > 0:
			sessions[r.Session] = r.Start
		case r.Keeper > 0:
			keepers[r.Keeper] = r.Start
		case r.Ended > 0:
			delete(sessions, r.Ended)
			delete(keepers, r.Ended)
		case r.Remove != "":
			dirs = append(dirs, r.Remove)
		case r.Mark != "":
			if marks[r.Mark] == nil {
				marks[r.Mark] = &marked{}
			}
			marks[r.Mark].add(r)
		case r.Unmark != "":
			delete(marks, r.Unmark)
		}
	}
	failures := []error{lines.Err()}
	for _, dir := range cgroups {
		failures = append(failures, endCgroup(ctx, dir))
	}
	for pid, start := range keepers {
		failures = append(failures, endKeeper(ctx, pid, start))
	}
	for _, m := range marks {
		failures = append(failures, endMarked(ctx, *m))
	}
	for sid, start := range sessions {
		// A session id is not given away while a process of the session lives. If the leader's start time is another, all of them were gone,
		// and a stranger has the number.
		if now, err := startTime(sid); err == nil && now != start {
			continue
		}
		_, err := endSession(ctx, sid)
		failures = append(failures, err)
	}
	for _, dir := range dirs {
		if filepath.Dir(dir) == stateDir { // nothing else is ever written here; better a directory too many than one of the user's too few
			failures = append(failures, removeTree(dir))
		}
	}
	return errors.Join(failures...)
}
