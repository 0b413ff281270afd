//go:build unix

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mostJournals bounds how many journals one sweep reads. The next sweep
// continues.
const mostJournals = 1000

// Sweep ends and removes whatever dead sidecars of this user have left. It
// touches nothing of a living sidecar, and nothing that a journal names by a
// number which may be another process's by now. The error holds what could not
// be done and what was wrong.
func Sweep(ctx context.Context, stateDir string, enders []Ender) error {
	dir, err := os.Open(stateDir)
	if err != nil {
		return fmt.Errorf("sweep state directory: %w", err)
	}
	defer dir.Close()
	var failures []error
	for left := mostJournals; left > 0 && ctx.Err() == nil; {
		names, err := dir.Readdirnames(256)
		if len(names) == 0 {
			break
		}
		if err != nil {
			return fmt.Errorf("sweep state directory: %w", err)
		}
		for _, name := range names {
			// A journal under its temporary name is treated like any other.
			if left > 0 && (strings.HasSuffix(name, Suffix) || strings.HasPrefix(name, UnnamedPrefix)) {
				left--
				failures = append(failures, clean(ctx, filepath.Join(stateDir, name), enders))
			}
		}
	}
	return errors.Join(failures...)
}

// clean carries out a journal and removes it, if its sidecar is dead. One that
// is in use is left alone.
func clean(ctx context.Context, path string, enders []Ender) error {
	file, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another was faster
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := Lock(file, unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return err
	}
	if !names(path, file) {
		return nil // its owner continues in another file, or another sweep has carried it out
	}
	return Settle(ctx, file, path, enders)
}

// Settle carries out a locked journal and removes it. If another process has
// done so before, nothing is found: every listed thing has a name that is used
// once. If something cannot be ended now, the journal stays for the next sweep.
func Settle(ctx context.Context, file *os.File, path string, enders []Ender) error {
	read, err := readJournal(ctx, file)
	if err != nil {
		return fmt.Errorf("clean up after a dead sidecar: %w", err)
	}
	doubts := read.doubts(path)
	alone, err := carryOut(ctx, read, filepath.Dir(path), enders)
	if err != nil {
		return errors.Join(fmt.Errorf("clean up after a dead sidecar: %w", err), doubts)
	}
	if alone > 0 {
		doubts = errors.Join(doubts, fmt.Errorf(
			"clean up after a dead sidecar: entries of %q that are left alone, as others may have their ids: %d",
			path, alone))
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
		return errors.Join(err, doubts)
	}
	return doubts // it has no name, or the state directory is gone
}

// doubts describes what is wrong with a journal that is carried out as far as
// it can be read.
func (r *reading) doubts(path string) error {
	var found []error
	if r.cut {
		found = append(found, fmt.Errorf("read journal %q: it is too long; its middle was skipped", path))
	}
	if lines := r.senseless + r.foreign; lines > 0 {
		found = append(found, fmt.Errorf("read journal %q: lines that are not understood, and are left alone: %d", path,
			lines))
	}
	return errors.Join(found...)
}

// Ender ends what the records of one kind list.
type Ender struct {
	Kind string
	// End gets the records that still count, in the order in which they were
	// written. It leaves alone what a record names by a number that may be
	// another process's by now, and returns how many records those are. An
	// error keeps the journal for the next sweep: also if the data of a record
	// cannot be read, as another version may be able to.
	End func(ctx context.Context, records []Record, where Place) (alone int, err error)
}

// ProcessEnder returns an ender for records that name a process by its id. After
// a restart of the machine nothing is left to end, and in another process id
// namespace every record is left alone. end gets each other record. It returns
// false if it cannot prove that the id still means the same process, and an error
// if it cannot read the record.
func ProcessEnder(kind string, end func(ctx context.Context, r Record) (proved bool, err error)) Ender {
	return Ender{Kind: kind, End: func(ctx context.Context, records []Record, where Place) (alone int, err error) {
		switch {
		case where.OtherBoot:
			return 0, nil
		case !where.Same:
			return len(records), nil
		}
		var failures []error
		for _, r := range records {
			proved, err := end(ctx, r)
			failures = append(failures, err)
			if !proved {
				alone++
			}
		}
		return alone, errors.Join(failures...)
	}}
}

// Place compares the place of a journal's writer to this one.
type Place struct {
	// StateDir is the directory of the journal.
	StateDir string
	// Same is true if process ids have the same meaning here as for the writer.
	Same bool
	// OtherBoot is true if the machine was restarted since, so that no process
	// is left.
	OtherBoot bool
}

// carryOut ends what a journal lists, kind after kind in the order of the
// enders, and returns how many records it has left alone. A number counts only
// if it has the same meaning as when it was written: the same start of the
// machine, the same process id namespace, the same process. What only another
// version understands is left alone, and keeps the journal: a kind without an
// ender, and until the machine restarts a record without a kind.
func carryOut(ctx context.Context, listed *reading, stateDir string, enders []Ender) (alone int, err error) {
	now := Here()
	known := listed.origin != nil && !listed.disputed
	where := Place{
		StateDir: stateDir, Same: known && listed.origin.is(now),
		OtherBoot: known && listed.origin.Boot != "" && now.Boot != "" && listed.origin.Boot != now.Boot,
	}
	byKind := map[string][]Record{}
	for _, r := range listed.list() {
		byKind[r.Kind] = append(byKind[r.Kind], r)
	}
	var failures []error
	for _, ender := range enders {
		if ctx.Err() != nil {
			return alone, ctx.Err()
		}
		if records := byKind[ender.Kind]; len(records) > 0 {
			left, err := ender.End(ctx, records, where)
			alone += left
			failures = append(failures, err)
			delete(byKind, ender.Kind)
		}
	}
	if listed.foreign > 0 && known && now.Boot != "" && listed.origin.Boot == now.Boot {
		failures = append(failures, fmt.Errorf("entries of another version, which are left to it: %d", listed.foreign))
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		failures = append(failures, fmt.Errorf("entries of the unknown kind %q, which are left alone: %d",
			kind, len(byKind[kind])))
	}
	return alone, errors.Join(failures...)
}
