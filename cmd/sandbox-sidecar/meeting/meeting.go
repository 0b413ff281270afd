//go:build unix

package meeting

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Owner is the process that everything at a place belongs to.
type Owner struct {
	// Namespace is that of its process id: it differs between machines, and boots.
	Namespace uint64
	PID       int
	// Birth is when it has started: it tells it from another with the same id.
	Birth uint64
}

// Place is where the processes with a key meet.
type Place struct {
	dir, name string
	owner     Owner
}

const (
	// locked is the end of the name of the file that is locked while a process
	// starts what others are to find.
	locked = ".lock"
	// failed is the end of the name of the file that says why that has failed.
	failed = ".broken"
)

// mostText bounds what a place holds.
const mostText = 4 << 10

const (
	// firstPause is the time between the first two looks at a lock. It doubles, up
	// to mostPause.
	firstPause = 2 * time.Millisecond
	mostPause  = 20 * time.Millisecond
)

// foreignAge is how old a file of another namespace is when Tidy removes it:
// whether its owner lives is not known. It may be on another machine that has the
// same home.
const foreignAge = 30 * 24 * time.Hour

// At is the place for what belongs to an owner and to a key, in a directory just
// below a state directory. Lock makes the directory.
func At(dir string, owner Owner, key string) Place {
	name := fmt.Sprintf("%s%x", owner.prefix(), sha256.Sum256([]byte(key)))
	return Place{dir: dir, name: name, owner: owner}
}

// StateDir is the state directory that the place is in.
func (p Place) StateDir() string { return filepath.Dir(p.dir) }

// prefix is how the names of its files begin.
func (o Owner) prefix() string { return fmt.Sprintf("%d.%d.%d.", o.Namespace, o.PID, o.Birth) }

// Read returns what a process has left at the place; "" if there is nothing.
func (p Place) Read() (string, error) {
	text, _, err := read(p.path())
	return text, err
}

// read returns the text of a file, and when it was written; "" if there is none.
func read(path string) (text string, written time.Time, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", time.Time{}, err
	}
	data := make([]byte, mostText)
	n, err := file.Read(data)
	if errors.Is(err, io.EOF) { // after a crash of the machine; see fsguard.ReplaceSoon
		return "", time.Time{}, nil
	}
	if n == 0 && err != nil {
		return "", time.Time{}, fmt.Errorf("read %s: %w", path, err)
	}
	return string(data[:n]), info.ModTime(), nil
}

// Write leaves a text at the place. Others see the whole of it, or what was there
// before.
func (p Place) Write(text string) error {
	if len(text) > mostText {
		return errors.New("it is too long for a place to meet")
	}
	return fsguard.ReplaceSoon(p.path(), []byte(text), 0o600)
}

// Left is what a process has left at a place.
type Left struct {
	Text string
	Used time.Time // when it was written, or touched since
}

// Left is what processes have left at the places of the same owner, whatever the
// key. What cannot be read is left out.
func (p Place) Left() []Left {
	var list []Left
	for _, name := range p.names() {
		if text, used, err := read(filepath.Join(p.dir, name)); err == nil && text != "" {
			list = append(list, Left{text, used})
		}
	}
	return list
}

// Touch notes that what is left at the place is used. If it cannot, it looks older.
func (p Place) Touch() {
	now := unix.NsecToTimespec(time.Now().UnixNano())
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, p.path(), []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}

