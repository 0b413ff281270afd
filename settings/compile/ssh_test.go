package compile

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

const (
	aPrivateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n-----END OPENSSH PRIVATE KEY-----\n"
	withSSH     = `{"enabled": true, "toolchains": ["ssh"]}`
)

// sshHome is a home directory with most of what ssh reads.
func sshHome(t *testing.T) resolve.FS {
	return resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/run/agent": "", "/run/other": "",
		"/home/u/.ssh/known_hosts": "h ssh-ed25519 A", "/home/u/.ssh/id": aPrivateKey,
		"/home/u/.ssh/id.pub":   "ssh-ed25519 A",
		"/home/u/.ssh/trap.pub": "@id", "/home/u/.ssh/liar.pub": aPrivateKey, "/home/u/.ssh/dir.pub/x": "",
		"/home/u/.ssh/config": "Include config.d/*\nInclude id\nIdentityFile ~/keys/work\nCertificateFile " +
			"~/keys/work\nUserKnownHostsFile ~/hosts\nIdentityAgent /run/other\n",
		"/home/u/.ssh/config.d/a": "IdentityFile ~/.ssh/id\nIdentityFile ~/.aws/x\n",
		"/home/u/keys/work":       aPrivateKey, "/home/u/keys/work.pub": "ssh-ed25519 B",
		"/home/u/hosts": "h ssh-ed25519 A", "/home/u/.aws/x": "secret",
	})
}

func TestSSH_GrantsWhatIsPublic(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, sshHome(t), withSSH, "")
	s.Host.Env["SSH_AUTH_SOCK"] = "/run/agent"
	c := s.Compile(document.KindTool)
	for path, want := range map[string]string{
		"/home/u/.ssh/known_hosts": "read", "/home/u/.ssh/config": "read", "/home/u/.ssh/id.pub": "read",
		"/home/u/.ssh/config.d/a": "read", "/home/u/keys/work.pub": "read", "/home/u/hosts": "read",
		"/home/u/.ssh": "none", "/home/u/.ssh/id": "none", "/home/u/.ssh/liar.pub": "none", "/home/u/keys/work": "none",
		"/home/u/.ssh/dir.pub/x": "none", "/home/u/.aws/x": "none",
	} {
		if got := accessOf(c, path); got != want {
			t.Errorf("%s: granted %s, want %s", path, got, want)
		}
	}
	var sockets []string
	for _, socket := range c.Policy.UnixSockets {
		sockets = append(sockets, socket.Path)
	}
	if got := strings.Join(sockets, " "); got != "/run/agent /run/other" {
		t.Errorf("sockets: %s", got)
	}
	if !c.Policy.Environment.Allows("SSH_AUTH_SOCK") || len(c.Notes()) != 0 || !c.HasToolchain("ssh") {
		t.Errorf("the agent does not arrive: %+v", c.Notes())
	}
}

// What a session may write never says what the next one is granted.
func TestSSH_ConfigThatSessionsMayWrite(t *testing.T) {
	t.Parallel()
	for _, writable := range []string{"~/.ssh/config", "~/.ssh/config.d", "~/.ssh"} {
		user := `{"enabled": true, "toolchains": ["ssh"], "additional_read_write_paths": ["` + writable + `"]}`
		s := snapshotOf(t, sshHome(t), user, "")
		c := s.Compile(document.KindTool)
		if got := accessOf(c, "/home/u/keys/work.pub"); got != "none" {
			t.Errorf("%s: a file that it names is granted: %s", writable, got)
		}
		if sockets := c.Policy.UnixSockets; len(sockets) > 0 {
			t.Errorf("%s: an agent that it names is granted: %+v", writable, sockets)
		}
	}
}

