package compile

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// Every kind of diagnostic: its position, its text, and that it disappears when
// the file is fixed.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/tmp/other/": "", "/home/u/project/.git/hooks/": "", "/home/u/.ssh/id": "", "/home/u/.gnupg/": "",
		"/home/u/.config/gh/hosts.yml": "", "/home/u/cache/x": "",
		"/home/u/cache/link": "-> ../.ssh", "/home/u/tools/": "", "/run/docker.sock": "",
		"/home/u/.ssh/known_hosts": "", "/home/u/mail": "-> /home/u",
	})
	const ok = `"enabled": true`
	tests := []struct{ name, block, want string }{
		{"wrong type", `"enabled": "true"`, `1:38: error: enabled: expected true or false, found a string`},
		{
			"unknown key", ok + `, "allowed_env_var": []`,
			`1:44: error: allowed_env_var: unknown setting, did you mean "allowed_env_vars"?`,
		},
		{
			"missing path", ok + `, "additional_read_only_paths": ["~/none"]`,
			`1:75: warning: additional_read_only_paths: "~/none": there is no "/home/u/none"`,
		},
		{
			"pattern of paths", ok + `, "additional_read_only_paths": ["~/none/*"]`,
			`1:75: warning: additional_read_only_paths: "~/none/*": there is no "/home/u/none/*", and this list knows no patterns`,
		},
		{
			"relative path", ok + `, "additional_read_only_paths": ["src"]`,
			`1:75: error: additional_read_only_paths: "src": a relative path counts only in a project's settings`,
		},
		{
			"another's home", ok + `, "additional_read_only_paths": ["~root/x"]`,
			`1:75: error: additional_read_only_paths: "~root/x": ~ can only mean your own home directory`,
		},
		{
			"symlink in a writable place", ok +
				`, "additional_read_write_paths": ["~/cache"], "additional_read_only_paths": ["~/cache/link"]`,
			`1:119: error: additional_read_only_paths: "~/cache/link" crosses the symlink "/home/u/cache/link"`,
		},
		{
			"home", ok + `, "additional_read_only_paths": ["~"]`,
			`1:75: warning: additional_read_only_paths: "~" lets sessions read your home directory; ` +
				`without namespaces SSH keys, ` +
				`GnuPG keys and tokens of GitHub`,
		},
		{
			"home by symlink", ok + `, "additional_read_only_paths": ["~/mail"]`,
			`1:75: warning: additional_read_only_paths: "~/mail" lets sessions read your home ` +
				`directory; without namespaces`,
		},
		{
			"above home", ok + `, "additional_executable_paths": ["/home"]`,
			`1:76: warning: additional_executable_paths: "/home" lets sessions read and execute your home directory and much more`,
		},
		{
			"credentials", ok + `, "additional_read_write_paths": ["~/.ssh"]`,
			`1:76: warning: additional_read_write_paths: "~/.ssh" lets sessions read, write and execute SSH keys`,
		},
		{
			"a credential", ok + `, "additional_read_only_paths": ["~/.config/gh/hosts.yml"]`,
			`1:75: warning: additional_read_only_paths: "~/.config/gh/hosts.yml" lets sessions read tokens of GitHub`,
		},
		{
			"above a credential", ok + `, "system_paths": {"read_only": ["~/.config"]}`,
			`1:75: warning: system_paths.read_only: "~/.config" lets sessions read tokens of GitHub ` +
				`where there are no namespaces`,
		},
		{
			"home with keys that are granted", ok + `, "additional_read_only_paths": ["~", "~/.ssh"]`,
			`1:75: warning: additional_read_only_paths: "~" lets sessions read your home directory, with SSH keys; ` +
				`without namespaces GnuPG keys and tokens of GitHub, too`,
		},
		{
			"the /tmp of all programs", ok + `, "additional_read_only_paths": ["/tmp"]`,
			`1:75: warning: additional_read_only_paths: "/tmp" has no effect: sessions have their own; list the paths`,
		},
		{"a directory in /tmp", ok + `, "additional_read_only_paths": ["/tmp/other"]`, ``},
		{"the /tmp of all programs, shared", ok + `, "additional_read_write_paths": ["/tmp"]`, ``},
		{"harmless beside keys", ok + `, "additional_read_only_paths": ["~/.ssh/known_hosts"]`, ``},
		{
			"off by omission", `"allow_network": false, "apply_to": "tool"`,
			`1:44: warning: allow_network: nothing is restricted as long as "enabled" is not true`,
		},
		{"off by word", `"enabled": false, "allow_network": false`, ``},
		{
			"neither", ok + `, "apply_to": "neither"`,
			`1:56: warning: apply_to: "neither" restricts nothing, although enabled is true`,
		},
		{
			"another platform's key", ok + `, "process_tracking": "auto"`,
			`1:64: info: process_tracking: has an effect on macOS only`,
		},
		{
			"less below more", ok + `, "additional_read_write_paths": ["~/cache"], ` +
				`"additional_read_only_paths": ["~/cache/x"]`,
			`1:119: warning: additional_read_only_paths: "~/cache/x" can be written all the same: "/home/u/cache" is granted (read,write,execute) by additional_read_write_paths`,
		},
		{
			"less below the project", ok + `, "additional_read_only_paths": ["~/project/.git"]`,
			`1:75: warning: additional_read_only_paths: "~/project/.git" can be written all the same: "/home/u/project" is granted`,
		},
		{
			"granted and protected",
			ok + `, "protected_paths": ["sub"], "additional_read_write_paths": ["~/project/sub/x"]`,
			`1:104: warning: additional_read_write_paths: "~/project/sub/x" stays read-only: ` +
				`"/home/u/project/sub" is protected by protected_paths`,
		},
		{
			"an old list of nothing", ok + `, "protected_paths": []`,
			`1:63: info: protected_paths: [] has no effect: the built-in list stays; to protect nothing, write ["!*"]`,
		},
		{
			"protected outside", ok + `, "protected_paths": ["~/tools"]`,
			`1:64: warning: protected_paths: "~/tools" lies outside of the project`,
		},
		{
			"a socket nobody finds", ok + `, "allowed_unix_sockets": ["$AGENT"], "allowed_env_vars": ["PATH"]`,
			`1:69: warning: allowed_unix_sockets: sessions do not get the variable AGENT, ` +
				`which names the socket; add +AGENT to allowed_env_vars`,
		},
		{
			"a socket of the sidecar's", ok + `, "allowed_unix_sockets": ["~/.local/state/sandbox-sidecar/run/s1/control"]`,
			`1:69: error: allowed_unix_sockets: "~/.local/state/sandbox-sidecar/run/s1/control" leads to a socket of ` +
				`the sidecar's own, which commands sessions; the entry does not count`,
		},
		{
			"a socket of the sidecar's elsewhere", ok + `, "allowed_unix_sockets": ["/moved/sandbox-sidecar/s1/control"]`,
			`1:69: error: allowed_unix_sockets: "/moved/sandbox-sidecar/s1/control" leads to a socket of ` +
				`the sidecar's own, which commands sessions; the entry does not count`,
		},
		{
			"a socket and no network", ok + `, "allowed_unix_sockets": ["/run/docker.sock"], "allow_network": false`,
			`1:69: info: allowed_unix_sockets: allow_network is false, ` +
				`but the program behind "/run/docker.sock" may have a network`,
		},
		{
			"every device", ok + `, "system_paths": {"read_write": ["/dev"]}`,
			`1:76: warning: system_paths.read_write: grants every device`,
		},
		{"nothing to say", ok + `, "additional_read_only_paths": ["~/tools"]`, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			snapshot := func(block string) Result {
				state := source.State{File: userFile, Exists: true, Read: true}
				var problem *document.Diagnostic
				if state.Good, problem = document.Decode([]byte(`{"terminal": {"sandbox": {`+block+`}}}`), "linux",
					document.Editor); problem != nil {
					t.Fatal(problem)
				}
				s := snapshotOf(t, f, "", "")
				s.Host.Env["AGENT"] = "/run/docker.sock"
				s.UserStates = []source.State{state}
				return s.Compile(document.KindTool)
			}
			got := said(snapshot(test.block), userFile)
			if test.want == "" && got != "" || !strings.Contains("\n"+got, "\n"+test.want) {
				t.Errorf("got:\n%swant: %s", got, test.want)
			}
			if got := said(snapshot(ok), userFile); got != "" {
				t.Errorf("after it was fixed:\n%s", got)
			}
		})
	}
}

func TestDiagnostics_ThatHoldForOneProjectSayWhich(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/src/": "", "/home/u/other/": ""})
	s := snapshotOf(t, f, `{"enabled": true, "additional_read_only_paths": ["~/project/src", "~/none"]}`, "")
	here := map[string]string{}
	for _, d := range s.Diagnostics() {
		here[d.Message] = d.Project
	}
	for message, project := range here {
		switch {
		case strings.Contains(message, "can be written all the same") && project != "/home/u/project":
			t.Errorf("%s: holds for %q", message, project)
		case strings.Contains(message, "there is no") && project != "":
			t.Errorf("%s: holds for %q alone", message, project)
		}
	}
	if len(here) != 2 {
		t.Errorf("diagnostics: %v", here)
	}
	s = snapshotOf(t, f, `{"enabled": true, "additional_read_only_paths": ["~/project/src", "~/none"]}`, "")
	s.ProjectDir = "/home/u/other"
	if got := s.Diagnostics(); len(got) != 1 {
		t.Errorf("in another project: %v", got)
	}
}
