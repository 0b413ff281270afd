package explain

import (
	"fmt"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// Sessions cause denials at the same time, and all ask one snapshot.
func TestSuggest_ManyAskOneSnapshot(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/.bashrc": "-> dotfiles/bashrc", "/home/u/dotfiles/bashrc": "",
		"/srv/data/x": "",
	})
	s := snapshotOf(t, f, `{"enabled": true}`, "")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			path, want := "/srv/data/x", "additional_read_write_paths"
			if i%2 == 0 {
				path, want = "/home/u/dotfiles/bashrc", ""
			}
			got, err := Suggest(s, document.KindTool, "write", path, fmt.Sprint("program", i))
			if err != nil || got.Key != want {
				t.Errorf("%s: %+v, %v, want %q", path, got, err, want)
			}
		})
	}
	all.Wait()
}
