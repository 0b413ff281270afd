package explain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

// The suggestion for a name is its toolchain, which makes the name before the
// next session starts. It is never a directory with files that decide about
// sessions.
func TestSuggest_NamesOfToolchains(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/home/u/.config/": "", "/home/u/.npmrc": "",
		"/srv/data/": "",
		userFile:     "",
	})
	const off, on = `{"enabled": true}`, `{"enabled": true, "toolchains": ["node", "go"]}`
	const without = `{"toolchains": []}`
	for _, test := range []struct{ user, project, target, program, want string }{
		{off, "", "/home/u/.npm", "npm", "toolchains=node"},
		{on, "", "/home/u/.npm", "npm", "allowed"},
		{on, "", "/home/u/.cache", "go", "allowed"},
		{off, "", "/home/u/.cache", "gcc-12", "toolchains=c"}, // as which ccache runs
		{off, "", "/home/u/.cache", "cat", "none: careful: that would open your home directory"},
		{off, "", "/home/u/.cache/vcpkg", "mkdir", "toolchains=c"},
		{off, "", "/home/u/.yarn/berry/cache", "node", "toolchains=node"},
		{on, without, "/home/u/.npm", "npm", "none: careful: that would open your home directory"},
		{off, "", "/home/u/.config/go", "go", "toolchains=go"},
		{off, "", "/home/u/.config/go", "vet", "none: careful: that would open the settings"},
		{on, "", "/home/u/.config/go", "vet", "allowed"},
		{on, "", "/home/u/.config/other", "other", "none: careful: that would open the settings"},
		{on, "", "/home/u/.npmrc", "npm", "none: careful: that would open your home directory, with tokens"},
		{on, "", "/srv/data/x", "npm", "additional_read_write_paths=/srv/data"},
	} {
		s, err := Suggest(snapshotOf(t, f, test.user, test.project), document.KindTool, "create", test.target,
			test.program)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s=%s", s.Key, s.Value)
		switch {
		case s.Allowed:
			got = "allowed"
		case s.Key == "":
			got = "none: " + s.Hint
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s by %s, with %s %s: %s, want %s", test.target, test.program, test.user, test.project,
				got, test.want)
		}
	}
}

// Programs blame the token if the key chain of macOS is closed, so the advice says
// what they mean. It is nothing to grant.
func TestSuggest_KeyChain(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/home/u/Library/Keychains/login.keychain-db": "", "/home/u/Library/other": "",
	})
	snapshot := snapshotOf(t, f, `{"enabled": true}`, "")
	snapshot.Host.Platform = "darwin"
	for target, want := range map[string]bool{
		"/home/u/Library/Keychains/login.keychain-db": true, "/home/u/Library/other": false,
	} {
		s, err := Suggest(snapshot, document.KindTool, "read", target, "security")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.HasPrefix(s.Hint, "careful: ") && strings.HasSuffix(s.Hint, keyChainHint); got != want {
			t.Errorf("%s: %q", target, s.Hint)
		}
		if want && s.Key != "" {
			t.Errorf("%s: %s=%s is suggested", target, s.Key, s.Value)
		}
	}
}

