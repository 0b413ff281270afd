package compile

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// trusting is a snapshot in which the user trusts the project's file as it is.
func trusting(t testing.TB, f resolve.FS, user, project string) *Snapshot {
	t.Helper()
	s := snapshotOf(t, f, user, project)
	digest := hex.EncodeToString(s.ProjectState.Digest[:])
	s.Trust = &trust.List{
		Path:     "/home/u/.local/state/sandbox-sidecar/trust.json",
		Projects: []trust.Project{{Path: "/home/u/project", Digest: digest}},
	}
	return s
}

func describeAsks(asks []Ask) string {
	var out strings.Builder
	for _, a := range asks {
		fmt.Fprintf(&out, "%s %s: %s\n", a.Key, a.Value, a.Opens)
	}
	return out.String()
}

func TestAsks_SayInOneSentenceWhatTrustWouldOpen(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/home/u/.ssh/id": "", "/home/u/.config/gh/hosts.yml": "", "/home/u/.aws/": "",
		"/usr/bin/": "", "/home/u/file": "", "/home/u/.cache/pip/": "",
	})
	const on = `{"enabled": true}`
	tests := []struct{ name, user, project, want string }{
		{
			"a repository that switches everything off", on, `{"enabled": false, "additional_read_write_paths": ["/"]}`,
			"enabled false: terminals and tools run without any sandbox: they may do everything that you may\n" +
				"additional_read_write_paths /: nothing, because it does not count in a trusted project either: it " +
				"would grant writing everything, " +
				"the settings and the kernel's own files included\n",
		},
		{
			"a repository that wants everybody's home", on, `{"additional_read_write_paths": ["/home"]}`,
			`additional_read_write_paths /home: sessions may read, ` +
				`write and execute "/home" and everything below it: that is your home directory and ` +
				"much more, with SSH keys, keys of Amazon's cloud and tokens of GitHub\n",
		},
		{"nothing", on, `{}`, ""},
		{"only tightening", on, `{"allow_network": false, "additional_read_only_paths": [], "protected_paths": ["x", ` +
			`".git", ".zed", ".vscode", ".idea", ".envrc", ".nvim.lua", ".exrc", ".mcp.json", ".gitmodules"], ` +
			`"allowed_env_vars": ["PATH"]}`, ""},
		{
			"what the user grants too", `{"enabled": true, "additional_read_only_paths": ["~/.ssh"]}`,
			`{"additional_read_only_paths": ["~/.ssh/id", "src"]}`, "",
		},
		{
			"a kind less", `{"enabled": true, "apply_to": "both"}`, `{"apply_to": "terminal"}`,
			"apply_to \"terminal\": tools run without any sandbox: they may do everything that you may\n",
		},
		{
			"paths, by what they are", on, `{"additional_read_only_paths": ["~/.ssh", "~/file"], ` +
				`"additional_executable_paths": ["../elsewhere"]}`,
			`additional_executable_paths ../elsewhere: sessions may read and execute "/home/u/elsewhere" and everything below it` + "\n" +
				`additional_read_only_paths ~/.ssh: sessions may read "/home/u/.ssh" and everything below it: that is SSH keys` +
				"\n" +
				`additional_read_only_paths ~/file: sessions may read "/home/u/file"` + "\n",
		},
		{
			"the system", `{"enabled": true, "system_paths": {"read_write": []}}`,
			`{"system_paths": {"read_write": ["/tmp"]}}`,
			`system_paths.read_write /tmp: sessions may read, write and execute "/tmp" and everything below it` + "\n",
		},
		{
			"the network", `{"enabled": true, "allow_network": false}`, `{"allow_network": true}`,
			"allow_network true: sessions may reach the network, and send there what they can read\n",
		},
		{
			"variables", on, `{"allowed_env_vars": ["PATH", "AWS_*", "LD_PRELOAD", "TOKEN", "TERM"]}`,
			`allowed_env_vars AWS_*: sessions get every variable of yours whose name begins with "AWS_"` + "\n" +
				`allowed_env_vars LD_PRELOAD: sessions get your variable "LD_PRELOAD", ` +
				`which can make programs run code that it names` + "\n" +
				`allowed_env_vars TOKEN: sessions get your variable "TOKEN"` + "\n",
		},
		{
			"sockets", on, `{"allowed_unix_sockets": ["/run/docker.sock", "abstract:x"]}`,
			`allowed_unix_sockets /run/docker.sock: sessions may use the socket "/run/docker.sock", ` +
				`and it starts containers that may use any file of this machine` + "\n" +
				`allowed_unix_sockets abstract:x: sessions may use the socket "abstract:x", ` +
				`with the full power of the program behind it` + "\n",
		},
		{
			"protection", `{"enabled": true, "protected_paths": ["a", "b/c"]}`, `{"protected_paths": ["b"]}`,
			`protected_paths ["b"]: sessions may change "a", which programs outside of the sandbox rely on` + "\n",
		},
		{
			// Without the user's entry git may create it with the repository.
			"protection of what git creates", `{"enabled": true, "protected_paths": [".git/hooks"]}`,
			`{"protected_paths": ["b"]}`,
			`protected_paths ["b"]: sessions may change ".git/hooks", which programs outside of the sandbox rely on` +
				"\n",
		},
		{
			"protection in another grant", `{"enabled": true, "additional_read_write_paths": ["~/.cache"]}`,
			`{"additional_read_write_paths": ["~/.cache", "~/.cache/pip"]}`,
			`additional_read_write_paths ~/.cache/pip: sessions may read, write and execute "/home/u/.cache/pip" and ` +
				"everything below it, which programs outside of the sandbox rely on\n",
		},
		{
			"a machine without a sandbox", on, `{"on_unavailable": "warn"}`,
			`on_unavailable "warn": tools start without a sandbox if the machine has none` + "\n",
		},
		{"silence", on, `{"on_denied": "ignore"}`, `on_denied "ignore": denials are no longer reported to you` + "\n"},
		{
			"tracking", `{"enabled": true, "process_tracking": "seatbelt"}`, `{"process_tracking": "auto"}`,
			`process_tracking "auto": on macOS, ` +
				`processes are tracked in another way than your own settings say ("seatbelt")` + "\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := snapshotOf(t, f, test.user, test.project)
			p := s.Project()
			if got := describeAsks(p.Asks); got != test.want || p.Trusted {
				t.Errorf("trusted %t, asks:\n%swant:\n%s", p.Trusted, got, test.want)
			}
			for _, a := range p.Asks {
				reported := a.never && strings.Contains(said(s.Compile(document.KindTool), projectFile),
					"undoes the sandbox")
				for _, d := range s.DiagnosticsOf(projectFile) {
					reported = reported || d.Line == a.Line && d.Column == a.Column && d.Key == a.Key &&
						strings.Contains(d.Message, "has no effect unless you trust this project; if you do: "+a.Opens)
				}
				if !reported {
					t.Errorf("%s %s is not told: %v", a.Key, a.Value, s.DiagnosticsOf(projectFile))
				}
			}
			// In a trusted file the same asks count, and there is nothing to
			// warn of.
			trusted := trusting(t, f, test.user, test.project)
			if p := trusted.Project(); !p.Trusted || describeAsks(p.Asks) != test.want {
				t.Errorf("trusted %t, asks:\n%s", p.Trusted, describeAsks(p.Asks))
			}
			if got := said(trusted.Compile(document.KindTool), projectFile); strings.Contains(got, "has no effect") {
				t.Errorf("a trusted file is told off:\n%s", got)
			}
		})
	}
}

