package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// lockTimeout bounds the wait for another sidecar that writes the list. A write
// takes milliseconds.
const lockTimeout = 5 * time.Second

// Change replaces the list by what change makes of it. Two sidecars do so one
// after the other, and a reader sees either the old or the new list. A list
// that cannot be understood is replaced as if it were empty. A newer sidecar's
// is left alone.
func Change(path string, change func(*List) []Project) error {
	if path == "" {
		return errors.New("write list of trusted projects: the home directory is not known")
	}
	dir := filepath.Dir(path)
	if err := fsguard.MkdirAll(dir, 0o700); err != nil { // this also finds out whether the file system answers
		return fmt.Errorf("write list of trusted projects: %w", err)
	}
	// A file of its own, because each write replaces the list itself.
	unlock, err := fsguard.Lock(path+".lock", lockTimeout)
	if err != nil {
		return fmt.Errorf("write list of trusted projects: lock %s: %w", display.Quote(path), err)
	}
	defer unlock()
	list, _ := Read(path)
	if list.foreign {
		return fmt.Errorf("write list of trusted projects: %s: %s", display.Quote(path), list.Problem)
	}
	projects := change(list)
	slices.SortFunc(projects, func(a, b Project) int { return strings.Compare(a.Path, b.Path) })
	data, err := json.MarshalIndent(content{
		Version:  version,
		Projects: append([]Project{}, projects...),
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("write list of trusted projects: %w", err)
	}
	if err := fsguard.Replace(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write list of trusted projects: %w", err)
	}
	return nil
}
