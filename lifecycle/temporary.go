//go:build unix

package lifecycle

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

const (
	// kindTemporary is the kind of an owner's directories for temporary files.
	// The key is the path.
	kindTemporary = "temporary"
	// temporaryPrefix starts the names of such directories. temporaryRandom is
	// how many random bytes follow, in hexadecimal digits.
	temporaryPrefix = "sandbox-sidecar-"
	temporaryRandom = 8
	// temporaryFiles is the directory in them that sessions see. The one around
	// it is closed to other users, so this one can be open to the programs that
	// root's sessions run as other users.
	temporaryFiles = "files"
)

// temporaryEnder removes the directories for temporary files of a dead sidecar.
var temporaryEnder = journal.Ender{Kind: kindTemporary, End: removeTemporary}

// removeTemporary removes only directories of this user that have the name of
// such a directory. Their parents are sticky, so no other user can replace them.
func removeTemporary(ctx context.Context, records []journal.Record, _ journal.Place) (int, error) {
	var failures []error
	for _, r := range records {
		plain := filepath.IsAbs(r.Key) && filepath.Clean(r.Key) == r.Key
		if !plain || !strings.HasPrefix(filepath.Base(r.Key), temporaryPrefix) {
			continue
		}
		if err := fsguard.Answers(filepath.Dir(r.Key)); err != nil {
			failures = append(failures, err)
		} else if ownDirectory(r.Key) {
			failures = append(failures, removeGuarded(ctx, r.Key))
		}
	}
	return 0, errors.Join(failures...)
}