// What a variable of a toolchain names in vain suggests neither itself nor what is
// around it, which may hold all projects.
func TestSuggest_WhatAVariableNamesInVain(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/srv/one/": "", "/srv/empty/": "", "/srv/full/http-v2/a/b/c/": "", userFile: "",
	})
	for _, row := range []struct{ value, access, target, want string }{
		{"/srv/missing", "create", "/srv/missing", "outside of a session"},
		{"/srv/missing", "create", "/srv/missing/http-v2", "outside of a session"},
		{"/srv/missing/pip/cache", "create", "/srv/missing", "outside of a session"},
		{"/srv/missing/pip/cache", "write", "/srv/missing/pip/cache/x", "outside of a session"},
		{"/srv/empty", "create", "/srv/empty/http-v2", "outside of a session"},
		{"/srv/empty", "read", "/srv/empty", "outside of a session"},
		{"/srv/full", "create", "/srv/full/x", "allowed"},
		{"/srv/missing", "create", "/srv/one/x", "additional_read_write_paths=/srv/one"}, // the controls
		{"/srv/missing", "create", "/srv/other", "additional_read_write_paths=/srv"},
		{"/", "create", "/srv/one/x", "additional_read_write_paths=/srv/one"}, // it holds everything
		{"/home", "create", "/srv/one/x", "additional_read_write_paths=/srv/one"},
	} {
		snapshot := snapshotOf(t, f, `{"enabled": true, "toolchains": ["python"]}`, "")
		snapshot.Host.Env["PIP_CACHE_DIR"] = row.value
		s, err := Suggest(snapshot, document.KindTool, row.access, row.target, "pip")
		if err != nil {
			t.Fatal(err)
		}
		got := s.Key + "=" + s.Value + s.Hint
		if s.Allowed {
			got = "allowed"
		}
		if !strings.Contains(got, row.want) || s.Key != "" && strings.HasSuffix(row.want, "session") {
			t.Errorf("%+v: %s", row, got)
		}
	}
}

// What the user protects where nothing is granted gets no suggestion, nor does a
// directory in it. Reading it is another matter.
func TestSuggest_NothingForWhatTheUserProtects(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/srv/kept/file": "", "/srv/data/": "", "/srv/real/file": "",
		"/srv/link": "-> real/file", userFile: "", "/srv/data/b.lock": "-> ../other", "/srv/other": "",
	})
	const plain, protects = `{"enabled": true}`,
		`{"enabled": true, "protected_paths": ["/srv/kept", "/srv/data/*.lock", "/srv/link", "/srv/*/wide"]}`
	for _, row := range []struct {
		access, target string
		kept           bool
	}{
		{"write", "/srv/kept", true},
		{"write", "/srv/kept/file", true},
		{"create", "/srv/kept/new", true},
		{"remove", "/srv/kept/file", true},
		{"create", "/srv/data/a.lock", true},
		{"create", "/srv/data/a.lock/b", true},
		{"write", "/srv/real/file", true},
		{"write", "/srv/other", true},
		{"read", "/srv/kept/file", false},
		{"write", "/srv/data", false},
		{"create", "/srv/data/a", false},
		{"create", "/srv/data/wide", false}, // what could not be understood does not count
	} {
		for user, kept := range map[string]bool{plain: false, protects: row.kept} {
			snapshot := snapshotOf(t, f, user, "")
			s, err := Suggest(snapshot, document.KindTool, row.access, row.target, "")
			if err != nil || s.Protected != kept || (s.Key == "") != kept {
				t.Errorf("%+v with %s: %+v, %v", row, user, s, err)
			}
			if kept && !strings.Contains(s.Hint, "it is protected by protected_paths ("+userFile) {
				t.Errorf("%+v: %s", row, s.Hint)
			}
			if unseen := Unseen(snapshot, document.KindTool, row.access, row.target); unseen == kept {
				t.Errorf("%+v with %s: allowed unseen: %v", row, user, unseen)
			}
		}
	}
}

// What nobody could execute needs no setting.
func TestSuggest_NothingForWhatIsNoProgram(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": "", "/srv/data/file": ""})
	for target, want := range map[string]string{
		"/srv/data": "it is a directory", "/srv/data/file": "the file is not executable",
	} {
		s, err := Suggest(snapshotOf(t, f, `{"enabled": true}`, ""), document.KindTool, "execute", target, "")
		if err != nil || s.Key != "" || s.Value != "" || s.Allowed || !strings.HasPrefix(s.Hint, want) {
			t.Errorf("%s: %+v, %v", target, s, err)
		}
	}
}

