package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

const (
	aKey    = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
	bKey    = "SHA256:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0"
	aGrip   = "5C9E027F6F534FF59047F3F6B7E676A7B9EF8BA6"
	allKeys = `"signing_keys": ["*"]`
)

// keysFor are the keys that sessions may use, as they are written.
func keysFor(t *testing.T, user, project string) ([]string, Result) {
	t.Helper()
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/home/u/project/": "", "/run/agent": ""}), user, project)
	s.Host.Env["SSH_AUTH_SOCK"] = "/run/agent"
	c := s.Compile(document.KindTool)
	return keyTexts(c.Policy.SigningKeys), c
}

// What is wrong, missing or empty allows no key, and a project allows none that
// its user does not.
func TestSigningKeys_OpenNothingByMistake(t *testing.T) {
	t.Parallel()
	user := func(keys string) string {
		return `{"enabled": true, "toolchains": ["ssh"], "signing_keys": ` + keys + `}`
	}
	for _, test := range []struct{ user, project, want string }{
		{`{"enabled": true}`, "", "*"},
		{user("null"), "", "*"},
		{user(`["*"]`), "", "*"},
		{user(`[]`), "", ""},
		{user(`["` + aKey + `", "ask:` + strings.ToLower(aGrip) + `"]`), "", aKey + " ask:" + aGrip},
		{user(`["SHA256:x", "` + aKey + `"]`), "", aKey},
		{user(`["all"]`), "", ""},
		{user(`[""]`), "", ""},
		{user(`"*"`), "", ""},
		{user(`["*", 7]`), "", ""},
		{user(`true`), "", ""},
		{user(`{"*": true}`), "", ""},
		{`{"enabled": true, "signing_keys": ["` + aKey + `"], "tool": {"signing_keys": "*"}}`, "", ""},
		{`{"enabled": true, "signing_keys": ["` + aKey + `"], "tool": {"signing_keys": []}}`, "", ""},
		// A project's file.
		{`{"enabled": true}`, `{"signing_keys": ["` + aKey + `"]}`, aKey},
		{user(`["` + aKey + `"]`), `{"signing_keys": ["*"]}`, aKey},
		{user(`["` + aKey + `"]`), `{"signing_keys": ["` + bKey + `"]}`, ""},
		{user(`["ask:*"]`), `{"signing_keys": ["` + aKey + `"]}`, "ask:" + aKey},
		{user(`["*"]`), `{"signing_keys": "ask"}`, ""},
		{user(`["*"]`), `{"signing_keys": ["SHA256:x"]}`, ""},
	} {
		got, _ := keysFor(t, test.user, test.project)
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s with the project's %q: %s, want %q", test.user, test.project, text, test.want)
		}
	}
}

// An agent that another key grants as a whole has a filter, too, as soon as keys
// are chosen. Otherwise the choice would mean nothing.
func TestSigningKeys_CountForAWholeAgent(t *testing.T) {
	t.Parallel()
	const whole = `{"enabled": true, "allowed_unix_sockets": ["$SSH_AUTH_SOCK"]`
	for _, test := range []struct {
		user, project string
		agent         policy.Agent
	}{
		{whole + `}`, "", ""},
		{whole + `, ` + allKeys + `}`, "", ""},
		{whole + `, "signing_keys": []}`, "", policy.SSHAgent},
		{whole + `, "signing_keys": ["ask:*"]}`, "", policy.SSHAgent},
		{whole + `}`, `{"signing_keys": ["` + aKey + `"]}`, policy.SSHAgent},
	} {
		_, c := keysFor(t, test.user, test.project)
		if sockets := c.Policy.UnixSockets; len(sockets) != 1 || sockets[0].Agent != test.agent {
			t.Errorf("%s with the project's %q: %+v", test.user, test.project, sockets)
		}
	}
	f := resolvetest.InMemory(settingstest.Tree)
	required := managedSnapshot(t, f, "{}", `{"signing_keys": ["`+aKey+`"]}`,
		`{"enabled": true, "allowed_unix_sockets": ["~/.ssh/docker.sock"]}`, "")
	required.Host.Env["SSH_AUTH_SOCK"] = "/home/u/.ssh/docker.sock"
	c := required.Compile(document.KindTool)
	if sockets := c.Policy.UnixSockets; len(sockets) != 1 || sockets[0].Agent != policy.SSHAgent ||
		!slices.Equal(keyTexts(c.Policy.SigningKeys), []string{aKey}) {
		t.Errorf("an organisation's choice: %+v, %v", sockets, c.Policy.SigningKeys)
	}
}

// A project that is trusted says which keys it opens.
func TestSigningKeys_AreAskedFor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ user, project, asks string }{
		{`{"enabled": true}`, `{"signing_keys": ["*", "` + aKey + `"]}`, ""},
		{`{"enabled": true, "signing_keys": ["ask:*"]}`, `{"signing_keys": ["ask:` + aKey + `"]}`, ""},
		{
			`{"enabled": true, "signing_keys": ["ask:*"]}`, `{"signing_keys": ["` + aKey + `"]}`,
			`sessions may sign and log in with the key "` + aKey + `"`,
		},
		{
			`{"enabled": true, "signing_keys": []}`, `{"signing_keys": ["ask:*"]}`,
			"sessions may sign and log in with every key of your agents",
		},
		{
			`{"enabled": true, "signing_keys": ["*", "ask:` + aKey + `"]}`, `{"signing_keys": ["*"]}`,
			`sessions may sign and log in with "` + aKey + `" without a question`,
		},
		{
			`{"enabled": true, "signing_keys": ["*", "ask:` + aKey + `"]}`,
			`{"signing_keys": ["*", "` + aKey + `"]}`,
			`sessions may sign and log in with the key "` + aKey + `"`,
		},
		{
			`{"enabled": true, "signing_keys": ["ask:*", "ask:` + aKey + `"]}`, `{"signing_keys": ["*"]}`,
			"sessions may sign and log in with every key of your agents",
		},
		{
			`{"enabled": true, "signing_keys": ["ask:` + aKey + `"]}`, `{"signing_keys": ["*"]}`,
			"sessions may sign and log in with every key of your agents",
		},
		{`{"enabled": true, "signing_keys": ["*", "ask:` + aKey + `"]}`, `{"signing_keys": ["ask:*"]}`, ""},
	} {
		s := snapshotOf(t, resolvetest.InMemory(settingstest.Tree), test.user, test.project)
		var opens []string
		for _, ask := range s.Project().Asks {
			opens = append(opens, ask.Opens)
		}
		if got := strings.Join(opens, "; "); got != test.asks {
			t.Errorf("%s with the project's %s: %s", test.user, test.project, got)
		}
	}
}
