//go:build unix

package meeting

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Place is where the processes with a key meet.
type Place struct{ dir, name string }

// locked is the end of the name of the file that is locked while a process starts
// what others are to find.
const locked = ".lock"

// mostText bounds what a place holds.
const mostText = 4 << 10

// At is the place below a directory for what belongs to an owner, by its process id
// and start time, and to a key. The directory is made by Lock.
func At(dir string, pid int, birth uint64, key string) Place {
	return Place{dir, fmt.Sprintf("%d.%d.%x", pid, birth, sha256.Sum256([]byte(key)))}
}

// Read returns what a process has left at the place; "" if there is nothing.
func (p Place) Read() (string, error) {
	file, err := os.OpenFile(p.path(), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	text := make([]byte, mostText)
	n, err := file.Read(text)
	if n == 0 && err != nil {
		return "", fmt.Errorf("read %s: %w", p.path(), err)
	}
	return string(text[:n]), nil
}

// Write leaves a text at the place. Others see the whole of it, or what was there
// before.
func (p Place) Write(text string) error {
	if len(text) > mostText {
		return errors.New("it is too long for a place to meet")
	}
	made := p.path() + ".new" // the place is locked: nobody else makes it
	if err := os.WriteFile(made, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(made, p.path())
}

// Name is the name of its file. Places with equal names in a directory are one.
func (p Place) Name() string { return p.name }

func (p Place) path() string { return filepath.Join(p.dir, p.name) }

// ErrLocked means that another process keeps the place locked for too long.
var ErrLocked = errors.New("another process keeps it locked")

// Lock locks the place for as long as the file is open, here or in a process that
// was given it. If another process has it locked, Lock waits as long as within says,
// and returns nil once that has left something else than known.
func (p Place) Lock(known string, within time.Duration) (*os.File, error) {
	if err := fsguard.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(p.path()+locked, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		left, readErr := p.Read()
		switch {
		case readErr == nil && left != known:
			file.Close()
			return nil, nil
		case err == nil:
			return file, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", p.path(), err)
		case time.Now().After(deadline):
			file.Close()
			return nil, ErrLocked
		}
	}
}

// End removes what a process has left at the place, unless another has left
// something else since. The lock stays for Tidy: others may wait for it.
func (p Place) End(text string) error {
	data, err := p.Read()
	if err != nil || data != text {
		return err
	}
	return os.Remove(p.path())
}

// Tidy removes what is left, in the directory of the place, of owners that have
// ended.
func (p Place) Tidy(lives func(pid int, birth uint64) bool) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return // nothing was left
	}
	for _, entry := range entries {
		parts := strings.SplitN(entry.Name(), ".", 3)
		if len(parts) < 3 {
			continue
		}
		pid, pidErr := strconv.Atoi(parts[0])
		birth, birthErr := strconv.ParseUint(parts[1], 10, 64)
		if pidErr == nil && birthErr == nil && !lives(pid, birth) {
			_ = os.Remove(filepath.Join(p.dir, entry.Name()))
		}
	}
}
