//go:build unix

package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// Stored is what sessions have changed in one cache.
type Stored struct {
	// Path is the real path of the cache.
	Path string
	// Bytes is the space that the changes take on the disk.
	Bytes int64
	// Partial is true if sessions have locked directories against their owner, so
	// that there may be more.
	Partial bool

	name string
}

// List returns what is stored in a directory of overlays, sorted by path. The
// list is empty if there is no such directory.
func List(dir string) ([]Stored, error) {
	file, err := openMade(dir)
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list caches: %w", err)
	}
	defer file.Close()
	return list(file)
}

func list(dir *os.File) ([]Stored, error) {
	entries, err := os.ReadDir(dir.Name())
	if err != nil {
		return nil, fmt.Errorf("list caches: %w", err)
	}
	var stored []Stored
	for _, entry := range entries {
		if !entry.IsDir() || entry.Name() == probeName {
			continue
		}
		own := filepath.Join(dir.Name(), entry.Name())
		path, err := os.ReadFile(filepath.Join(own, pathName))
		if err != nil {
			path = []byte(own) // it was interrupted when it was made or removed
		}
		if string(path) == filepath.Join(dir.Name(), probeName, emptyName) {
			continue
		}
		s := Stored{Path: string(path), name: entry.Name()}
		s.Bytes, s.Partial = size(filepath.Join(own, upperName))
		stored = append(stored, s)
	}
	slices.SortFunc(stored, func(a, b Stored) int { return strings.Compare(a.Path, b.Path) })
	return stored, nil
}

// size is the space that a directory takes on the disk. partial says that not
// all of it can be read.
func size(dir string) (bytes int64, partial bool) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var stat unix.Stat_t
		switch {
		case errors.Is(err, fs.ErrNotExist): // a session removes it
		case err != nil, unix.Lstat(path, &stat) != nil:
			partial = true
		default:
			bytes += stat.Blocks * 512
		}
		return nil
	})
	return bytes, partial
}

// ErrInUse means that caches cannot be cleared now.
var ErrInUse = errors.New("sandboxed sessions use them: end your sandboxed sessions and editors first")

// Clear removes what sessions have changed in the caches that match chooses, and
// returns those. The error wraps ErrInUse if a sidecar may still have sessions
// that use them.
func Clear(ctx context.Context, dir string, match func(Stored) bool) (cleared []Stored, err error) {
	file, err := openMade(dir)
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("clear caches: %w", err)
	}
	defer file.Close()
	locks, err := lockAll(file)
	if err != nil {
		return nil, fmt.Errorf("clear caches: %w", err)
	}
	for _, held := range locks {
		defer held.Close()
	}
	stored, err := list(file)
	if err != nil {
		return nil, err
	}
	for _, s := range stored {
		if !match(s) {
			continue
		}
		if err := lifecycle.RemoveTree(ctx, filepath.Join(file.Name(), s.name)); err != nil {
			return cleared, fmt.Errorf("clear the cache of %s: %w", s.Path, err)
		}
		cleared = append(cleared, s)
	}
	return cleared, nil
}

// lockAll takes both locks. The caller closes them.
func lockAll(dir *os.File) (locks []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, held := range locks {
				held.Close()
			}
		}
	}()
	for _, name := range []string{startLock, useLock} {
		held, err := openLock(dir, name)
		if err != nil {
			return locks, err
		}
		locks = append(locks, held)
	}
	if err := lock(locks[0], 0); err != nil { // somebody has it for moments
		return locks, err
	}
	// A holder may be about to end.
	if err := endIdle(dir); err != nil {
		return locks, err
	}
	if err := lock(locks[1], unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return locks, ErrInUse
	} else if err != nil {
		return locks, err
	}
	return locks, nil
}