// ownDirectory reports whether a path is a directory of this user.
func ownDirectory(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// temporaries are the directories for temporary files of a tracker. The zero
// value is ready to use.
type temporaries struct {
	mu     sync.Mutex // guards the fields below
	state  *groupState
	made   map[temporaryKey]temporaryDir
	swept  map[string]bool // parents
	ctx    context.Context // of the sweeps
	stop   context.CancelFunc
	sweeps sync.WaitGroup
}

type temporaryKey struct{ owner, parent string }

// temporaryDir is a directory and its lock, which is nil on a file system
// without locks of directories.
type temporaryDir struct {
	path string
	lock *os.File
}

// get returns the directory for an owner in a parent, and makes it on first
// use.
func (t *temporaries) get(e *recovery, owner, parent string) (string, error) {
	if err := fsguard.Answers(parent); err != nil {
		return "", fmt.Errorf("make directory for temporary files: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := temporaryKey{owner, parent}
	known := t.made[key]
	if dir := known.path; dir != "" && ownDirectory(dir) && ownDirectory(filepath.Join(dir, temporaryFiles)) {
		return filepath.Join(dir, temporaryFiles), nil
	}
	if t.state == nil {
		if err := e.open(); err != nil {
			return "", err
		}
		t.state, t.made, t.swept = e.share(), map[temporaryKey]temporaryDir{}, map[string]bool{}
		t.ctx, t.stop = context.WithCancel(context.Background())
	}
	t.sweep(e, parent)
	dir, err := t.make(parent)
	if err != nil {
		return "", err
	}
	_ = known.lock.Close()
	t.made[key] = dir
	return filepath.Join(dir.path, temporaryFiles), nil
}

// mostTemporaryNames bounds the names that make tries. Several sidecars may sweep
// at once.
const mostTemporaryNames = 20

// make makes a directory. Until it is locked, another sidecar may take it for a
// dead one's and remove it; then make tries another name. Nobody sweeps a file
// system that may not answer, so there it has no lock: closing one could wait.
func (t *temporaries) make(parent string) (temporaryDir, error) {
	for attempt := 1; ; attempt++ {
		var random [temporaryRandom]byte
		_, _ = rand.Read(random[:]) // never fails
		dir := filepath.Join(parent, temporaryPrefix+hex.EncodeToString(random[:]))
		if err := t.state.makeNoted(kindTemporary, dir); err != nil {
			return temporaryDir{}, err
		}
		var lock *os.File
		var err error
		if fsguard.Local(parent) {
			lock, err = lockTemporary(dir)
		}
		removed := errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.ENOENT)
		if !removed {
			files := filepath.Join(dir, temporaryFiles)
			if err = os.Mkdir(files, 0o700); err == nil {
				// As /tmp, whatever the umask is.
				err = os.Chmod(files, 0o777|os.ModeSticky)
			}
			if err == nil {
				return temporaryDir{dir, lock}, nil
			}
			_ = lock.Close()
			removed = errors.Is(err, unix.ENOENT)
		}
		if !removed || attempt == mostTemporaryNames {
			return temporaryDir{}, fmt.Errorf("make directory for temporary files: %w", err)
		}
	}
}

// sweep removes, in the background, what dead sidecars of this user have left
// in a parent, once. If other machines share the file system, a lock may count
// on one machine alone, so nothing is swept there.
func (t *temporaries) sweep(e *recovery, parent string) {
	if t.swept[parent] {
		return
	}
	t.swept[parent] = true
	if !fsguard.Local(parent) {
		return
	}
	t.sweeps.Go(func() {
		if err := sweepTemporary(t.ctx, parent); err != nil && t.ctx.Err() == nil {
			e.options.logger().Warn("cannot remove temporary files that dead sidecars have left", "in", parent,
				"error", err)
		}
	})
}

// giveBack removes the directories.
func (t *temporaries) giveBack() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop != nil {
		t.stop()
	}
	hangs := finishes(fileEnd, func() error {
		t.sweeps.Wait()
		return nil
	})
	err := t.state.giveBack()
	for _, dir := range t.made {
		_ = dir.lock.Close()
	}
	return errors.Join(hangs, err)
}

// lockTemporary locks a directory that this process has made or found, as long
// as the file is open. A lock that is held fails with EWOULDBLOCK. Any other
// failure leaves the directory without a lock, and nobody else can lock it
// either.
func lockTemporary(dir string) (*os.File, error) {
	file, err := os.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// sweepTemporary removes directories of this user whose lock is free. Their
// sidecar is dead, and so is its watchdog. The journal that lists them may be
// lost, as after a power cut: it lies in memory, and /var/tmp on a disk.
func sweepTemporary(ctx context.Context, parent string) error {
	list, err := os.Open(parent)
	if err != nil {
		return err
	}
	defer list.Close()
	var failures []error
	for ctx.Err() == nil {
		names, err := list.Readdirnames(256)
		if len(names) == 0 || err != nil {
			break
		}
		for _, name := range names {
			if temporaryName(name) {
				failures = append(failures, removeDead(ctx, filepath.Join(parent, name)))
			}
		}
	}
	return errors.Join(failures...)
}

// temporaryName reports whether a name is one that make gives.
func temporaryName(name string) bool {
	random, ok := strings.CutPrefix(name, temporaryPrefix)
	decoded, err := hex.DecodeString(random)
	return ok && err == nil && len(decoded) == temporaryRandom
}

// removeDead removes a directory of a dead sidecar of this user.
func removeDead(ctx context.Context, dir string) error {
	if !ownDirectory(dir) {
		return nil
	}
	lock, err := lockTemporary(dir)
	if err != nil {
		return nil // its sidecar lives, or another removes it
	}
	defer lock.Close()
	return removeTree(ctx, dir)
}

// TemporaryDir returns a directory for temporary files that the owner's sessions
// have to themselves, in the given parent, which is a directory that everybody may
// write, such as /tmp. Any name of an owner will do, such as a project's. It is
// made on first use, and removed with the tracker, even if this process dies
// first. Its path is real if the parent's is.
func (t *Tracker) TemporaryDir(owner, parent string) (string, error) {
	return t.temporaries.get(&t.recovery, owner, parent)
}
