package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// A home that is another user's and closed has no settings of this user. One
// that the user has closed has, and they are in doubt.
func TestOwnHome(t *testing.T) {
	t.Parallel()
	mine := t.TempDir()
	if err := os.Chmod(mine, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(mine, 0o700) })
	missing := filepath.Join(t.TempDir(), "missing")
	const root = "/root"
	_, err := os.Lstat(filepath.Join(root, ".config"))
	for home, want := range map[string]string{mine: mine, missing: missing, "/": "/", root: root} {
		if home == root && errors.Is(err, fs.ErrPermission) {
			want = ""
		}
		if got := ownHome(home); got != want {
			t.Errorf("%s: %q, want %q", home, got, want)
		}
	}
}

// A file that only tightens decides nothing in which it has no say, and is no
// organisation's.
func TestElsewhere_HasNoSayInWhatProjectsHaveNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"shell": ["zsh"]}`, `{"audit": "file"}`, `{"audit_required": true}`, `{"on_denied": "ignore"}`,
		`{"process_tracking": "seatbelt"}`, `{"tool": {"on_denied": "ignore"}}`, `{"tool": {"allow_network": false}}`,
		`{"terminal": {"allow_network": false}}`, `{"allow_network": false}`,
	} {
		s := snapshotOf(t, resolvetest.Tree(t, nil), `{"enabled": true, "on_denied": "ask"}`, "")
		states := []source.State{settingstest.State(t, "/elsewhere/settings.json", text)}
		s.UserStates = append(s.UserStates, onlyTightening(states, "why")...)
		for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
			if got := *s.MergedFor(kind).OnDenied; got != document.OnDeniedAsk {
				t.Errorf("%s of the %s: on_denied is %s, by %s", text, kind, got, s.Origins()["on_denied"])
			}
		}
	}
	// A suggestion would bound what it lists there.
	for name, state := range map[string]source.State{
		"empty":   settingstest.State(t, "/elsewhere/settings.json", `{}`),
		"missing": {File: "/elsewhere/settings.json"},
	} {
		s := snapshotOf(t, resolvetest.Tree(t, nil), `{"enabled": true}`, "")
		s.UserStates = append(s.UserStates, onlyTightening([]source.State{state}, "why")...)
		file, err := fileOfUser(s, "additional_read_only_paths")
		if err != nil || file != settingstest.UserFile {
			t.Errorf("%s: a suggestion goes to %s, %v", name, file, err)
		}
	}
}
