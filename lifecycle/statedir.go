//go:build unix

package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
)

// StateDir makes and returns the directory for the journals and private
// directories of this user's sidecars. Sessions must not be able to write
// there, or one could reach another's sockets; so /tmp is excluded. The first
// candidate that can be made is used. Its path is real.
func StateDir(env []string) (string, error) {
	user := places.OfList(env)
	var candidates []string
	if dir := user.Runtime(); dir != "" && private(filepath.Dir(dir)) {
		candidates = append(candidates, dir)
	}
	if dir := user.Run(); dir != "" {
		candidates = append(candidates, dir)
	}
	var problems []error
	for _, dir := range candidates {
		err := makeStateDir(dir)
		if err == nil {
			return fsguard.EvalSymlinks(dir)
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return "", errors.New("make state directory: set XDG_RUNTIME_DIR, XDG_STATE_HOME or HOME to a directory")
	}
	return "", fmt.Errorf("make state directory: %w", errors.Join(problems...))
}

// StateDirs returns the state directories of this user that there are, as real
// paths. A sidecar that was started without XDG_RUNTIME_DIR has another one than
// StateDir returns.
func StateDirs(env []string) []string {
	user := places.OfList(env)
	var dirs []string
	for _, dir := range []string{user.Runtime(), user.Run()} {
		if dir == "" || !private(dir) {
			continue
		}
		if real, err := fsguard.EvalSymlinks(dir); err == nil && !slices.Contains(dirs, real) {
			dirs = append(dirs, real)
		}
	}
	return dirs
}

// makeStateDir makes a state directory, or finds that it exists and can be
// used.
func makeStateDir(dir string) error {
	if err := fsguard.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if !private(dir) {
		return fmt.Errorf("%s: not a private directory of this user (mode 0700)", dir)
	}
	if err := fsguard.Access(dir, unix.W_OK|unix.X_OK); err != nil { // for example a read-only file system
		return &os.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}

// private reports whether a directory is the user's own and closed to everybody
// else.
func private(dir string) bool {
	info, err := fsguard.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
