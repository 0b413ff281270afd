package risks

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What reads the table relies on its form.
func TestAll(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, place := range All() {
		below, inHome := strings.CutPrefix(place.Path, "~")
		switch {
		case seen[place.Path]:
			t.Errorf("%s is listed twice", place.Path)
		case !inHome && !path.IsAbs(place.Path), path.Clean("/"+below) != "/"+strings.TrimPrefix(below, "/"):
			t.Errorf("%s is no clean path", place.Path)
		case place.Secret == "" && place.Acts == "" && !place.Harmless:
			t.Errorf("%s: it is neither secret nor acted on", place.Path)
		case place.Secret == "" && (len(place.Plain) > 0 || place.Shown || place.Mixed != ""):
			t.Errorf("%s: no secret, so no names without one", place.Path)
		case strings.Contains(path.Dir(place.Path), "*"), strings.Contains(place.Path, "*") && place.Agent != "":
			t.Errorf("%s: only the last name may contain *", place.Path)
		case place.Acts != "" && !saysWho(place.Acts):
			t.Errorf("%s: %q does not say who acts", place.Path, place.Acts)
		case place.Set != "" && place.Acts == "", place.Agent != "" && !strings.HasPrefix(place.Acts, place.Agent):
			t.Errorf("%s: the set %q, the agent %q", place.Path, place.Set, place.Agent)
		case place.Mixed != "" && place.Shown:
			t.Errorf("%s: shown, so nobody looks into it", place.Path)
		case place.Variable != "":
			t.Errorf("%s: moved by %s", place.Path, place.Variable)
		case strings.HasSuffix(place.Acts, "."):
			t.Errorf("%s: %q is no clause", place.Path, place.Acts)
		}
		for _, pattern := range place.Plain {
			if _, err := path.Match(pattern, "x"); err != nil || strings.Contains(pattern, "/") {
				t.Errorf("%s: %q is no pattern of a name", place.Path, pattern)
			}
		}
		seen[place.Path] = true
	}
	// Who takes a row away says why.
	const least = 1000
	if len(All()) < least {
		t.Errorf("%d places, want at least %d", len(All()), least)
	}
}

// saysWho reports whether a clause has a subject and a verb.
func saysWho(clause string) bool {
	const least = 3
	who, _, _ := strings.Cut(clause, " ")
	return len(strings.Fields(clause)) >= least && who != "is" && who != ""
}

// A place that a variable moves is known where it usually is and where the variable
// says, and nothing else changes.
func TestIn_FollowsVariables(t *testing.T) {
	t.Parallel()
	usual := In([]string{"/home/u"}, func(string) string { return "" })
	if len(usual) != len(All()) {
		t.Fatalf("%d of %d places", len(usual), len(All()))
	}
	for _, test := range []struct{ variable, value, at, of string }{
		{"CODEX_HOME", "/srv/codex", "/srv/codex", "~/.codex"},
		{"CLAUDE_CONFIG_DIR", "/srv/claude", "/srv/claude", "~/.claude"},
		{"GH_CONFIG_DIR", "/srv/gh", "/srv/gh", "~/.config/gh"},
		{"XDG_CONFIG_HOME", "/srv/c", "/srv/c/gh", "~/.config/gh"},
		{"XDG_CONFIG_HOME", "/srv/c", "/srv/c/fish", "~/.config/fish"},
		{"XDG_DATA_HOME", "/srv/d", "/srv/d/keyrings", "~/.local/share/keyrings"},
		{"XDG_STATE_HOME", "/srv/s", "/srv/s/nvim/trust", "~/.local/state/nvim/trust"},
		{"XDG_CACHE_HOME", "/srv/k", "/srv/k/p10k-*", "~/.cache/p10k-*"},
		{"ZDOTDIR", "/srv/zsh", "/srv/zsh/.zshrc", "~/.zshrc"},
		{"ZDOTDIR", "/srv/zsh", "/srv/zsh/.zcompdump*", "~/.zcompdump*"},
		{"KUBECONFIG", "/srv/a:/srv/b c", "/srv/b c", "~/.kube"},
		{"DOCKER_CONFIG", "/srv/docker", "/srv/docker", "~/.docker"},
		{"GNUPGHOME", "/srv/gpg", "/srv/gpg", "~/.gnupg"},
		{"CARGO_HOME", "/srv/cargo", "/srv/cargo/credentials.toml", "~/.cargo/credentials.toml"},
		{"npm_config_userconfig", "/srv/npmrc", "/srv/npmrc", "~/.npmrc"},
		{"GOENV", "/srv/goenv", "/srv/goenv", "~/.config/go/env"},
		{"MAVEN_ARGS", "-B -s /srv/settings.xml", "/srv/settings.xml", "~/.m2/settings.xml"},
		{"MAVEN_ARGS", "-f /srv/pom.xml --settings=/srv/settings.xml", "/srv/settings.xml", "~/.m2/settings.xml"},
		{"MAVEN_ARGS", "-gs/srv/settings.xml", "/srv/settings.xml", "~/.m2/settings.xml"},
		{"PIP_CONFIG_FILE", "/srv/pip.conf", "/srv/pip.conf", "~/.config/pip/pip.conf"},
		{"GIT_CONFIG_GLOBAL", "/srv/gitconfig", "/srv/gitconfig", "~/.gitconfig"},
		{"BASH_ENV", "/srv/env", "/srv/env", "~/.bashrc"},
		{"ENV", "~/env", "/home/u/env", "~/.profile"},
		{"INPUTRC", "/srv/inputrc", "/srv/inputrc", "~/.inputrc"},
		{"VIMINIT", "source /srv/vimrc", "/srv/vimrc", "~/.vimrc"},
		{"PATH", "/usr/bin:/srv/tools", "/srv/tools", "~/.local/bin"},
	} {
		list := In([]string{"/home/u"}, func(name string) string {
			return map[string]string{test.variable: test.value}[name]
		})
		found := false
		for _, place := range list[len(usual):] {
			of := All()[slices.IndexFunc(All(), func(row Place) bool { return row.Path == test.of })]
			of.Path, of.Variable = test.at, test.variable
			found = found || reflect.DeepEqual(place, of)
		}
		if !reflect.DeepEqual(list[:len(usual)], usual) || !found {
			t.Errorf("%s=%s: %s is not at %s", test.variable, test.value, test.of, test.at)
		}
	}
	for _, none := range []string{"", "/", "relative/dir", "/home/u/.codex", "true"} {
		if list := In([]string{"/home/u"}, func(name string) string {
			return map[string]string{"CODEX_HOME": none}[name]
		}); len(list) != len(usual) {
			t.Errorf("CODEX_HOME=%q adds %v", none, list[len(usual):])
		}
	}
	// A path of another option, or of Java, is no file of Maven's settings.
	const words = "-Djavax.net.ssl.trustStore=/srv/cacerts -javaagent:/srv/agent.jar -f /srv/pom.xml -s settings.xml"
	for _, name := range []string{"MAVEN_ARGS", "MAVEN_OPTS"} {
		if list := In([]string{"/home/u"}, func(of string) string {
			return map[string]string{name: words}[of]
		}); len(list) != len(usual) {
			t.Errorf("%s adds %v", name, list[len(usual):])
		}
	}
}

