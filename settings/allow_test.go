package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
)

// A suggestion is for tools alone, too.
func TestAgent_SuggestionsStayInTheBlockForTools(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, `{"agent": {"sandbox_permissions": {"write_paths": ["/srv"]}},
  "terminal": {"sandbox": {"enabled": true}}}`)
	store := d.open(nil)
	data := filepath.Join(d.home, "data")
	must(t, os.Mkdir(data, 0o755))
	s, err := explain.Suggest(store.Snapshot(""), document.KindTool, "write", data, "")
	must(t, err)
	if s.Key != "tool.additional_read_write_paths" {
		t.Fatalf("suggested: %+v", s)
	}
	must(t, store.Allow(ScopeUser, "", s))
	after := store.Snapshot("")
	if got := after.MergedFor(document.KindTool).AdditionalReadWritePaths; !slices.Equal(got,
		[]string{"/srv", data}) {
		t.Errorf("tools: %q", got)
	}
	if got := after.MergedFor(document.KindTerminal).AdditionalReadWritePaths; len(got) > 0 {
		t.Errorf("terminals: %q", got)
	}
}

func TestKinds_AllowWritesIntoTheBlockThatDecides(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "toolchains": ["go"],
  "tool": {"additional_read_only_paths": ["/etc"]}}}}`)
	store := d.open(nil)
	s, err := explain.Suggest(store.Snapshot(""), document.KindTool, "read", "/usr", "")
	must(t, err)
	if s.Key != "tool.additional_read_only_paths" {
		t.Fatalf("suggested: %+v", s)
	}
	must(t, store.Allow(ScopeUser, "", s))
	merged := store.Snapshot("").MergedFor(document.KindTool)
	if !slices.Equal(merged.AdditionalReadOnlyPaths, []string{"/etc", "/usr"}) ||
		len(store.Snapshot("").MergedFor(document.KindTerminal).AdditionalReadOnlyPaths) != 0 {
		text, _ := os.ReadFile(d.own)
		t.Errorf("%v\n%s", merged.AdditionalReadOnlyPaths, text)
	}
}

func TestAllow_DoesNotReplaceTheLastGoodContent(t *testing.T) {
	t.Parallel()
	suggestion := explain.Suggestion{Key: "additional_read_only_paths", Value: "/opt"}
	for name, content := range map[string]string{
		"empty": "", "comments": "// mine",
		"a mistake": `{"terminal": {"sandbox": {"enabled": 1}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			d.write(d.own, enabled)
			d.open(nil)
			d.write(d.own, content)
			if !d.enabled() {
				t.Fatal("not enabled")
			}
			if err := d.store.Allow(ScopeUser, "", suggestion); !errors.Is(err, ErrNotAllowable) || !d.enabled() {
				t.Errorf("%v, enabled %t", err, d.enabled())
			}
			d.write(d.own, enabled)
			if err := d.store.Allow(ScopeUser, "", suggestion); err != nil || !d.enabled() {
				t.Errorf("control: %v, enabled %t", err, d.enabled())
			}
		})
	}
}

// Only what Allow may write can be granted, and only for its own project. The
// files and what is said of them stay the same.
func TestGrant_IsKeptInMemory(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, enabled)
	store := d.open(nil)
	entry := explain.Suggestion{Key: "additional_read_only_paths", Value: "/usr/games"}
	d.must(store.Grant(d.project, entry))
	d.must(store.Grant(d.project, entry))
	if n := len(store.InWindow(d.project).Granted); n != 1 {
		t.Errorf("%d entries", n)
	}
	if got := store.InWindow(d.project).MergedFor("tool"); len(got.AdditionalReadOnlyPaths) != 1 {
		t.Errorf("%q", got.AdditionalReadOnlyPaths)
	}
	for name, s := range map[string]*compile.Snapshot{
		"the files": store.Snapshot(d.project), "the latest": store.Latest(d.project),
		"another project": store.InWindow(d.home), "none": store.InWindow(""),
	} {
		if got := s.MergedFor("tool"); len(got.AdditionalReadOnlyPaths) > 0 {
			t.Errorf("%s: %q", name, got.AdditionalReadOnlyPaths)
		}
	}
	for _, key := range []string{
		"allow_network", "protected_paths", "enabled", "allowed_env_vars",
		"signing_keys", "",
	} {
		if err := store.Grant(d.project, explain.Suggestion{Key: key, Value: "x"}); !errors.Is(err, ErrNotAllowable) {
			t.Errorf("%q: %v", key, err)
		}
	}
	for i := range 2 * maxGranted {
		_ = store.Grant(d.project, explain.Suggestion{Key: entry.Key, Value: fmt.Sprintf("/opt/%d", i)})
	}
	if n := len(store.InWindow(d.project).Granted); n != maxGranted {
		t.Errorf("%d entries", n)
	}
	// What is written for good is that one entry.
	d.must(store.Allow(ScopeUser, d.project, explain.Suggestion{Key: entry.Key, Value: "/usr/include"}))
	if got := store.Snapshot(d.project).MergedFor("tool"); fmt.Sprint(got.AdditionalReadOnlyPaths) != "[/usr/include]" {
		t.Errorf("written: %q", got.AdditionalReadOnlyPaths)
	}
}
