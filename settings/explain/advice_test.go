package explain

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// inHome is a place of the table in the home directory of these tests.
func inHome(place string) string {
	if below, is := strings.CutPrefix(place, "~"); is {
		return "/home/u" + below
	}
	return place
}

// What programs outside act on is never suggested for writing, and what is secret
// for nothing: the place itself, a file in it, a new file there, and the directory
// above.
func TestAdvice_LeadsToNoPlaceOfTheTable(t *testing.T) {
	t.Parallel()
	tree := map[string]string{"/home/u/project/": "", "/srv/data/file": ""}
	for _, place := range risks.All() {
		tree[inHome(place.Path)+"/there"] = ""
	}
	snapshot := snapshotOf(t, resolvetest.InMemory(tree), `{"enabled": true}`, "")
	for _, place := range risks.All() {
		at := inHome(place.Path)
		if place.Class() == 0 {
			continue // it is only said to be no risk
		}
		for how, target := range map[string]string{
			"itself": at, "a file in it": at + "/there", "a new file": at + "/new", "the directory above": path.Dir(at),
		} {
			accesses := []string{"write", "create"}
			if place.Secret != "" {
				accesses = append(accesses, "read")
			}
			for _, access := range accesses {
				if access == "create" && how == "the directory above" {
					target = path.Join(path.Dir(at), "new") // beside the place
				}
				s, err := Suggest(snapshot, document.KindTool, access, target, "")
				if err != nil {
					t.Fatal(err)
				}
				attempt := Read
				if access != "read" {
					attempt = Write
				}
				// explain names the key, with the care that it needs.
				x, err := Why(snapshot, document.KindTool, attempt, target)
				if err != nil || x.Key != "" && !x.Allowed && !x.Careful() && !strings.HasSuffix(x.Key, toolchainsKey) {
					t.Errorf("explain %s %s (%s of %s): %+v, %v", access, target, how, place.Path, x, err)
				}
				nothing := s.Key == "" && (s.Hint != "" || place.Secret != "") // a hidden place needs no hint
				apart := strings.HasSuffix(s.Key, toolchainsKey)               // a set keeps sessions' changes apart
				if nothing || apart || s.Allowed {
					continue
				}
				t.Errorf("%s %s (%s of %s): %s=%s, %s", access, target, how, place.Path, s.Key, s.Value, s.Hint)
			}
		}
	}
}

// Of other projects, nothing suggests what programs outside act on.
func TestAdvice_LeadsToNoProtectedNameOfAnotherProject(t *testing.T) {
	t.Parallel()
	for _, name := range protected.Names {
		if name.Group != "" && name.Group != protected.Hooks && name.Group != protected.Unfinished {
			continue
		}
		at := "/srv/other/" + strings.ReplaceAll(name.Path, "*", "x")
		tree := resolvetest.InMemory(map[string]string{"/home/u/project/": "", at: ""})
		s, err := Suggest(snapshotOf(t, tree, `{"enabled": true}`, ""), document.KindTool, "write", at, "")
		if err != nil || s.Key != "" || !strings.HasPrefix(s.Hint, "careful: ") {
			t.Errorf("%s: %+v, %v", at, s, err)
		}
	}
}

