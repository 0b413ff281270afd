package resolve

import (
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
	return names, err
}

// rememberedDirs bounds the directories that RememberDirs remembers.
const rememberedDirs = 4096

// RememberDirs returns a function for FS.Dirs that reads a directory again only
// if it has changed. Several goroutines may call it.
func RememberDirs() func(path string) ([]string, error) { return rememberDirs(textfile.Signature.Racy) }

func rememberDirs(racy func(textfile.Signature) bool) func(path string) ([]string, error) {
	type list struct {
		state textfile.Signature
		names []string
	}
	var mu sync.Mutex
	known := map[string]list{}
	return func(path string) ([]string, error) {
		info, err := fsguard.Lstat(path)
		if err != nil {
			return nil, err
		}
		now := list{state: textfile.SignatureOf(info)}
		mu.Lock()
		before, found := known[path]
		mu.Unlock()
		if found && before.state == now.state {
			return before.names, nil
		}
		if now.names, err = dirs(path); err != nil || racy(now.state) {
			return now.names, err
		}
		mu.Lock()
		defer mu.Unlock()
		if len(known) >= rememberedDirs {
			clear(known)
		}
		known[path] = now
		return now.names, nil
	}
}
