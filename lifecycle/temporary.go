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

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

const (
	// kindTemporary is the kind of a project's directories for temporary files.
	// The key is the path.
	kindTemporary = "temporary"
	// temporaryPrefix starts the names of such directories.
	temporaryPrefix = "sandbox-sidecar-"
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
		if plain && strings.HasPrefix(filepath.Base(r.Key), temporaryPrefix) && ownDirectory(r.Key) {
			failures = append(failures, removeTree(ctx, r.Key))
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
	mu    sync.Mutex // guards the fields below
	state *groupState
	made  map[temporaryKey]string
}

type temporaryKey struct{ project, parent string }

// get returns the directory for a project in a parent, and makes it on first
// use.
func (t *temporaries) get(e *recovery, project, parent string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := temporaryKey{project, parent}
	if dir := t.made[key]; dir != "" && ownDirectory(dir) && ownDirectory(filepath.Join(dir, temporaryFiles)) {
		return filepath.Join(dir, temporaryFiles), nil
	}
	if t.state == nil {
		if err := e.open(); err != nil {
			return "", err
		}
		t.state, t.made = e.share(), map[temporaryKey]string{}
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	dir := filepath.Join(parent, temporaryPrefix+hex.EncodeToString(random[:]))
	files := filepath.Join(dir, temporaryFiles)
	if err := t.state.makeNoted(kindTemporary, dir); err != nil {
		return "", err
	}
	err := os.Mkdir(files, 0o700)
	if err == nil {
		// As /tmp, whatever the umask is.
		err = os.Chmod(files, 0o777|os.ModeSticky)
	}
	if err != nil {
		return "", fmt.Errorf("make directory for temporary files: %w", err)
	}
	t.made[key] = dir
	return files, nil
}

// giveBack removes the directories.
func (t *temporaries) giveBack() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.giveBack()
}

// TemporaryDir returns a directory for temporary files that the project's
// sessions have to themselves, in the given parent, which is a directory that
// everybody may write, such as /tmp. It is made on first use, and removed with
// the tracker, even if this process dies first. Its path is real if the parent's
// is.
func (t *Tracker) TemporaryDir(project, parent string) (string, error) {
	return t.temporaries.get(&t.recovery, project, parent)
}