// names are those of the files with the texts of the same owner.
func (p Place) names() []string {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		// Other files have an end after the sum.
		if strings.HasPrefix(entry.Name(), p.owner.prefix()) && len(entry.Name()) == len(p.name) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// Fail notes why a start at the place has failed, for Failed.
func (p Place) Fail(why string) error {
	if err := fsguard.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	return fsguard.ReplaceSoon(p.path()+failed, []byte(why[:min(len(why), mostText)]), 0o600)
}

// Failed returns why a start at the place has failed last; "" if none has since the
// last success. recent is true if that was within a time.
func (p Place) Failed(within time.Duration) (why string, recent bool) {
	why, at, err := read(p.path() + failed)
	if err != nil {
		return "", false
	}
	age := time.Since(at) // negative if the clock was set back
	return why, why != "" && age >= 0 && age < within
}

// Succeed has Failed forget.
func (p Place) Succeed() { _ = os.Remove(p.path() + failed) } // mostly there is none

// Name is the name of its file. Places with equal names in a directory are one.
func (p Place) Name() string { return p.name }

func (p Place) path() string { return filepath.Join(p.dir, p.name) }

// ErrLocked means that another process keeps the place locked for too long.
var ErrLocked = errors.New("another process keeps it locked")

// Lock locks the place for as long as the file is open, here or in a process that
// was given it. If another process has it locked, Lock waits as long as within says,
// and returns nil once that has left something other than known.
func (p Place) Lock(known string, within time.Duration) (*os.File, error) {
	if err := fsguard.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	pause := firstPause
	for deadline := time.Now().Add(within); ; time.Sleep(pause) {
		file, err := p.tryLock()
		left, readErr := p.Read()
		switch {
		case readErr == nil && left != known:
			if file != nil {
				file.Close()
			}
			return nil, nil
		case !errors.Is(err, ErrLocked): // nil, too
			return file, err
		case time.Now().After(deadline):
			return nil, ErrLocked
		}
		pause = min(2*pause, mostPause) // many may wait
	}
}

// tryLock locks the place. The error is ErrLocked if another process has it.
func (p Place) tryLock() (*os.File, error) {
	file, err := os.OpenFile(p.path()+locked, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR):
		err = ErrLocked
	case err != nil:
		err = fmt.Errorf("lock %s: %w", p.path(), err)
	case !isAt(file, p.path()+locked): // the process that had it has removed it since
		err = ErrLocked
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// isAt reports whether a file is the one at a path.
func isAt(file *os.File, path string) bool {
	info, err := file.Stat()
	if err != nil {
		return false
	}
	at, err := os.Lstat(path)
	return err == nil && os.SameFile(info, at)
}

// LockedPlace is the name of the place whose lock has a path.
func LockedPlace(path string) (name string, is bool) {
	return strings.CutSuffix(filepath.Base(path), locked)
}

// End replaces what a process has left at the place, unless another has left
// something else since, or is about to.
func (p Place) End(text, by string) error {
	return p.alone(func() error {
		if data, err := p.Read(); err != nil || data != text {
			return err
		}
		return p.Write(by)
	})
}

// alone does something with the place locked, and removes the lock. It does nothing
// if another process has the lock.
func (p Place) alone(do func() error) error {
	lock, err := p.tryLock()
	switch {
	case errors.Is(err, ErrLocked) || errors.Is(err, fs.ErrNotExist): // no directory: nothing was left
		return nil
	case err != nil:
		return err
	}
	defer lock.Close()
	defer os.Remove(p.path() + locked) // before it is unlocked
	return do()
}

// Prune removes the oldest texts at the places of the same owner that are over, but
// for so many.
func (p Place) Prune(most int, over func(text string) bool) {
	type old struct {
		place   Place
		written time.Time
	}
	var list []old
	for _, name := range p.names() {
		text, written, err := read(filepath.Join(p.dir, name))
		if err == nil && text != "" && over(text) {
			list = append(list, old{Place{dir: p.dir, name: name, owner: p.owner}, written})
		}
	}
	slices.SortFunc(list, func(a, b old) int { return b.written.Compare(a.written) })
	for _, one := range list[min(most, len(list)):] {
		_ = one.place.alone(func() error { // what cannot be removed is when the owner has ended
			if text, err := one.place.Read(); err != nil || !over(text) {
				return err
			}
			one.place.Succeed()
			return os.Remove(one.place.path())
		})
	}
}

// Forget removes everything of the owner, which must have ended.
func (p Place) Forget() {
	p.remove(func(owner Owner, _ fs.DirEntry) bool { return owner == p.owner })
}

// Tidy removes what is left, in the directory of the place, of owners that have
// ended. It looks at no process of another namespace, and removes what has one after
// a month.
func (p Place) Tidy(lives func(pid int, birth uint64) bool) {
	p.remove(func(owner Owner, entry fs.DirEntry) bool {
		if owner.Namespace == p.owner.Namespace {
			return !lives(owner.PID, owner.Birth)
		}
		info, err := entry.Info()
		return err == nil && time.Since(info.ModTime()) > foreignAge
	})
}

// remove removes the files of some owners.
func (p Place) remove(which func(Owner, fs.DirEntry) bool) {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return // nothing was left
	}
	for _, entry := range entries {
		if owner, is := ownerOf(entry.Name()); is && entry.Type().IsRegular() && which(owner, entry) {
			_ = os.Remove(filepath.Join(p.dir, entry.Name()))
		}
	}
}

// form is that of the names of its files: of a place, of what belongs to one, and
// of what a process has left that was killed while it wrote one of these. It is
// compiled when it is needed: every stage starts with this package, too.
var form = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d+\.\d+\.\d+\.[0-9a-f]{64}(` + regexp.QuoteMeta(locked) + `|(` +
		regexp.QuoteMeta(failed) + `)?(\.\d+)?)$`)
})

// ownerOf is the owner of a file with a name.
func ownerOf(name string) (owner Owner, is bool) {
	if !form().MatchString(name) { // whose file it is is not known
		return Owner{}, false
	}
	parts := strings.SplitN(name, ".", 4)
	namespace, namespaceErr := strconv.ParseUint(parts[0], 10, 64)
	pid, pidErr := strconv.Atoi(parts[1])
	birth, birthErr := strconv.ParseUint(parts[2], 10, 64)
	return Owner{namespace, pid, birth}, errors.Join(namespaceErr, pidErr, birthErr) == nil
}