// The gate closes nothing else, and says what it knows.
func TestAdvice(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		"/home/u/project/": "", "/srv/data/file": "", "/srv/repo/.git/config": "", "/srv/repo/src/a": "",
		"/home/u/.bashrc": "-> dotfiles/bashrc", "/home/u/dotfiles/bashrc": "", "/home/u/.codex/config.toml": "",
		"/home/u/.kube/config": "", "/home/u/.docker/config.json": "", "/home/u/.ssh/config": "", "/home/u/.ssh/id": "",
		"/home/u/.ssh/id.pub": "", "/etc/": "", "/home/u/.mozilla/key4.db": "",
		"/home/u/data/file": "", "/home/u/.codex/auth.json": "",
	}
	tree["/home/u/work/x/.git/HEAD"], tree["/home/u/work/y/a"] = "", ""
	// A bare repository, and those of a submodule and a worktree.
	for _, dir := range []string{"/srv/bare", "/srv/bares/one", "/srv/repo/.git/modules/sub"} {
		tree[dir+"/HEAD"], tree[dir+"/objects/ab/"], tree[dir+"/refs/heads/"], tree[dir+"/config"] = "", "", "", ""
		tree[dir+"/worktrees/w/gitdir"], tree[dir+"/hooks/old"] = "", ""
	}
	tree["/srv/none/HEAD"], tree["/srv/none/config"] = "", ""
	for i := range 1001 {
		tree[fmt.Sprintf("/home/u/many/%d/", i)] = ""
	}
	const none = "none: "
	for _, test := range []struct{ access, target, want string }{
		{"write", "/srv/data/file", "additional_read_write_paths=/srv/data/file"},
		{"create", "/srv/data/new", "additional_read_write_paths=/srv/data"},
		{"create", "/home/u/data/new", "additional_read_write_paths=/home/u/data"},
		{"write", "/srv/repo/src/a", "additional_read_write_paths=/srv/repo/src/a"},
		{"create", "/srv/repo/new", none + "careful: a git repository is there"},
		{"write", "/srv/repo/.git/config", none + "careful: "},
		{"write", "/srv/repo/.git", none + "careful: "},
		{"write", "/srv/bare", none + "careful: a git repository is there"},
		{"create", "/srv/bare/new", none + "careful: a git repository is there"},
		{"create", "/srv/bares/new", none + `careful: the git repository "/srv/bares/one" is below it`},
		{"create", "/srv/bare/hooks/new", none + `careful: it is in the git repository "/srv/bare", and git outside`},
		{"write", "/srv/bare/hooks/old", none + "careful: it is in the git repository"},
		{"write", "/srv/bare/config", none + "careful: it is in the git repository"},
		{"write", "/srv/bare/worktrees/w/gitdir", none + "careful: it is in the git repository"},
		{"create", "/srv/repo/.git/modules/sub/hooks/new", none + "careful: it is in the git repository"},
		{"create", "/srv/bare/objects/ab/new", "additional_read_write_paths=/srv/bare/objects/ab"},
		{"read", "/srv/bare/config", "additional_read_only_paths=/srv/bare/config"},
		{"write", "/srv/none/config", "additional_read_write_paths=/srv/none/config"},
		{"write", "/home/u/dotfiles/bashrc", none + "careful: your shells run it when they start, so no setting"},
		{"create", "/home/u/dotfiles/new", none + `careful: "/home/u/dotfiles/bashrc" is below it, and your shells`},
		{"create", "/home/u/.codex/tmp", none + "careful: Codex outside runs the servers and hooks that it names; " +
			`"codex" in "toolchains" gives sessions what they need`},
		{"create", "/etc/zz", none + "careful: programs of the whole machine act on it"},
		{"read", "/home/u/.kube/config", none + "careful: credentials of Kubernetes clusters are stored there"},
		{"read", "/home/u/.docker/config.json", none + "careful: passwords of container registries are stored there"},
		{"read", "/home/u/.ssh/id", none + "careful: SSH keys are stored there"},
		{"read", "/home/u/.mozilla/key4.db", none + "careful: a browser's cookies and passwords are stored there"},
		{"read", "/home/u/.ssh/id.pub", "toolchains=ssh"},
		{"read", "/home/u/.codex/auth.json", none + "careful: Codex keeps its sign-in there, so no setting"},
		{"read", "/home/u/data/file", "additional_read_only_paths=/home/u/data/file"},
		{"create", "/home/u/work/new", none + `careful: the git repository "/home/u/work/x" is below it, and git outside`},
		{"write", "/home/u/work", none + `careful: the git repository "/home/u/work/x" is below it`},
		{"write", "/home/u/work/y/a", "additional_read_write_paths=/home/u/work/y/a"},
		{"create", "/home/u/many/new", none + "careful: git repositories may be among its 1000 directories or more"},
		{"create", "/home/u/new", none + "careful: that would open your home directory"},
	} {
		snapshot := snapshotOf(t, resolvetest.InMemory(tree), `{"enabled": true}`, "")
		s, err := Suggest(snapshot, document.KindTool, test.access, test.target, "")
		if err != nil {
			t.Fatal(err)
		}
		got := s.Key + "=" + s.Value
		if s.Key == "" {
			got = none + s.Hint
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s %s: %s, want %s", test.access, test.target, got, test.want)
		}
	}
}

