package spawn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// runtimeBase is the directory that holds the private runtime directories of this user's sessions. It must not lie in a place that
// sessions may write, or one session could reach another's sockets: /tmp is out. The first that can be made counts.
func runtimeBase(env []string) (string, error) {
	var candidates []string
	if dir := lookUp(env, "XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && private(dir) {
		candidates = append(candidates, filepath.Join(dir, "sandbox-sidecar"))
	}
	if dir := lookUp(env, "XDG_STATE_HOME"); filepath.IsAbs(dir) {
		candidates = append(candidates, filepath.Join(dir, "sandbox-sidecar", "run"))
	} else if home := lookUp(env, "HOME"); filepath.IsAbs(home) {
		candidates = append(candidates, filepath.Join(home, ".local", "state", "sandbox-sidecar", "run"))
	}
	var problems []error
	for _, dir := range candidates {
		err := os.MkdirAll(dir, 0o700)
		if err == nil && !private(dir) {
			err = fmt.Errorf("%s: not a directory of ours that is closed to others", dir)
		}
		if err == nil {
			return filepath.EvalSymlinks(dir) // rules are for real paths
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return "", errors.New("neither XDG_RUNTIME_DIR nor XDG_STATE_HOME nor HOME names a directory")
	}
	return "", errors.Join(problems...)
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

// StateDir is where this user's sidecars keep what outlives a session's start; sessions must not be able to write it.
func StateDir(env []string) (string, error) { return runtimeBase(env) }

// makeRuntimeDir makes one session's directory. Names are short because a socket's path is limited to 107 bytes (unix(7)).
func makeRuntimeDir(env []string) (string, error) {
	base, err := runtimeBase(env)
	if err != nil {
		return "", fmt.Errorf("make private runtime directory: %w", err)
	}
	dir, err := os.MkdirTemp(base, "s")
	if err != nil {
		return "", fmt.Errorf("make private runtime directory: %w", err)
	}
	return dir, nil
}
