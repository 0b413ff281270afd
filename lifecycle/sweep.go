//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mostJournals bounds how many journals one sweep looks at. The next sweep goes
// on.
const mostJournals = 1000

// Sweep ends and removes whatever dead sidecars of this user have left. It
// touches nothing of a living one's, and nothing that a journal names by a
// number which may be a stranger's by now. The error says what could not be
// done, and what was found that is wrong.
func Sweep(ctx context.Context, stateDir string) error {
	dir, err := os.Open(stateDir)
	if err != nil {
		return fmt.Errorf("sweep leftovers: %w", err)
	}
	defer dir.Close()
	var failures []error
	for left := mostJournals; left > 0 && ctx.Err() == nil; {
		names, err := dir.Readdirnames(256)
		if len(names) == 0 {
			break
		}
		if err != nil {
			return fmt.Errorf("sweep leftovers: %w", err)
		}
		for _, name := range names {
			// One without a name of its own goes like any other.
			if left > 0 && (strings.HasSuffix(name, journalSuffix) || strings.HasPrefix(name, newJournalPrefix)) {
				left--
				failures = append(failures, clean(ctx, filepath.Join(stateDir, name)))
			}
		}
	}
	return errors.Join(failures...)
}

// clean carries out a journal if it is a dead sidecar's, and removes it. One
// that is in use is left alone.
func clean(ctx context.Context, path string) error {
	file, err := openJournalFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another was faster
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := lock(file, unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return err
	}
	if !names(path, file) {
		return nil // its owner goes on in another file, or somebody has carried it out
	}
	return settle(ctx, file, path)
}

// settle carries out a locked journal and removes it. Where another has done so
// before, there is nothing left to find: everything that is listed has a name
// that is used once. What cannot be ended now keeps the journal, for the next
// sweep.
func settle(ctx context.Context, file *os.File, path string) error {
	read, err := readJournal(ctx, file)
	if err != nil {
		return fmt.Errorf("clean up after a dead sidecar: %w", err)
	}
	doubts := read.doubts(path)
	alone, err := carryOut(ctx, &read.entries, filepath.Dir(path))
	if err != nil {
		return errors.Join(fmt.Errorf("clean up after a dead sidecar: %w", err), doubts)
	}
	if alone > 0 {
		doubts = errors.Join(doubts, fmt.Errorf(
			"clean up after a dead sidecar: journal %q names %d processes by numbers that may be others' by now; they are "+
				"left alone", path, alone))
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return errors.Join(err, doubts)
	}
	return doubts // it has no name, or the state directory is no more
}

// doubts says what is wrong with a journal that is carried out as far as it can
// be read.
func (r *reading) doubts(path string) error {
	var found []error
	if r.cut {
		found = append(found, fmt.Errorf("read journal %q: it is too long, its middle was left out", path))
	}
	if r.senseless > 0 {
		found = append(found, fmt.Errorf("read journal %q: %d lines make no sense", path, r.senseless))
	}
	return errors.Join(found...)
}

// carryOut ends what a journal lists, and returns how many of its process ids
// it has left alone. What is named by a number counts only if the number means
// the same as when it was written: the same start of the machine, the same
// process id namespace, the same process.
func carryOut(ctx context.Context, listed *entries, stateDir string) (alone int, err error) {
	now := here()
	same := listed.origin != nil && !listed.disputed && listed.origin.is(now)
	otherBoot := listed.origin != nil && !listed.disputed && listed.origin.Boot != "" && now.Boot != "" &&
		listed.origin.Boot != now.Boot
	var sessions, subreapers, dirs []record
	marks := map[string]*marked{}
	var failures []error
	for _, r := range listed.list() {
		if ctx.Err() != nil {
			return alone, ctx.Err()
		}
		switch {
		case r.Cgroup != "":
			if !otherBoot { // no cgroup outlives the machine: one of that name would be another's
				failures = append(failures, endCgroup(ctx, r, same))
			}
		case r.Session > 0:
			sessions = append(sessions, r)
		case r.Subreaper > 0:
			subreapers = append(subreapers, r)
		case r.Remove != "":
			dirs = append(dirs, r)
		case r.Mark != "":
			if marks[r.Mark] == nil {
				marks[r.Mark] = &marked{}
			}
			marks[r.Mark].add(r)
		}
	}
	switch {
	case same:
		for _, r := range subreapers {
			failures = append(failures, endSubreaper(ctx, r.Subreaper, r.Start))
		}
	case !otherBoot: // of another boot, everything is dead for certain
		alone += len(sessions) + len(subreapers)
	}
	for _, m := range marks {
		failures = append(failures, endMarked(ctx, *m))
	}
	if same {
		for _, r := range sessions {
			proved, err := sessionOf(r).endProved(ctx)
			if !proved {
				alone++
			}
			failures = append(failures, err)
		}
	}
	for _, r := range dirs {
		if filepath.IsAbs(stateDir) && filepath.Dir(r.Remove) == stateDir && filepath.Clean(r.Remove) == r.Remove {
			// nothing else is ever written here; better a directory too many
			// than one of the user's too few
			failures = append(failures, removeTree(ctx, r.Remove))
		}
	}
	return alone, errors.Join(failures...)
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
