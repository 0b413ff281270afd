package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// crowdedEntry is the i-th entry of a long list of a key.
func crowdedEntry(key string, i int) string {
	switch key {
	case variablesKey:
		return fmt.Sprintf("VARIABLE_%d", i)
	case "allowed_hosts", "denied_hosts":
		return fmt.Sprintf("host%d.example.org:443", i)
	case socketsKey:
		return fmt.Sprintf("/run/many/%d", i)
	case keysKey:
		return fmt.Sprintf("%040X", i)
	case protectedKey, hiddenKey:
		return fmt.Sprintf("%d/%d/%s", i/100, i%100, key)
	}
	return fmt.Sprintf("/home/u/project/%d/%d", i/100, i%100)
}

// crowdedBlock sets keys to lists of n entries.
func crowdedBlock(t testing.TB, n int, keys ...string) string {
	t.Helper()
	on := true
	block := document.Sandbox{Enabled: &on}
	for _, key := range keys {
		list := make([]string, n)
		for i := range list {
			list[i] = crowdedEntry(key, i)
		}
		if parts := strings.Split(key, "."); len(parts) > 1 && block.SystemPaths == nil {
			block.SystemPaths = &document.SystemPaths{}
		}
		block.SetList(key, list)
	}
	text, err := json.Marshal(block)
	must(t, err)
	var set map[string]any
	must(t, json.Unmarshal(text, &set))
	for key, value := range set {
		if value == nil {
			delete(set, key)
		}
	}
	text, err = json.Marshal(set)
	must(t, err)
	return string(text)
}

// A repository, a user and an organisation may each write thousands of entries
// into any list, and into all lists at once. Each start reads them.
func TestCompile_IsLinearInEveryList(t *testing.T) {
	tree := map[string]string{"/usr/bin/": ""}
	for i := range 20_000 {
		tree[fmt.Sprintf("/home/u/project/%d/%d/%s", i/100, i%100, hiddenKey)] = ""
	}
	f := resolvetest.InMemory(tree)
	lists := map[string][]string{}
	for _, key := range document.Keys() {
		if document.IsList(key.Name) {
			lists[key.Name] = []string{key.Name}
			lists["all"] = append(lists["all"], key.Name)
		}
	}
	if len(lists["all"]) < 15 {
		t.Fatalf("lists: %q", lists["all"])
	}
	for name, keys := range lists {
		t.Run(name, func(t *testing.T) {
			n := 4000
			if name == "all" {
				n = 1000
			}
			harness.Linear(t, n, func(n int) {
				many := crowdedBlock(t, n, keys...)
				compiledLists(t, managedSnapshot(t, f, "{}", many, many, many), n, keys)
			})
		})
	}
	t.Run("hidden by the organisation", func(t *testing.T) {
		harness.Linear(t, 12_000, func(n int) {
			s := managedSnapshot(t, f, "{}", crowdedBlock(t, n, hiddenKey), enabledBlock, "")
			compiledLists(t, s, n, []string{hiddenKey})
		})
	})
}

const enabledBlock = `{"enabled": true}`

// compiledLists compiles, and fails the test if the lists do not count.
func compiledLists(t testing.TB, s *Snapshot, n int, keys []string) {
	t.Helper()
	p := s.Compile(document.KindTool).Policy
	for key, got := range map[string]int{
		protectedKey: len(p.Protected), hiddenKey: len(p.Hidden), variablesKey: len(p.Environment.Allowed),
		socketsKey: len(p.UnixSockets), keysKey: len(p.SigningKeys), "additional_read_only_paths": len(p.Rules),
	} {
		if slices.Contains(keys, key) && got < n {
			t.Fatalf("%s: %d of %d entries count", key, got, n)
		}
	}
}
