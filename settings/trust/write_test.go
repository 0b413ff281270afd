package trust

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestChange_AHeldLockIsAnErrorAndNotAWaitForEver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trust.json")
	unlock, err := lock(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	err = Change(path, func(l *List) []Project { return l.With(Project{Path: "/p"}) })
	if !errors.Is(err, errLocked) {
		t.Errorf("got %v", err)
	}
	if list, _ := Read(path); len(list.Projects) != 0 {
		t.Errorf("written without the lock: %v", list.Projects)
	}
}