// What programs outside act on because a file of the user's names it is never
// suggested for writing either, whether it exists or not.
func TestAdvice_LeadsToNothingThatFilesOfTheUsersName(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		"/home/u/project/": "", "/home/u/neighbour": "", "/home/u/own/other": "",
		"/home/u/.bashrc": ". ~/own/sourced\nfor f in ~/loop/*.sh ~/{one,two}; do . \"$f\"; done\n" +
			"read_all() { . \"$1\"; }; read_all ~/by/function; all=(~/by/array); alias t=~/by/alias\n",
		"/home/u/.zshrc":          "fpath=(~/functions ~/later/functions $fpath)\ncd ~/elsewhere\n",
		"/home/u/functions/x":     "",
		"/home/u/elsewhere/x":     "",
		"/home/u/.vimrc":          "Plug '~/plugin'\nset rtp+=~\n",
		"/home/u/plugin/plugin/x": "",
		"/home/u/own/sourced":     ". /srv/deep/env\n",
		"/srv/deep/env":           "",
		"/home/u/loop/a.sh":       "",
		"/home/u/loop/README":     "",
		"/home/u/one":             "",
		"/home/u/.gitconfig": "[include] path = git/more\n[core] hooksPath = ~/hooks\n\tfsmonitor = /srv/tool/watch\n" +
			"[init] templateDir = ~/template\n[gc] recentObjectsHook = /srv/gc/hook\n",
		"/home/u/git/more":     "[includeIf \"gitdir:~/work/\"] path = ~/git/work\n",
		"/home/u/git/work":     "",
		"/home/u/hooks/README": "",
		"/srv/tool/watch":      "", "/srv/gc/hook": "",
		"/home/u/.ssh/config":    "Include ~/ssh/*.conf\n",
		"/home/u/ssh/there.conf": "Host there\n",
		"/home/u/dot/fish":       "", "/home/u/.config/fish/config.fish": "-> ../../dot/fish",
		"/home/u/dot/lua/a": "", "/home/u/.config/nvim/lua": "-> ../../dot/lua", "/home/u/dot/other": "",
		"/home/u/built/tool": "", "/home/u/.local/bin/tool": "-> ../../built/tool",
		"/home/u/.ssh/rc": "-> ../rc/ssh",
	}
	snapshot := snapshotOf(t, resolvetest.Tree(t, tree), `{"enabled": true}`, "")
	for _, target := range []string{
		"/home/u/own/sourced", "/srv/deep/env", "/srv/deep/new", "/home/u/loop/a.sh", "/home/u/loop/new.sh",
		"/home/u/one", "/home/u/two", "/home/u/git/more", "/home/u/git/work", "/home/u/git/new",
		"/home/u/hooks/pre-commit", "/home/u/hooks/README", "/srv/tool/watch", "/home/u/ssh/there.conf",
		"/home/u/ssh/new.conf", "/home/u/dot/fish", "/home/u/dot/lua", "/home/u/dot/lua/a", "/home/u/dot/lua/new",
		"/home/u/dot/new", "/home/u/built/tool", "/home/u/rc/ssh",
		"/home/u/by/function", "/home/u/by/array", "/home/u/by/alias", "/home/u/by/new", "/home/u/template/hooks/x",
		"/srv/gc/hook", "/home/u/functions/x", "/home/u/functions/new",
		"/home/u/later/functions/new", "/home/u/plugin/plugin/x", "/home/u/plugin/new",
	} {
		for _, access := range []string{"write", "create", "remove"} {
			s, err := Suggest(snapshot, document.KindTool, access, target, "")
			if err != nil {
				t.Fatal(err)
			}
			if s.Key != "" || s.Hint == "" {
				t.Errorf("%s %s: %s=%s, %s", access, target, s.Key, s.Value, s.Hint)
			}
		}
	}
	for _, target := range []string{
		"/home/u/neighbour", "/home/u/own/other", "/home/u/loop/README", "/home/u/dot/other", "/home/u/elsewhere/x",
	} {
		s, err := Suggest(snapshot, document.KindTool, "write", target, "")
		if err != nil || s.Value != target {
			t.Errorf("control: %s: %s=%s, %s, %v", target, s.Key, s.Value, s.Hint, err)
		}
	}
}