// The set "ssh" is named only where it would have an effect.
func TestSuggest_SSHOnlyIfTheOrganisationLeavesIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		required, user string
		named          bool
	}{
		{`{}`, `{"enabled": true}`, true},
		{`{"enabled": true}`, `{}`, true},
		{`{"mode": "strict"}`, `{}`, false},
		{`{"enabled": true, "toolchains": ["go"]}`, `{}`, false},
		{`{"enabled": true, "toolchains": ["ssh"]}`, `{}`, true},
		{`{"enabled": true, "allowed_unix_sockets": []}`, `{}`, false},
		{`{"enabled": true, "signing_keys": []}`, `{}`, false},
	} {
		s := managedSnapshot(t, resolvetest.InMemory(settingstest.Tree), "{}", test.required, test.user)
		got, err := Suggest(s, document.KindTool, "read", "/home/u/.ssh/id", "cat")
		if named := strings.Contains(got.Hint, `"ssh"`); err != nil || named != test.named || got.Hint == "" {
			t.Errorf("required %s, user %s: %q, %v", test.required, test.user, got.Hint, err)
		}
	}
}

// A copied value means the same after it is pasted.
func TestInstructionInFull_CanBeCopied(t *testing.T) {
	t.Parallel()
	long := "/srv/" + strings.Repeat("d/", 200) + "x"
	for _, test := range []struct {
		suggestion Suggestion
		want       string
	}{
		{Suggestion{Key: "additional_read_only_paths", Value: long}, `add "` + long +
			`" to "additional_read_only_paths"`},
		{
			Suggestion{Key: "additional_read_only_paths", Value: "/c\\d\n\u202e"},
			`add "/c\\d\n\u202e" to "additional_read_only_paths"`,
		},
		{Suggestion{Key: protectedKey, Value: `["c\\d"]`}, `set "protected_paths" to ["c\\d"]`},
	} {
		if got := test.suggestion.InstructionInFull(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	if short := (Suggestion{Key: "additional_read_only_paths", Value: long}).Instruction(); len(short) > 200 ||
		!strings.Contains(short, "…") {
		t.Errorf("on one line of a notification: %s", short)
	}
}

// The whole agent is another key, which wins.
func TestGPG_TheWholeAgent(t *testing.T) {
	t.Parallel()
	tree := resolvetest.Tree(t, map[string]string{"/home/u/project/": "", "/home/u/.gnupg/S.gpg-agent": ""})
	s := snapshotOf(t, tree,
		`{"enabled": true, "toolchains": ["gpg"], "allowed_unix_sockets": ["~/.gnupg/S.gpg-agent"]}`, "")
	if got := s.Compile(document.KindTool).Policy.UnixSockets; len(got) != 1 || got[0].Agent != "" {
		t.Errorf("%+v", got)
	}
	s = snapshotOf(t, tree, `{"enabled": true}`, "")
	got, err := Suggest(s, document.KindTool, "connect_unix", "/home/u/.gnupg/S.gpg-agent", "gpg")
	if err != nil || got.Key != toolchainsKey || got.Value != "gpg" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = Suggest(s, document.KindTool, "agent", "decrypt", "")
	if err != nil || !strings.Contains(got.Hint, "no setting") {
		t.Errorf("%+v, %v", got, err)
	}
}

// Advice that names a command names all of it, and none that a shell would read in
// another way.
func TestSuggest_NamesAWholeCommand(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{"/home/u/project/.git/HEAD": "", "/home/u/project/.git/config": ""})
	s := snapshotOf(t, tree, `{"enabled": true, "protected_paths": ["a b"]}`, "")
	for target, want := range map[string]string{
		"/home/u/project/.vscode": protectedHint + " (sandbox-sidecar explain write /home/u/project/.vscode says why)",
		"/home/u/project/a b":     protectedHint,
	} {
		for _, access := range []string{"write", "create", "remove"} {
			got, err := Suggest(s, document.KindTool, access, target, "sh")
			must(t, err)
			if got.Hint != want || !got.Protected {
				t.Errorf("%s %q: %+v", access, target, got)
			}
		}
	}
}
