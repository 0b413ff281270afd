package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// credentialsIn are the credentials of a policy as text.
func credentialsIn(p policy.Policy) string {
	var list []string
	for _, c := range p.Credentials {
		subject := c.Variable + c.File + c.As
		if len(c.Command) > 0 {
			subject += "=" + strings.Join(c.Command, " ")
		}
		list = append(list, fmt.Sprintf("%s %q", subject, c.Hosts))
	}
	return strings.Join(list, "; ")
}

func TestCredentials_AreVariablesFilesAndCommands(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/.npmrc": "x", "/home/u/dotfiles/netrc": "y",
		"/home/u/.netrc": "-> dotfiles/netrc",
	})
	for _, c := range []struct{ entries, want, said string }{
		{
			`{"TOKEN": {"hosts": ["API.example.com", "*.b.org:8443", "api.example.com"]}}`,
			`TOKEN ["*.b.org:8443" "api.example.com:443"]`, "",
		},
		{`{"~/.npmrc": {"hosts": ["a.org"]}}`, `/home/u/.npmrc ["a.org:443"]`, ""},
		{`{"~/.netrc": {"hosts": ["a.org"]}}`, `/home/u/dotfiles/netrc ["a.org:443"]`, ""},
		{`{"ci": {"command": ["pass", "show"], "as": "CI", "hosts": ["a.org"]}}`, `CI=pass show ["a.org:443"]`, ""},
		{`{"TOKEN": {"hosts": []}}`, `TOKEN []`, ""},
		{`{"TOKEN": null}`, ``, ""},
		{`{}`, ``, ""},
		// What is wrong is kept away.
		{`{"TOKEN": {}}`, `TOKEN []`, `"hosts" is missing`},
		{`{"TOKEN": "api.example.com"}`, `TOKEN []`, "expected an object"},
		{`{"TOKEN": {"hosts": "a.org"}}`, `TOKEN []`, "expected an array"},
		{`{"TOKEN": {"hosts": ["a.org"], "host": 1}}`, `TOKEN []`, "unknown setting"},
		{`{"TOKEN": {"hosts": ["a.org", "https://b.org", "c.org:5432"]}}`, `TOKEN ["a.org:443"]`, "PostgreSQL"},
		{`{"TOKEN": {"hosts": ["a.org"], "as": "X"}}`, `TOKEN []`, `"as" is for a command`},
		{`{"ci": {"command": ["x"], "hosts": ["a.org"]}}`, ``, `needs "as"`},
		{`{"ci": {"command": ["x"], "as": "a b", "hosts": ["a.org"]}}`, ``, "not the name of a variable"},
		{`{"two words": {"hosts": ["a.org"]}}`, ``, "expected the name of a variable"},
		{`{"~/.npmrc": {"command": ["x"], "hosts": ["a.org"]}}`, ``, "a path has no command"},
		{`{"~other/.npmrc": {"hosts": ["a.org"]}}`, ``, "home"},
	} {
		user := `{"enabled": true, "allow_network": false, "allowed_hosts": ["*.org", "a.org", ` +
			`"api.example.com", "*.b.org", "c.org", "b.org"], "credentials": ` + c.entries + `}`
		compiled := snapshotOf(t, f, user, "").Compile(document.KindTool)
		if got := credentialsIn(compiled.Policy); got != c.want {
			t.Errorf("%s: %s, want %s", c.entries, got, c.want)
		}
		if got := said(compiled, userFile); c.said == "" && strings.Contains(got, "credentials") ||
			!strings.Contains(got, c.said) {
			t.Errorf("%s: said %s, want %q", c.entries, got, c.said)
		}
	}
}

// What nobody can read as credentials leaves open which were meant.
func TestCredentials_AMistakeIsADoubt(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	for entries, want := range map[string]bool{`"TOKEN"`: true, `["TOKEN"]`: true, `{"TOKEN": {"hosts": []}}`: false} {
		user := `{"enabled": true, "credentials": ` + entries + `}`
		doubt := snapshotOf(t, f, user, "").Compile(document.KindTool).Doubt
		if (doubt != nil) != want {
			t.Errorf("%s: %+v", entries, doubt)
		}
	}
}