// No suggestion gives up a protection, or shows what the user's settings hide. The
// key is there for whoever asks for just that.
func TestAdvice_GivesUpNoProtection(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/.git/hooks/x": "", "/home/u/project/own": "", "/srv/open/hidden": "", "/srv/open/x": "",
		"/home/u/.codex/auth.json": "",
	})
	s := snapshotOf(t, tree, `{"enabled": true, "additional_read_only_paths": ["/srv/open", "~"],
		"protected_paths": ["own"], "hidden_paths": ["/srv/open/hidden", "~/.codex"]}`, "")
	for _, test := range []struct {
		attempt      Attempt
		target, hint string
		protected    bool
	}{
		{Write, "/home/u/project/.git/hooks/x", "it is protected", true},
		{Write, "/home/u/project/own", "it is protected", true},
		{Read, "/srv/open/hidden", "careful: hidden_paths", false},
		{Read, "/home/u/.codex/auth.json", "careful: Codex keeps its sign-in there", false},
	} {
		got, err := Suggest(s, document.KindTool, string(test.attempt), test.target, "")
		if err != nil || got.Key != "" || got.Protected != test.protected || !strings.Contains(got.Hint, test.hint) {
			t.Errorf("%s %s: %+v, %v", test.attempt, test.target, got, err)
		}
		x, err := Why(s, document.KindTool, test.attempt, test.target)
		if err != nil || x.Key == "" || !x.Careful() {
			t.Errorf("%s %s: %+v, %v", test.attempt, test.target, x, err)
		}
	}
	if x, err := Why(s, document.KindTool, Write, "/srv/open/x"); err != nil || x.Careful() || x.Key == "" {
		t.Errorf("careful of what is plain: %+v, %v", x, err)
	}
}

