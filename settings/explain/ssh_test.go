package explain

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// A session has a part of an agent, behind a filter. Only a filter in the place of
// the socket is at its path. Nothing is put before a socket that sessions could
// replace.
func TestSSH_ExplainsTheFilters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ user, target, want string }{
		{withSSH, "/run/agent", "no: a session has a part of the ssh-agent, and not at its socket"},
		{withSSH, "/run/other", `yes: the socket "/run/other" is granted by toolchains: ssh`},
		{
			`{"enabled": true, "toolchains": ["ssh"], "additional_read_write_paths": ["/run"]}`, "/run/agent",
			"no: sessions may write where the socket of the ssh-agent is",
		},
		{
			`{"enabled": true, "allowed_unix_sockets": ["/run/agent"]}`, "/run/agent",
			`yes: the socket "/run/agent" is granted by allowed_unix_sockets`,
		},
	} {
		s := snapshotOf(t, sshHome(t), test.user, "")
		s.Host.Env["SSH_AUTH_SOCK"] = "/run/agent"
		x, err := Why(s, document.KindTool, ConnectUnix, test.target)
		if got := map[bool]string{true: "yes: ", false: "no: "}[x.Allowed] + x.Reason; err != nil ||
			!strings.HasPrefix(got, test.want) || !x.Allowed && (x.Key != "" || x.Hint == "") {
			t.Errorf("%s, %s: %q, %+v, %v", test.user, test.target, got, x, err)
		}
	}
}

func TestSSH_IsSuggested(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, sshHome(t), `{"enabled": true}`, "")
	s.Host.Env["SSH_AUTH_SOCK"] = "/run/agent"
	for _, test := range []struct{ access, target, key, value, hint string }{
		{"read", "/home/u/.ssh/known_hosts", "toolchains", "ssh", ""},
		{"read", "/home/u/.ssh/id.pub", "toolchains", "ssh", ""},
		{"read", "/home/u/.ssh/id", "", "", `add "ssh" to "toolchains"`},
		{"connect_unix", "/run/agent", "toolchains", "ssh", ""},
		{"connect_unix", "/run/other", "allowed_unix_sockets", "/run/other", ""},
		{"write", "/home/u/.ssh/known_hosts", "", "", "connect once without the sandbox"},
		{"create", "/home/u/.ssh/known_hosts.aB3", "", "", "connect once without the sandbox"},
	} {
		got, err := Suggest(s, document.KindTool, test.access, test.target, "ssh")
		if err != nil || got.Key != test.key || got.Value != test.value || !strings.Contains(got.Hint, test.hint) {
			t.Errorf("%s %s: %+v, %v", test.access, test.target, got, err)
		}
	}
}

const withSSH = `{"enabled": true, "toolchains": ["ssh"]}`

// sshHome is a home directory with two agents.
func sshHome(t *testing.T) resolve.FS {
	return resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/run/agent": "", "/run/other": "", "/home/u/.ssh/known_hosts": "h ssh-ed25519 A",
		"/home/u/.ssh/id":     "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----\n",
		"/home/u/.ssh/id.pub": "ssh-ed25519 A", "/home/u/.ssh/config": "IdentityAgent /run/other\n",
	})
}
