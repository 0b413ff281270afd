// Package managed finds the settings files of the organisation that administers
// the machine.
//
// They are in [Dir], which nothing that a user sets can change. [Files] lists
// them, and [Check] says whether one was written by the administrator.
package managed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// File is the organisation's main file.
const File = Dir + "/settings.json"

// DropIns is the directory of its further files.
const DropIns = Dir + "/settings.d"

// maxFiles bounds the further files. Packages bring one each.
const maxFiles = 100

// Holds reports whether a file is one of the organisation's.
func Holds(file string) bool { return file == Dir || strings.HasPrefix(file, Dir+"/") }

// Files lists the main file, whether it exists or not, and the further files in
// the order of their names.
func Files() ([]string, error) {
	list := []string{File}
	// One more than allowed shows that there are too many.
	entries, err := fsguard.ReadDir(DropIns, maxFiles+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return list, nil
	case err != nil: // also a file in the place of a directory
		return list, err
	case len(entries) > maxFiles:
		return list, fmt.Errorf("more than %d files", maxFiles)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name, ".json") && !strings.HasPrefix(entry.Name, ".") {
			list = append(list, filepath.Join(DropIns, entry.Name))
		}
	}
	slices.Sort(list[1:])
	return list, nil
}

// ErrOthers means that others than the administrator can change a file.
var ErrOthers = errors.New("others than root can change it")

// ErrSymlink means that a file is not where it seems to be.
var ErrSymlink = errors.New("a symlink; write the file itself there")

// Check returns nil if only the administrator can have written an existing file:
// it and each directory on the way belong to root, and nobody else can write
// them. The error is ErrOthers otherwise, with the place.
func Check(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := fsguard.Lstat(at)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return ErrSymlink
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || !isRoot(st.Uid) || info.Mode().Perm()&0o022 != 0 {
			if at == path {
				return ErrOthers
			}
			return fmt.Errorf("%w: %s", ErrOthers, display.Quote(at))
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// isRoot reports whether a file's owner is the administrator. In a user
// namespace without root, the kernel shows another number for it. Whoever makes
// such a namespace must not lose the organisation's settings by that.
func isRoot(uid uint32) bool { return uid == 0 || namespaced() && uid == overflowID() }

// namespaced reports whether this process is in a user namespace that does not
// have every user.
var namespaced = sync.OnceValue(func() bool {
	table, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(table))
	return !slices.Equal(fields, []string{"0", "0", "4294967295"})
})

var overflowID = sync.OnceValue(func() uint32 {
	const usual = 65534
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return usual
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return usual
	}
	return uint32(id)
})

// Home is the user's home directory as the system's user database has it,
// whatever HOME says; "" if the database does not know the user. An error means
// that it does not answer within two seconds. The answer is kept.
var Home = sync.OnceValues(func() (string, error) {
	id := strconv.Itoa(os.Getuid())
	if home, err := homeHere(id); home != "" || err != nil {
		return home, err
	}
	// The database may be on another machine, which only the C library asks.
	for _, path := range getent {
		home, err := homeBy(path, id)
		if !errors.Is(err, fs.ErrNotExist) {
			return home, err
		}
	}
	return "", nil
})

// getent are the places of getent(1). The second one is NixOS's.
var getent = []string{"/usr/bin/getent", "/run/current-system/sw/bin/getent"}

// homeBy asks a getent for the home directory of a user.
func homeBy(path, id string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, path, "passwd", id)
	command.Env, command.WaitDelay = []string{}, time.Second
	line, err := command.Output()
	const unknown = 2 // the key was not found
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == unknown {
		return "", nil
	}
	if err != nil {
		// A session can keep programs from starting, so HOME does not count.
		return "", fmt.Errorf("ask the user database for the home directory: %s: %w", display.Quote(path), err)
	}
	if fields := strings.Split(strings.TrimSpace(string(line)), ":"); len(fields) == 7 && filepath.IsAbs(fields[5]) {
		return fields[5], nil
	}
	return "", nil
}
