package resolve

import (
	"errors"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// dirs lists the directories in a directory, and ".git" whatever it is.
func dirs(path string) ([]string, error) {
	entries, err := fsguard.ReadDir(path, MaxNames)
	var names []string
	for _, entry := range entries {
		if entry.Type.IsDir() || entry.Name == ".git" {
			names = append(names, entry.Name)
		}
	}
	if err == nil && len(entries) == MaxNames {
		err = ErrNotAllFound
	}
	return names, err
}

// rememberedDirs bounds the directories that RememberDirs and RememberModes each
// remember.
const rememberedDirs = 8192

// RememberDirs returns a function for FS.Dirs that reads a directory again only
// if it has changed. Several goroutines may call it.
func RememberDirs() func(path string) ([]string, error) {
	return remember(textfile.Signature.Racy, dirs)
}

// RememberModes is RememberDirs for FS.Modes. A file whose mode alone changes
// changes no directory, so it counts as it was until something is made beside it.
func RememberModes() func(path string) (Modes, error) {
	return remember(textfile.Signature.Racy, modes)
}

func remember[T any](
	racy func(textfile.Signature) bool, read func(path string) (T, error),
) func(path string) (T, error) {
	type list struct {
		state textfile.Signature
		names T
		err   error // ErrNotAllFound, or nil
	}
	var mu sync.Mutex
	known := map[string]list{}
	return func(path string) (none T, err error) {
		info, err := fsguard.Lstat(path)
		if err != nil {
			return none, err
		}
		now := list{state: textfile.SignatureOf(info)}
		mu.Lock()
		before, found := known[path]
		mu.Unlock()
		if found && before.state == now.state {
			return before.names, before.err
		}
		now.names, now.err = read(path)
		if now.err != nil && !errors.Is(now.err, ErrNotAllFound) || racy(now.state) {
			return now.names, now.err
		}
		mu.Lock()
		defer mu.Unlock()
		if len(known) >= rememberedDirs {
			clear(known)
		}
		known[path] = now
		return now.names, now.err
	}
}