// An agent that the configuration names is granted through a filter in its own
// place, also if SSH_AUTH_SOCK names it, too.
func TestSSH_IdentityAgent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ user, variable, want string }{
		"the set":         {withSSH, "", "/run/other in place"},
		"the same agent":  {withSSH, "/run/other", "/run/other in place"},
		"another agent":   {withSSH, "/run/agent", "/run/agent, /run/other in place"},
		"without the set": {`{"enabled": true}`, "/run/other", ""},
		"the whole agent": {`{"enabled": true, "allowed_unix_sockets": ["/run/other"]}`, "", "/run/other whole"},
		"the whole, keys chosen": {
			`{"enabled": true, "allowed_unix_sockets": ["/run/other"], "signing_keys": []}`, "", "/run/other in place",
		},
	} {
		s := snapshotOf(t, sshHome(t), test.user, "")
		s.Host.Env["SSH_AUTH_SOCK"] = test.variable
		var got []string
		for _, socket := range s.Compile(document.KindTool).Policy.UnixSockets {
			text := socket.Path
			switch {
			case socket.Agent == "":
				text += " whole"
			case socket.InPlace:
				text += " in place"
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestSSH_AProjectOnlyTakesItAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		user, project string
		reads, agent  bool
	}{
		"the user's":           {withSSH, "", true, true},
		"a project asks":       {`{"enabled": true}`, `{"toolchains": ["ssh"]}`, false, false},
		"a project drops it":   {withSSH, `{"toolchains": []}`, false, false},
		"a project, no agents": {withSSH, `{"allowed_unix_sockets": []}`, true, false},
		"strict":               {`{"mode": "strict"}`, "", false, false},
	} {
		s := snapshotOf(t, sshHome(t), test.user, test.project)
		s.Host.Env["SSH_AUTH_SOCK"] = "/run/agent"
		c := s.Compile(document.KindTool)
		_, reads := c.Policy.Find(policy.Read, "/home/u/.ssh/known_hosts")
		if agent := len(c.Policy.UnixSockets) > 0; reads != test.reads || agent != test.agent {
			t.Errorf("%s: reads known hosts: %t, has the agent: %t", name, reads, agent)
		}
	}
	s := snapshotOf(t, sshHome(t), `{"enabled": true}`, `{"toolchains": ["ssh"]}`)
	s.Host.Env["SSH_AUTH_SOCK"] = "/run/agent"
	var asks []string
	for _, ask := range s.Project().Asks {
		asks = append(asks, ask.Message())
	}
	if text := strings.Join(asks, "\n"); !strings.Contains(text, `/run/agent", with the full power`) ||
		!strings.Contains(text, "known_hosts") {
		t.Errorf("the project asks for:\n%s", text)
	}
}

// A variable on the list that does not arrive is told of, with the setting.
func TestNotes_VariableWhoseSocketIsNotGranted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, keys, want string }{
		{"SSH_AUTH_SOCK", "/run/agent", "", `add "ssh" to "toolchains"`},
		{"SSH_AUTH_SOCK", "/run/agent", `, "allowed_unix_sockets": ["$SSH_AUTH_SOCK"]`, ""},
		{"SSH_AUTH_SOCK", "/run/agent", `, "allowed_unix_sockets": ["/run/agent"]`, ""},
		{"SSH_AUTH_SOCK", "/run/agent", `, "allowed_env_vars": ["PATH"]`, ""},
		{"SSH_AUTH_SOCK", "", "", ""},
		{"DISPLAY", ":7", `, "allowed_env_vars": ["DISPLAY"]`, `add "/tmp/.X11-unix/X7" to "allowed_unix_sockets"`},
		{"DISPLAY", "host:7", `, "allowed_env_vars": ["DISPLAY"]`, ""},
		{"DOCKER_HOST", "unix:///run/other", `, "allowed_env_vars": ["DOCKER_HOST"]`, `add "/run/other" to`},
		{"STY", "1.x", `, "allowed_env_vars": ["STY"]`, ""},
	} {
		s := snapshotOf(t, sshHome(t), `{"enabled": true`+test.keys+`}`, "")
		s.Host.Env[test.name] = test.value
		c := s.Compile(document.KindTool)
		notes := c.Notes()
		if told := len(notes) > 0; told != (test.want != "") || told && !strings.Contains(notes[0].Text, test.want) {
			t.Errorf("%s=%s%s: %q", test.name, test.value, test.keys, notes)
		}
		for _, note := range notes {
			if len(note.Text) > 100 {
				t.Errorf("too long: %q", note.Text)
			}
		}
		for _, v := range c.Variables {
			marked := v.Origin.Reason == notReached
			if v.Pattern == test.name && marked != (test.want != "" || v.Pattern == "STY") {
				t.Errorf("%s=%s%s: the list says %q", test.name, test.value, test.keys, v.Origin.Reason)
			}
		}
	}
}

// ssh lists the directory of a pattern. Sessions may read it if it holds nothing
// but files that the pattern includes.
func TestSSH_DirectoriesOfPatterns(t *testing.T) {
	t.Parallel()
	const dir = "/home/u/.ssh/config.d"
	for name, test := range map[string]struct {
		config string
		files  map[string]string
		want   string
	}{
		"as it should be":   {"Include config.d/*", map[string]string{dir + "/a": "", dir + "/.gitkeep": ""}, "read"},
		"an absolute path":  {"Include ~/.ssh/config.d/*.conf", map[string]string{dir + "/a.conf": "Host a"}, "read"},
		"no pattern":        {"Include config.d/a", map[string]string{dir + "/a": "Host a"}, "none"},
		"another file":      {"Include config.d/*f", map[string]string{dir + "/af": "", dir + "/b": ""}, "none"},
		"a key":             {"Include config.d/*", map[string]string{dir + "/id": aPrivateKey}, "none"},
		"a key with a dot":  {"Include config.d/*", map[string]string{dir + "/.id": aPrivateKey}, "none"},
		"a directory":       {"Include config.d/*", map[string]string{dir + "/a": "", dir + "/b/c": ""}, "none"},
		"nothing":           {"Include config.d/*", map[string]string{dir + "/": ""}, "none"},
		"its own directory": {"Include *", map[string]string{dir + "/a": ""}, "none"},
	} {
		test.files["/home/u/project/"], test.files["/home/u/.ssh/config"] = "", test.config
		c := snapshotOf(t, resolvetest.Tree(t, test.files), withSSH, "").Compile(document.KindTool)
		if got := accessOf(c, dir); got != test.want {
			t.Errorf("%s: granted %s, want %s", name, got, test.want)
		}
		if got := accessOf(c, "/home/u/.ssh"); got != "none" {
			t.Errorf("%s: the directory of keys: granted %s", name, got)
		}
		user := `{"enabled": true, "toolchains": ["ssh"], "additional_read_write_paths": ["~/.ssh/config"]}`
		c = snapshotOf(t, resolvetest.Tree(t, test.files), user, "").Compile(document.KindTool)
		if got := accessOf(c, dir); got != "none" {
			t.Errorf("%s: by a configuration that sessions may write: granted %s", name, got)
		}
	}
}