// The table is made once for the same home directories and variables, and anew for
// others.
func TestIn_IsMadeOnce(t *testing.T) { // not in parallel: the other tests ask for others
	in := func(home, codex string) []Place {
		return In([]string{home}, func(name string) string { return map[string]string{"CODEX_HOME": codex}[name] })
	}
	same := func(a, b []Place) bool { return len(a) == len(b) && &a[0] == &b[0] }
	first := in("/home/u", "/srv/codex")
	if !same(first, in("/home/u", "/srv/codex")) {
		t.Error("the table is made again")
	}
	wanted := slices.Clone(first)
	for name, other := range map[string][]Place{
		"another home":            in("/home/w", "/srv/codex"),
		"another variable":        in("/home/u", "/srv/other"),
		"a variable fewer":        in("/home/u", ""),
		"a home like a variable":  in("/srv/codex", "/home/u"),
		"the first home, a slash": in("/home/u/", "/srv/codex"),
	} {
		if same(first, other) {
			t.Errorf("%s: the table of the first is returned", name)
		}
	}
	if again := in("/home/u", "/srv/codex"); same(first, again) || !reflect.DeepEqual(again, wanted) {
		t.Error("control: after others it is made again, and is the same")
	}
}

// Each variable moves something.
func TestVariables(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range variables {
		if len(m.at("/srv/x")) == 0 || seen[m.variable] {
			t.Errorf("%s moves nothing, or is listed twice", m.variable)
		}
		seen[m.variable] = true
	}
}

func TestAtSocket(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, one := range sockets {
		at := strings.TrimPrefix(strings.TrimPrefix(one.path, AbstractPrefix), "~")
		if seen[one.path] || !path.IsAbs(at) && !strings.HasPrefix(one.path, AbstractPrefix) || path.Clean(at) != at ||
			!saysWho(one.obeys) {
			t.Errorf("%+v", one)
		}
		seen[one.path] = true
	}
	homes := []string{"/home/u", "/srv/u"}
	for path, want := range map[string]bool{
		"/run/docker.sock": true, "/run/user/1/bus": true, "/srv/u/.ssh/agent/x": true, "abstract:kitty-1": true,
		"/run/user/1/2/bus": false, "/run/docker.sock/x": false, "/home/w/.ssh/agent/x": false, "kitty-1": false,
		"/run/user/1/gnupg/S.gpg-agent": true, "/tmp/nvim.u/x/0": true, "": false, "/": false,
	} {
		if got := AtSocket(path, homes); (got != "") != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}
