//go:build unix

package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// StateDir makes and returns the directory where this user's sidecars keep what belongs to their sessions: journals, private runtime
// directories. It must not lie in a place that sessions may write, or one session could reach another's sockets: /tmp is out. The first
// that can be made counts. Its path is real.
func StateDir(env []string) (string, error) {
	value := func(name string) string {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
	var candidates []string
	if dir := value("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && private(dir) {
		candidates = append(candidates, filepath.Join(dir, "sandbox-sidecar"))
	}
	if dir := value("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		candidates = append(candidates, filepath.Join(dir, "sandbox-sidecar", "run"))
	} else if home := value("HOME"); filepath.IsAbs(home) {
		candidates = append(candidates, filepath.Join(home, ".local", "state", "sandbox-sidecar", "run"))
	}
	var problems []error
	for _, dir := range candidates {
		err := os.MkdirAll(dir, 0o700)
		if err == nil && !private(dir) {
			err = fmt.Errorf("%s: not a directory of ours that is closed to others", dir)
		}
		if err == nil {
			return filepath.EvalSymlinks(dir)
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return "", errors.New("make state directory: neither XDG_RUNTIME_DIR nor XDG_STATE_HOME nor HOME names a directory")
	}
	return "", fmt.Errorf("make state directory: %w", errors.Join(problems...))
}

// private reports whether a directory is the user's own and closed to everybody else.
func private(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// removeTree removes a session's directory, also where the session has locked directories against their owner. Nothing in it is
// followed out of it.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	// The directory's own name lies in the state directory, where no session can put a symlink in its place.
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	unlock(root, ".")
	root.Close()
	return os.RemoveAll(dir)
}

// unlock opens directories from the top down; one that cannot be opened is left to the removal to report.
func unlock(root *os.Root, dir string) {
	if root.Chmod(dir, 0o700) != nil {
		return
	}
	handle, err := root.Open(dir)
	if err != nil {
		return
	}
	defer handle.Close()
	entries, _ := handle.ReadDir(-1)
	for _, entry := range entries {
		if entry.IsDir() {
			unlock(root, filepath.Join(dir, entry.Name()))
		}
	}
}
