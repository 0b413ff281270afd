package source

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// While one file is read, which may take as long as its file system does, the
// states of the others are available.
func TestStore_OneFileDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	healthy, hung := filepath.Join(dir, "healthy.json"), filepath.Join(dir, "hung.json")
	write(t, healthy, enabled)
	store := Open(Options{Platform: "linux", Files: []string{healthy}, Logger: slog.New(slog.DiscardHandler)})
	defer store.Close()
	store.State(hung)
	source := store.files[hung]
	source.mu.Lock()
	defer source.mu.Unlock()
	done := make(chan State)
	go func() { done <- store.State(healthy) }()
	select {
	case state := <-done:
		if state.Good == nil || !*state.Good.Values.Enabled {
			t.Error("the user's settings do not count")
		}
	case <-deadline.After(20 * time.Second):
		t.Fatal("the state of another file waits")
	}
}

func TestStore_ForgetsTheFileUsedLongestAgo(t *testing.T) {
	t.Parallel()
	store := Open(Options{Platform: "linux", Logger: slog.New(slog.DiscardHandler)})
	defer store.Close()
	dir := t.TempDir()
	name := func(i int) string { return filepath.Join(dir, strings.Repeat("p", i+1), "settings.json") }
	for i := range maxProjects {
		store.State(name(i))
	}
	store.State(name(0))
	store.State(name(maxProjects))
	known := func(i int) bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.files[name(i)] != nil
	}
	if !known(0) || known(1) || !known(2) || !known(maxProjects) {
		t.Errorf("first %t, second %t, third %t, last %t", known(0), known(1), known(2), known(maxProjects))
	}
}