// firstKey is a block with one of the keys of another.
func firstKey(t *testing.T, block string) string {
	t.Helper()
	var keys map[string]json.RawMessage
	must(t, json.Unmarshal([]byte(block), &keys))
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		data, err := json.Marshal(map[string]json.RawMessage{key: keys[key]})
		must(t, err)
		return string(data)
	}
	return block
}

func TestAsks_AreSilentOnlyWhereTrustOpensNothing(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(settingstest.Tree)
	var silent, wider atomic.Int64
	check := func(user, project string) {
		s := trusting(t, f, user, project)
		g := s.view()
		all := 0
		for _, kind := range []document.Kind{document.KindTerminal, document.KindTool} {
			alone := s.run(g, s.ProjectDir, asIgnored, kind, nil)
			believed := s.run(g, s.ProjectDir, asTrusted, kind, alone)
			asks := believed.beyond(alone)
			all += len(asks)
			wide, narrow := alone.policyFor(kind), believed.policyFor(kind)
			how := exceeds(&narrow, &wide)
			if how != "" && len(asks) == 0 {
				t.Errorf("%s: trust opens something that nobody was told: %s\nuser    %s\nproject %s", kind, how,
					user, project)
			}
			if how != "" {
				wider.Add(1)
			}
		}
		if all == 0 {
			silent.Add(1)
		}
	}
	settingstest.ForPairs(t, 250, func(user, project string) {
		check(user, project)
		check(user, firstKey(t, project)) // most files with many keys open something
	})
	if silent.Load() == 0 || wider.Load() == 0 {
		t.Errorf("%d silent, %d wider: the generator does not make both", silent.Load(), wider.Load())
	}
}