// A place that a variable moves is known in both places. What it names in the
// project is the project's own.
func TestAdvice_FollowsVariables(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/kube": "", "/srv/codex/config.toml": "", "/srv/zsh/.zshrc": "", "/srv/zsh/other": "",
		"/home/u/keys/kube": "", "/srv/free/x": "", "/home/u/.zcompdump-host": "", "/home/u/.Xauthority": "",
	})
	env := map[string]string{
		"CODEX_HOME": "/srv/codex", "ZDOTDIR": "/srv/zsh", "KUBECONFIG": "/home/u/keys/kube:/home/u/project/kube",
		"PATH": "/usr/bin:/srv/tools",
	}
	const careful = "careful: "
	for _, test := range []struct{ access, target, plain, moved string }{
		{"write", "/srv/codex/config.toml", "", careful + "Codex outside runs the servers"},
		{"read", "/srv/codex/config.toml", "", careful + "Codex keeps its sign-in there"},
		{"write", "/srv/zsh/.zshrc", "", careful + "your shells run it"},
		{"create", "/srv/zsh/.zcompdump", "", careful + "\"/srv/zsh/.z"},
		{"write", "/srv/zsh/other", "", ""},
		{"read", "/home/u/keys/kube", "", careful + "credentials of Kubernetes clusters are stored there"},
		{"create", "/srv/tools/x", "", careful + "your shells find programs there"},
		{"write", "/srv/free/x", "", ""},
		{"write", "/home/u/.codex", careful + "Codex", careful + "Codex"},
		{"write", "/home/u/.zcompdump-host", careful + "your shells", careful + "your shells"},
		{"read", "/home/u/.Xauthority", careful + "the key of your display", careful + "the key of your display"},
	} {
		for moved, want := range map[bool]string{false: test.plain, true: test.moved} {
			s := snapshotOf(t, tree, `{"enabled": true}`, "")
			if moved {
				s.Host.Env = env
			}
			got, err := Suggest(s, document.KindTool, test.access, test.target, "")
			if err != nil || want == "" && got.Key == "" && got.Hint == "" || want != "" && got.Key != "" ||
				!strings.HasPrefix(got.Hint, want) || want == "" && strings.HasPrefix(got.Hint, careful) {
				t.Errorf("%s %s, moved: %t: %+v, %v; want %q", test.access, test.target, moved, got, err, want)
			}
		}
	}
	whole := snapshotOf(t, tree, `{"enabled": true, "additional_read_only_paths": ["~"]}`, "")
	whole.Host.Env = env
	c := whole.Compile(document.KindTool)
	for path, want := range map[string]bool{
		"/home/u/keys/kube": true, "/home/u/project/kube": false, "/home/u/.Xauthority": false,
	} {
		if _, hidden := c.Policy.HiddenAt(path); hidden != want {
			t.Errorf("%s is hidden: %t", path, hidden)
		}
	}
}

// The sets that the table names exist.
func TestAdvice_NamesSetsThatExist(t *testing.T) {
	t.Parallel()
	for _, place := range risks.All() {
		if _, known := toolchain.Find(place.Set); place.Set != "" && !known {
			t.Errorf("%s: there is no set %q", place.Path, place.Set)
		}
	}
}

// No socket of a program that does more than a session may is suggested without
// that, by any of its names, so that learn does not add it.
func TestAdvice_LeadsToNoSocketOfTheTable(t *testing.T) {
	t.Parallel()
	sockets := []string{
		"/run/docker.sock", "/var/run/docker.sock", "/run/user/1000/bus", "/run/user/1000/podman/podman.sock",
		"/tmp/.X11-unix/X0", "abstract:/tmp/.X11-unix/X0", "abstract:/tmp/dbus-abc", "/tmp/tmux-1000/default",
		"/home/u/.docker/run/docker.sock", "/run/user/1000/vscode-ipc-1.sock",
		"/tmp/ssh-x/agent.1", "/run/systemd/private", "/run/user/1000/systemd/private",
	}
	tree := map[string]string{
		"/home/u/project/": "", "/var/run": "-> /run", "/srv/db.sock": "", "/run/user/1000/own": "",
	}
	for _, path := range sockets {
		if strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/var/run") {
			tree[path] = ""
		}
	}
	snapshot := snapshotOf(t, resolvetest.InMemory(tree), `{"enabled": true}`, "")
	for _, path := range sockets {
		s, err := Suggest(snapshot, document.KindTool, "connect_unix", path, "")
		if err != nil || s.Key != "" || !strings.HasPrefix(s.Hint, "careful: ") ||
			!strings.Contains(s.Hint, "; if sessions need it, add ") {
			t.Errorf("%s: %+v, %v", path, s, err)
		}
		x, err := Why(snapshot, document.KindTool, ConnectUnix, path)
		if err != nil || !x.Careful() || x.Key == "" {
			t.Errorf("%s is explained as %+v, %v", path, x, err)
		}
	}
	for _, path := range []string{"/srv/db.sock", "/run/user/1000/own", "/run/docker.sock2", "abstract:own"} {
		s, err := Suggest(snapshot, document.KindTool, "connect_unix", path, "")
		if err != nil || s.Value != path || !strings.HasPrefix(s.Hint, "careful: a grant gives") {
			t.Errorf("control: %s: %+v, %v", path, s, err)
		}
	}
}
