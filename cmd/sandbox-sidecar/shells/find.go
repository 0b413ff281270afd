//go:build unix

package shells

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Variable names the real shell, if it is set. It counts more than the name that
// this program was called by.
const Variable = "SANDBOX_SHELL"

// dirs are the usual places of shells.
var dirs = []string{"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"}

// Finder finds a real shell.
type Finder struct {
	// Self is the path of this program.
	Self string
	// Passwd is the user's shell in the password file.
	Passwd string
	Getenv func(string) string
}

// Find returns the path of the real shell for a name that CalledAs returned: the
// one that Variable names, else the one of that name, else the user's own. It is
// never this program, whatever links lead to it.
func (f Finder) Find(name string) (string, error) {
	if path := f.Getenv(Variable); path != "" {
		if !filepath.IsAbs(path) {
			return "", fmt.Errorf("%s: expected an absolute path, found %q", Variable, path)
		}
		if err := f.usable(path); err != nil {
			return "", fmt.Errorf("use %s: %s: %w", Variable, path, err)
		}
		return path, nil
	}
	var tried error
	for _, path := range f.candidates(name) {
		err := f.usable(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			tried = errors.Join(tried, fmt.Errorf("%s: %w", path, err))
		}
	}
	if tried != nil {
		return "", fmt.Errorf("find the real shell: %w", tried)
	}
	return "", fmt.Errorf("find the real shell: no %s in the usual directories; %s=PATH names another", name, Variable)
}

func (f Finder) candidates(name string) []string {
	if name == Generic {
		return []string{f.Passwd, "/bin/sh"}
	}
	var list []string
	for _, dir := range dirs {
		list = append(list, filepath.Join(dir, name))
	}
	for _, dir := range filepath.SplitList(f.Getenv("PATH")) {
		if filepath.IsAbs(dir) && !slices.Contains(dirs, filepath.Clean(dir)) {
			list = append(list, filepath.Join(dir, name))
		}
	}
	if called, is := CalledAs(f.Passwd); is && called == name {
		return append([]string{f.Passwd}, list...)
	}
	return list
}

var (
	errSelf       = errors.New("it is this program; name the real shell")
	errNotProgram = errors.New("it is no program")
)

// usable returns an error unless a path is an executable file that is not this
// program.
func (f Finder) usable(path string) error {
	info, err := fsguard.Stat(path)
	if err != nil {
		return rootCause(err)
	}
	if self, err := fsguard.Stat(f.Self); err != nil || sameFile(self, info) {
		return errors.Join(errSelf, err)
	}
	if !info.Mode().IsRegular() {
		return errNotProgram
	}
	return fsguard.Access(path, unix.X_OK)
}

// sameFile is os.SameFile, which knows only what package os has returned.
func sameFile(a, b os.FileInfo) bool {
	one, ok := a.Sys().(*syscall.Stat_t)
	other, both := b.Sys().(*syscall.Stat_t)
	return ok && both && one.Dev == other.Dev && one.Ino == other.Ino
}

func rootCause(err error) error {
	var failed *os.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// Environment is the environment of the real shell. SHELL names that, if it
// names this program: what a session starts is confined already.
func Environment(env []string, self, real string) []string {
	own, err := fsguard.Stat(self)
	if err != nil {
		return env
	}
	env = slices.Clone(env)
	for i, variable := range env {
		path, is := strings.CutPrefix(variable, "SHELL=")
		if !is {
			continue
		}
		if info, err := fsguard.Stat(path); err == nil && sameFile(own, info) {
			env[i] = "SHELL=" + real
		}
	}
	return env
}