func TestAsks_ProtectedPathsThatAProjectAddsHaveAnEffect(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/.git/": ""})
	for project, want := range map[string]string{
		`{"protected_paths": ["!.git", "Makefile"]}`: `"!.git" has no effect unless you trust this project; if`,
		`{"protected_paths": ["Makefile"]}`:          `replacing your own list has no effect unless you trust`,
	} {
		s := snapshotOf(t, f, `{"enabled": true, "protected_paths": ["mine"]}`, project)
		got := said(s.Compile(document.KindTool), projectFile)
		if !strings.Contains(got, want) || strings.Contains(got, "Makefile") {
			t.Errorf("%s: %s", project, got)
		}
	}
}

func TestTrusted_FileCountsAsALayer(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/sub/": "", "/home/u/.ssh/id": "",
		"/home/u/.cache/link": "-> ../.ssh",
		"/home/u/project/out": "-> ../.ssh",
	})
	const user = `{"enabled": true, "apply_to": "tool", "allow_network": false, "on_denied": "ask",
		"additional_read_write_paths": ["~/.cache"], "additional_read_only_paths": ["~/.cache/link"]}`
	const project = `{"apply_to": "both", "allow_network": true, "additional_read_write_paths": [],
		"additional_read_only_paths": ["~/.ssh", "../../u/x", "out"], "protected_paths": ["!*"]}`
	s := trusting(t, f, user, project)
	c := s.Compile(document.KindTerminal)
	if !c.Policy.Restricted || !c.Policy.Network.Allowed || c.Policy.Network.Origin.File != projectFile ||
		len(c.Policy.Protected) != 0 {
		t.Errorf("policy: %+v", c.Policy)
	}
	for path, want := range map[string]string{
		"/home/u/.ssh/id": "read", "/home/u/x": "read", "/home/u/.cache/y": "none",
	} {
		if got := accessOf(c, path); got != want {
			t.Errorf("%s: granted %s, want %s", path, got, want)
		}
	}
	if origins := s.Origins(); origins["allow_network"] != projectFile || origins["enabled"] != userFile {
		t.Errorf("origins: %v", origins)
	}
	// A link that a session may move does not count, whoever trusts it. Nor
	// does one that only other projects' sessions may move.
	if got := said(c, projectFile); !strings.Contains(got, `"out" crosses the symlink`) {
		t.Errorf("diagnostics of the project's file:\n%s", got)
	}
	c = trusting(t, f, user, `{"additional_read_write_paths": []}`).Compile(document.KindTool)
	if got := accessOf(c, "/home/u/.ssh/id"); got != "none" {
		t.Errorf("a project that drops a writable directory brings back a grant refused because of it: %s", got)
	}
}

func TestTrusted_OnlyThatContentInThatDirectory(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/home/u/link": "-> project", "/tmp/": "",
		"/home/u/.local/state/": "",
	})
	const user, project = `{"enabled": true}`, `{"enabled": false}`
	for name, test := range map[string]struct {
		user   string
		change func(s *Snapshot)
		want   bool
	}{
		"as it was trusted":  {user, func(*Snapshot) {}, true},
		"by a symlink to it": {user, func(s *Snapshot) { s.ProjectDir = "/home/u/link" }, true},
		"another directory":  {user, func(s *Snapshot) { s.ProjectDir = "/tmp" }, false},
		"another content":    {user, func(s *Snapshot) { s.ProjectState.Digest[31] ^= 1 }, false},
		"unreadable now":     {user, func(s *Snapshot) { s.ProjectState.Read = false }, false},
		"broken now": {user, func(s *Snapshot) {
			s.ProjectState.Problem = &document.Diagnostic{Line: 1, Column: 1, Message: "x"}
		}, false},
		"no list": {user, func(s *Snapshot) { s.Trust = nil }, false},
		"a corrupt list": {user, func(s *Snapshot) {
			s.Trust = &trust.List{Path: s.Trust.Path, Problem: "corrupt"}
		}, false},
		"a list sessions may write": {
			`{"enabled": true, "additional_read_write_paths": ["~/.local"]}`, func(*Snapshot) {},
			false,
		},
		"a list inside the project":  {user, func(s *Snapshot) { s.Trust.Path = "/home/u/project/trust.json" }, false},
		"a list in a temporary home": {user, func(s *Snapshot) { s.Trust.Path = "/tmp/trust.json" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := trusting(t, f, test.user, project)
			test.change(s)
			if got := s.Project().Trusted; got != test.want {
				t.Errorf("trusted %t, want %t", got, test.want)
			}
			if got := !s.Compile(document.KindTool).Policy.Restricted; got != test.want {
				t.Errorf("the sandbox is off: %t, want %t", got, test.want)
			}
		})
	}
}