// A file is hidden whatever grants it, and its variable does not pass.
func TestCredentials_NothingElseGivesTheSecret(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/.npmrc": "//a.org/:_authToken=x", "/home/u/more/x": ""})
	user := `{"enabled": true, "allow_network": false, "allowed_env_vars": ["TOKEN", "OTHER"],
		"additional_read_only_paths": ["~/.npmrc", "~/more"], "additional_read_write_paths": ["~"],
		"credentials": {"~/.npmrc": {"hosts": ["a.org"]}, "TOKEN": {"hosts": []}}}`
	compiled := snapshotOf(t, f, user, "").Compile(document.KindTool)
	if hidden, is := compiled.Policy.HiddenAt("/home/u/.npmrc"); !is || hidden.Origin.Key != credentialsKey {
		t.Errorf("the file is seen: %+v", hidden)
	}
	if _, is := compiled.Policy.CopyAt("/home/u/.npmrc"); is {
		t.Error("a part of the file is read")
	}
	if _, is := compiled.Policy.HiddenAt("/home/u/more/x"); is { // the control
		t.Error("another file is hidden")
	}
	kept, withheld := compiled.Policy.WithoutCredentials([]string{"TOKEN=x", "OTHER=y", "TOKENS=z"})
	if fmt.Sprint(kept, withheld) != "[OTHER=y TOKENS=z] [TOKEN]" {
		t.Errorf("%q, %q", kept, withheld)
	}
	if got := said(compiled, userFile); !strings.Contains(got, "sessions read its copy with placeholders") ||
		!strings.Contains(got, `sessions do not reach "a.org:443"`) {
		t.Error(got)
	}
}

// An untrusted project changes nothing. A trusted one asks for what it adds, and
// for what it takes away.
func TestCredentials_OfAProject(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	user := `{"enabled": true, "credentials": {"MINE": {"hosts": ["a.org"]}}}`
	project := `{"credentials": {"MINE": null, "NEW": {"hosts": ["b.org"]},
		"ci": {"command": ["evil"], "as": "CI", "hosts": ["b.org"]}}}`
	s := snapshotOf(t, f, user, project)
	if got := credentialsIn(s.Compile(document.KindTool).Policy); got != `MINE ["a.org:443"]` {
		t.Errorf("untrusted: %s", got)
	}
	s = trusting(t, f, user, project)
	compiled := s.Compile(document.KindTool)
	if got := credentialsIn(compiled.Policy); got != `NEW ["b.org:443"]; CI []` {
		t.Errorf("trusted: %s", got)
	}
	if got := said(compiled, projectFile); !strings.Contains(got, "names no command") {
		t.Error(got)
	}
	var asks []string
	for _, ask := range s.Project().Asks {
		asks = append(asks, ask.Opens)
	}
	if got := strings.Join(asks, "\n"); !strings.Contains(got, `sessions may use your "NEW" at "b.org:443"`) ||
		!strings.Contains(got, `your "MINE" is not kept away from sessions`) {
		t.Errorf("asks: %s", got)
	}
}

// What an organisation names enters no session, and goes to its hosts alone.
func TestCredentials_OfAnOrganisation(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	for _, c := range []struct{ required, user, want string }{
		{`{"T": {"hosts": []}}`, `{"T": {"hosts": ["a.org"]}}`, `T []`},
		{`{"T": {"hosts": ["a.org"]}}`, `{}`, `T ["a.org:443"]`},
		{
			`{"T": {"hosts": ["a.org"]}}`, `{"T": {"hosts": ["a.org", "b.org"]}, "U": {"hosts": ["b.org"]}}`,
			`T ["a.org:443"]; U ["b.org:443"]`,
		},
	} {
		user := `{"enabled": true, "credentials": ` + c.user + `}`
		s := managedSnapshot(t, f, "{}", `{"credentials": `+c.required+`}`, user, "")
		compiled := s.Compile(document.KindTool)
		if got := credentialsIn(compiled.Policy); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.required, c.user, got, c.want)
		}
		if got := s.Origins()[credentialsKey]; got != managed.File {
			t.Errorf("the key is from %s", got)
		}
	}
}
