package trust

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

func TestChange_AHeldLockIsAnErrorAndNotAWaitForEver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trust.json")
	unlock, err := fsguard.Lock(path+".lock", lockTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	err = Change(path, func(l *List) []Project { return l.With(Project{Path: "/p"}) })
	if !errors.Is(err, fsguard.ErrLocked) {
		t.Errorf("got %v", err)
	}
	if list, _ := Read(path); len(list.Projects) != 0 {
		t.Errorf("written without the lock: %v", list.Projects)
	}
}
