package compile

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// zedState is a Zed file with permissions for Zed's agent and a block.
func zedState(t *testing.T, file string, whose document.Owner, permissions, block string) source.State {
	t.Helper()
	text := "{\"agent\": {\"sandbox_permissions\": " + permissions + "},\n\"terminal\": {\"sandbox\": " + block + "}}"
	good, problem := document.Decode([]byte(text), "linux", whose)
	if problem != nil {
		t.Fatalf("%s: %s", text, problem)
	}
	return source.State{File: file, Exists: true, Read: true, Good: good}
}

func withAgent(t *testing.T, permissions, block string) *Snapshot {
	t.Helper()
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{
		"/srv/a/": "", "/srv/b/": "", "/home/u/project/.git/HEAD": "ref: refs/heads/x\n",
		"/home/u/project/.git/hooks/": "", "/home/u/project/.git/config": "",
	}), "", "")
	s.UserStates = []source.State{zedState(t, userFile, document.Editor, permissions, block)}
	return s
}

func TestAgent_PermissionsCountForToolsAlone(t *testing.T) {
	t.Parallel()
	s := withAgent(t, `{"write_paths": ["/srv/a"], "network_hosts": ["example.org"], "allow_git_access": true}`,
		`{"enabled": true, "allow_network": false}`)
	tool, terminal := s.Compile(document.KindTool), s.Compile(document.KindTerminal)
	if got := accessOf(tool, "/srv/a/x") + " " + accessOf(terminal, "/srv/a/x"); got != "read,write,execute none" {
		t.Errorf("the path: %s", got)
	}
	rule, _ := tool.Policy.Find(policy.Write, "/srv/a")
	if want := "agent.sandbox_permissions.write_paths (" + userFile + ":1)"; rule.Origin.String() != want {
		t.Errorf("origin %s, want %s", rule.Origin, want)
	}
	if len(tool.Policy.Network.AllowedHosts) != 1 || len(terminal.Policy.Network.AllowedHosts) != 0 {
		t.Errorf("hosts: %v, %v", tool.Policy.Network.AllowedHosts, terminal.Policy.Network.AllowedHosts)
	}
	const hook = "/home/u/project/.git/hooks/pre-commit"
	if _, protected := tool.Policy.ProtectedAt(hook); protected {
		t.Error("git's hooks are protected from tools")
	}
	if _, protected := terminal.Policy.ProtectedAt(hook); !protected {
		t.Error("git's hooks are not protected from terminals")
	}
	for _, other := range []string{".vscode/tasks.json", ".zed/settings.json", ".envrc"} {
		if _, protected := tool.Policy.ProtectedAt("/home/u/project/" + other); !protected {
			t.Errorf("%s is not protected", other)
		}
	}
	if got := said(tool, userFile); !strings.Contains(got, "allow_git_access: lets tools change git's hooks") {
		t.Errorf("diagnostics:\n%s", got)
	}
}

func TestAgent_IsBelowTheBlockOfTheFile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		permissions, block string
		path               string
		network, on        bool
	}{
		{`{"write_paths": ["/srv/a"]}`, `{}`, "read,write,execute", true, false},
		{`{"allow_all_hosts": true}`, `{"enabled": true}`, "none", true, true},
		{`{"allow_all_hosts": true}`, `{"enabled": true, "allow_network": false}`, "none", false, true},
		{
			`{"write_paths": ["/srv/a"]}`, `{"enabled": true, "additional_read_write_paths": ["/srv/b"]}`,
			"none", true, true,
		},
		{`{"write_paths": ["/srv/a"], "allow_all_hosts": true}`, `{"mode": "strict"}`, "none", false, true},
		{`{"allow_unsandboxed": true, "allow_fs_write_all": true}`, `{"enabled": true}`, "none", true, true},
	} {
		c := withAgent(t, test.permissions, test.block).Compile(document.KindTool)
		if accessOf(c, "/srv/a/x") != test.path || c.Policy.Network.Allowed != test.network ||
			c.Policy.Restricted != test.on {
			t.Errorf("%s, %s: %s, network %t, restricted %t", test.permissions, test.block, accessOf(c, "/srv/a/x"),
				c.Policy.Network.Allowed, c.Policy.Restricted)
		}
	}
}

func TestAgent_WhatHasNoEffectIsNamed(t *testing.T) {
	t.Parallel()
	for permissions, want := range map[string]string{
		`{"allow_unsandboxed": true}`: "1:57: warning: agent.sandbox_permissions.allow_unsandboxed: has no effect: " +
			"tools could do",
		`{"allow_fs_write_all": true}`: "warning: agent.sandbox_permissions.allow_fs_write_all: has no effect: tools " +
			"could change",
		`{"network_hosts": ["a.org"]}`: "warning: agent.sandbox_permissions.network_hosts: has no effect while " +
			"allow_network is true",
		`{"write_paths": "/srv/a"}`: "warning: agent.sandbox_permissions.write_paths: expected an array of strings, " +
			"found a string",
		`{"write_paths": ["/"]}`: `error: agent.sandbox_permissions.write_paths: "/" undoes the sandbox`,
		`{"allow_all_hosts": false, "allow_unsandboxed": false, "of_the_future": 1}`: "",
		`null`: "",
	} {
		c := withAgent(t, permissions, `{"enabled": true}`).Compile(document.KindTool)
		got := said(c, userFile)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s", permissions, got)
		}
		if c.Doubt != nil {
			t.Errorf("%s: tools do not start: %v", permissions, c.Doubt)
		}
	}
	// Users of Zed who do not use the sidecar get no diagnostic.
	s := withAgent(t, `{"write_paths": ["/srv/a"]}`, `null`)
	if got := said(s.Compile(document.KindTool), userFile); got != "" {
		t.Errorf("without a sandbox: %s", got)
	}
}

func TestAgent_AProjectCannotBringPermissions(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/srv/a/": ""}), `{"enabled": true}`, "{}")
	state := zedState(t, projectFile, document.Project, `{"write_paths": ["/srv/a"]}`, `{}`)
	s.ProjectState = &state
	c := s.Compile(document.KindTool)
	if got := accessOf(c, "/srv/a/x"); got != "none" {
		t.Errorf("granted %s", got)
	}
	if got := said(c, projectFile); !strings.Contains(got, "1:35: warning: agent.sandbox_permissions: has no effect "+
		"in a project") {
		t.Errorf("diagnostics: %s", got)
	}
	if asks := s.Project().Asks; len(asks) > 0 {
		t.Errorf("asks: %+v", asks)
	}
}

// The user's permissions for Zed's agent are met like the rest.
func TestAgent_AProjectNeverGrantsMoreThanTheUser(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(settingstest.Tree)
	const permissions = `{"write_paths": ["~/.cache", "~/tools/up", "/usr"], "network_hosts": ["a.org"],
		"allow_all_hosts": true, "allow_git_access": true}`
	settingstest.ForPairs(t, 200, func(user, project string) {
		s := snapshotOf(t, f, user, project)
		s.UserStates = []source.State{zedState(t, userFile, document.Editor, permissions, user)}
		checkMeetOf(t, s, user, project)
	})
}
