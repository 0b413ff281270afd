package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

// A file that is wrong is not "no settings file".
func TestExplain_OfATerminalDespiteAWrongFile(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	for content, want := range map[string]string{
		`{"enabled": "x"}`: "the settings file that may turn the sandbox on is wrong fix line 1 of",
		`{}`:               "no settings file turns the sandbox on sandbox-sidecar init",
	} {
		x, err := Why(snapshotOf(t, f, content, ""), document.KindTerminal, Read, "/home/u/.ssh/id")
		if got := x.Reason + " " + x.Hint; err != nil || !x.Allowed || !strings.Contains(got, want) {
			t.Errorf("%s: %v, %q, %v", content, x.Allowed, got, err)
		}
	}
}

// What a session has for itself is explained, also before it is made, and also
// in the place of the user's own. The control has none of it.
func TestExplain_KnowsWhatASessionHas(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": "", "/home/u/.local/share/fish/history": ""})
	complete := func(p policy.Policy, kind document.Kind) policy.Policy {
		if kind == document.KindTerminal {
			p.Rules = append(p.Rules, policy.Rule{
				Path: "/home/u/state/p", Access: policy.Read | policy.Write, Origin: policy.Origin{
					File: policy.OriginSession, Key: "history",
				},
			})
			p.Replaced = append(p.Replaced, policy.Replaced{
				Path: "/home/u/.local/share/fish", Source: "/home/u/state/p/fish",
			})
		}
		return p
	}
	for _, path := range []string{"/home/u/state/p/new", "/home/u/.local/share/fish/history"} {
		for _, kind := range []document.Kind{document.KindTerminal, document.KindTool} {
			s := snapshotOf(t, f, `{"enabled": true}`, "")
			s = compile.New(s.Input, nil, complete)
			x, err := Why(s, kind, Write, path)
			if err != nil || x.Allowed != (kind == document.KindTerminal) {
				t.Errorf("%s, %s: %+v, %v", kind, path, x, err)
			}
			inPlace := strings.Contains(x.Hint, "in its place")
			if inPlace != (x.Allowed && strings.Contains(path, "fish")) {
				t.Errorf("%s, %s: hint %q", kind, path, x.Hint)
			}
			if got := s.Compile(kind).Policy; (len(got.Replaced) > 0) != x.Allowed {
				t.Errorf("%s: compiled %+v", kind, got.Replaced)
			}
		}
	}
}

func TestExplain_SaysWhyAndWhatWouldChangeIt(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/.git/hooks/": "", "/home/u/project/src/": "", "/home/u/.ssh/id": "",
		"/home/u/tools/bin/tool": "", "/home/u/link": "-> .ssh/id",
		"/etc/passwd": "", "/usr/bin/ls": "", "/srv/data/x": "", "/proc/self": "-> 42", "/proc/42/mem": "",
		"/run/user/1000/bus": "",
		"/dev/pts/3":         "", "/dev/ptmx": "", "/sys/fs/cgroup/": "", "/home/u/loop": "-> loop",
		"/run/docker.sock": "", "/srv/missing/": "", userFile: "",
	})
	const on = `{"enabled": true, "additional_executable_paths": ["~/tools"], ` +
		`"additional_read_only_paths": ["~/later"], "allowed_unix_sockets": ["/run/docker.sock", "abstract:x"]}`
	tests := []struct {
		user, project string
		attempt       Attempt
		target        string
		want          string
	}{
		{
			on, "", Read, "/home/u/project/src",
			`yes "/home/u/project" is granted (read,write,execute) by projectDir (session) [projectDir]`,
		},
		{
			on, "", Execute, "~/tools/bin/tool",
			`yes "/home/u/tools" is granted (read,execute) by additional_executable_paths (` + userFile +
				`:1) [additional_executable_paths]`,
		},
		{
			on, "", Write, "/home/u/tools/bin/tool",
			`no "/home/u/tools" is granted by additional_executable_paths (` +
				userFile + `:1), but not to write it [additional_read_write_paths=/home/u/tools/bin/tool]`,
		},
		{
			on, "", Read, "/home/u/link",
			`no no rule lets a session read "/home/u/.ssh/id" [additional_read_only_paths=/home/u/.ssh/id] careful: SSH keys are stored there`,
		},
		{
			on, "", Read, "/srv/data/../data/x",
			`no no rule lets a session read "/srv/data/x" [additional_read_only_paths=/srv/data/x]`,
		},
		{
			on, "", Write, "/srv/missing/deep/er",
			`no no rule lets a session write "/srv/missing/deep/er" [additional_read_write_paths=/srv/missing]`,
		},
		{
			on, "", Read, "/home/u/later/x",
			`no no rule lets a session read "/home/u/later/x" [] the grant of "/home/u/later" by additional_read_only_paths (` +
				userFile + `:1) counts for sessions that start once it exists`,
		},
		{
			on, "", Write, "/home/u/new",
			`no no rule lets a session write "/home/u/new" [] create it first: a grant of it by additional_read_write_paths counts for sessions that start once it exists`,
		},
		{
			on, "", Write, "/home/u/.config",
			`no "/home/u/.config" is granted by home dotfiles (built-in defaults), ` +
				`but not to write it [additional_read_write_paths=/home/u/.config] careful: that would open the settings`,
		},
		{
			on, "", Write, "/home/u/.config/new/file",
			`no "/home/u/.config" is granted by home dotfiles (built-in defaults), ` +
				`but not to write it [] create it first`,
		},
		{
			on, "", Read, "/proc/self/mem",
			`yes "/proc" is granted (read) by system_paths.read_only (built-in defaults) [system_paths.read_only] "/proc/self" is another file for each process`,
		},
		{on, "", Write, "/proc/42/mem", `no "/proc" is granted by system_paths.read_only (built-in defaults), ` +
			`but not to write it [] what is in /proc belongs to single processes`},
		{
			on, "", Read, "/run/user/1000/bus",
			`no no rule lets a session read "/run/user/1000/bus" [additional_read_only_paths=/run/user/1000/bus] a session has a runtime directory of its own, which XDG_RUNTIME_DIR names`,
		},
		{
			on, "", Write, "/dev/pts/3",
			`no no rule lets a session write "/dev/pts/3" [additional_read_write_paths=/dev/pts/3] a session has terminals of its own`,
		},
		{
			on, "", Write, "/sys/fs/cgroup", `no "/sys/fs/cgroup" is granted by system_paths.read_only (built-in defaults), ` +
				`but not to write it [] no setting lets`,
		},
		{on, "", Read, "/home/u/loop", `no "/home/u/loop" leads nowhere: too many levels of symlinks []`},
		{
			on, "", Read, "/usr/bin/absent",
			`yes "/usr/bin" is granted (read,execute) by system_paths.executable (built-in defaults) [system_paths.executable] there is no such file`,
		},
		{
			`{"enabled": true, "protected_paths": [".git/hooks", "a"]}`, "", Write,
			"/home/u/project/.git/hooks/pre-commit",
			`no "/home/u/project/.git/hooks" stays as it is, although the directory around it can be written, ` +
				`by protected_paths (` + userFile + `:1) [protected_paths=["a"]] a session can change it if`,
		},
		{
			on, `{"protected_paths": ["mine"]}`, Write, "/home/u/project/mine/x",
			`no "/home/u/project/mine" stays as it is, although the directory around it can be written, ` +
				`by protected_paths (` +
				projectFile + `:1) [] the project protects it; only a change of "` + projectFile + `" allows it`,
		},
		{
			`{"enabled": true, "additional_read_write_paths": ["~/.config"]}`, "", Write, userFile,
			`no "/home/u/.config/zed" stays as it is, although the directory around it can be written, ` +
				`by the sidecar's own files (built-in defaults) [] edit it outside: no setting lets`,
		},
		{
			on, "", ConnectUnix, "/run/docker.sock",
			`yes the socket "/run/docker.sock" is granted by allowed_unix_sockets (` + userFile +
				`:1) [allowed_unix_sockets]`,
		},
		{
			on, "", ConnectUnix, "/run/user/1000/bus",
			`no no rule lets a session use the socket "/run/user/1000/bus" [allowed_unix_sockets=/run/user/1000/bus] careful: services on the bus start programs outside`,
		},
		{on, "", ConnectUnix, "abstract:x", `yes the socket "abstract:x" is granted by`},
		{
			on, "", ConnectUnix, "abstract:y",
			`no no rule lets a session use the socket "abstract:y" [allowed_unix_sockets=abstract:y]`,
		},
		{
			on, "", Connect, "example.org:443",
			`yes the network is allowed by allow_network (built-in defaults) [allow_network]`,
		},
		{
			`{"enabled": true, "allow_network": false}`, "", Bind, "localhost:80",
			`yes "localhost:80" is the session's own, as the network is off by allow_network (` + userFile + `:1) []`,
		},
		{
			`{"enabled": true, "allow_network": false}`, "", Bind, "192.0.2.1:80",
			`no the network is off by allow_network (` + userFile + `:1) [allow_network=true] careful: that would`,
		},
		{on, `{"allow_network": false}`, Connect, "x:1", `no the network is off by allow_network (` +
			projectFile + `:1) []`},
		{
			on, `{"additional_executable_paths": []}`, Execute, "/home/u/tools/bin/tool",
			`no no rule lets a session execute "/home/u/tools/bin/tool" [] your own settings grant it; the project's file "` +
				projectFile + `" takes it away`,
		},
		{
			on, `{"allowed_unix_sockets": []}`, ConnectUnix, "/run/docker.sock",
			`no no rule lets a session use the socket "/run/docker.sock" [] your own settings grant it; the project's file "` +
				projectFile + `" takes it away`,
		},
		{`{"enabled": true, "apply_to": "terminal"}`, "", Write, "/", `yes a tool is not sandboxed: apply_to (` +
			userFile + `:1) leaves it out [apply_to]`},
		{`{}`, "", Connect, "x", `yes a tool is not sandboxed: no settings file turns the sandbox on [enabled]`},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %s", test.attempt, test.target), func(t *testing.T) {
			t.Parallel()
			x, err := Why(snapshotOf(t, f, test.user, test.project), document.KindTool, test.attempt, test.target)
			if err != nil {
				t.Fatal(err)
			}
			answer, setting := "no", x.Key
			if x.Allowed {
				answer = "yes"
			}
			if x.Value != "" {
				setting += "=" + x.Value
			}
			got := strings.TrimSpace(fmt.Sprintf("%s %s [%s] %s", answer, x.Reason, setting, x.Hint))
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	for _, target := range []string{"", "relative", "~root", "/a\x00"} {
		if x, err := Why(snapshotOf(t, f, on, ""), document.KindTool, Read, target); err == nil {
			t.Errorf("%q is explained: %+v", target, x)
		}
	}
	if _, err := ParseAttempt("delete"); err == nil || !strings.Contains(err.Error(), "connect_unix") {
		t.Errorf("an attempt that does not exist: %v", err)
	}
}

// A suggestion must work: with the setting that it names, the same attempt is
// allowed.
func TestExplain_TheSettingItNamesAllowsIt(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(settingstest.Tree)
	targets := []string{
		"/home/u/.ssh/id", "/home/u/.ssh", "/home/u/.cache/link/id", "/home/u/tools/bin", "/usr/bin", "/etc/none",
		"/srv/a/b", "/home/u/project/out/id",
		"/home/u/project/.git/hooks/x", "/home/u/project/b", "/home/u/bin", "/dev/null", "/run/user/1000/bus",
		"/tmp/x", "/", "/home", "/home/u/new",
		"/proc/1/mem", "/home/u/project/loop", "/home/u/.config/zed/settings.json", "abstract:a",
		"/home/u/.local/state/sandbox-sidecar/run/s1/control", "/moved/sandbox-sidecar/s1/control",
	}
	var named atomic.Int64
	settingstest.ForPairs(t, 15, func(user, _ string) {
		// without a sandbox there is no setting to name
		user = withSetting(t, withSetting(t, user, "enabled", "true"), "apply_to", `"tool"`)
		if strings.Contains(user, `"tool":{`) {
			user = withSetting(t, user, "tool.enabled", "true")
		}
		s := snapshotOf(t, f, user, "")
		for _, attempt := range Attempts() {
			for _, target := range targets {
				if attempt == Sign {
					continue // see TestSigningKeys_Explained
				}
				if strings.HasPrefix(target, risks.AbstractPrefix) && attempt != ConnectUnix {
					continue
				}
				x, err := Why(s, document.KindTool, attempt, target)
				if err != nil {
					t.Error(err)
				}
				if x.Allowed || x.Key == "" {
					continue
				}
				named.Add(1)
				with := withSetting(t, user, x.Key, x.Value)
				again, err := Why(snapshotOf(t, f, with, ""), document.KindTool, attempt, target)
				if err != nil || !again.Allowed {
					t.Errorf("%s %s: %s = %s does not help: %s (%s), %v\nuser %s\nwith %s", attempt, target,
						x.Key, x.Value, again.Reason, again.Hint, err, user, with)
				}
			}
		}
	})
	if named.Load() == 0 {
		t.Error("no setting was ever named")
	}
}

// withSetting adds an entry to a list of a block, or sets a key that holds
// JSON.
func withSetting(t *testing.T, block, key, value string) string {
	t.Helper()
	members := map[string]any{}
	if err := json.Unmarshal([]byte(block), &members); err != nil {
		t.Error(err)
	}
	at := members
	if kind, name := document.SplitKey(key); kind != "" {
		at, key = members[string(kind)].(map[string]any), name
	}
	if strings.HasPrefix(key, "additional_") || key == socketsKey {
		list, _ := at[key].([]any)
		at[key] = append(list, value)
	} else {
		at[key] = json.RawMessage(value)
	}
	data, err := json.Marshal(members)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

// What a session does not see is not said to be readable, except where nothing
// can be hidden.
func TestDiagnostics_AgreeWithExplain(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": "", "/home/u/.ssh/id": ""})
	for platform, want := range map[string]string{
		"linux":  "your home directory; without namespaces SSH keys, too",
		"darwin": "your home directory, with SSH keys",
	} {
		s := snapshotOf(t, f, `{"enabled": true, "additional_read_only_paths": ["~"]}`, "")
		s.Host.Platform = platform
		x, err := Why(s, document.KindTool, Read, "/home/u/.ssh/id")
		if err != nil || x.Allowed != (platform == "darwin") {
			t.Errorf("%s: %+v, %v", platform, x, err)
		}
		if got := said(s.Compile(document.KindTool), userFile); !strings.HasSuffix(strings.TrimSpace(got), want) {
			t.Errorf("%s: %s", platform, got)
		}
	}
}

func TestExplain_ToolsInDoubtDoNotStart(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/home/u/project/": ""}), `{"enabled": "yes"}`, "")
	x, err := Why(s, document.KindTool, Read, "/home/u/project")
	if err != nil || x.Allowed || !strings.Contains(x.Reason, "a tool does not start: "+userFile+":1:") {
		t.Errorf("%v: %+v", err, x)
	}
	if x, err := Why(s, document.KindTerminal, Read, "/home/u/project"); err != nil || !x.Allowed {
		t.Errorf("control: %v: %+v", err, x)
	}
}

// What refuses such a file says what allows it: no entry of protected_paths
// does, because the file lies outside of the project.
func TestExplain_SuggestsAGrantOfGitsConfiguration(t *testing.T) {
	t.Parallel()
	tree := resolvetest.Tree(t, map[string]string{
		"/home/u/project/.git/HEAD": "", "/home/u/.gitconfig": "-> dotfiles/gitconfig",
		"/home/u/dotfiles/gitconfig": "[core] hooksPath = ~/dotfiles/hooks\n",
	})
	s := snapshotOf(t, tree, `{"enabled": true, "additional_read_write_paths": ["~/dotfiles"]}`, "")
	got, err := Why(s, document.KindTool, Write, "/home/u/dotfiles/gitconfig")
	if err != nil || got.Key != "additional_read_write_paths" || got.Value != "/home/u/dotfiles/gitconfig" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A pattern of the user that covers a built-in path does not stand for it: the
// suggestion takes both away.
func TestExplain_TakesABuiltInPathAwayBesideAPattern(t *testing.T) {
	t.Parallel()
	tree := resolvetest.Tree(t, map[string]string{"/home/u/project/main.go": ""})
	s := snapshotOf(t, tree, `{"enabled": true, "protected_paths": [".vs*"]}`, "")
	got, err := Why(s, document.KindTool, Write, "/home/u/project/.vscode")
	if err != nil || got.Key != protectedKey || got.Value != `["!.vscode"]` {
		t.Errorf("%+v, %v", got, err)
	}
}

// What programs outside have written to a cache that sessions find empty, no
// session reads. All else in it, and the same cache if it is shared, they do.
func TestWhy_KnowsACacheThatSessionsFindEmpty(t *testing.T) {
	t.Parallel()
	const daemon, other = "/home/u/.gradle/daemon", "/home/u/.gradle/caches"
	tree := resolvetest.InMemory(map[string]string{
		daemon + "/registry": "", other + "/library": "", "/home/u/project/x": "",
	})
	for _, kept := range []string{"private", "shared"} {
		s := snapshotOf(t, tree, `{"enabled": true, "toolchains": ["java"], "toolchain_caches": "`+kept+`"}`, "")
		for path, empty := range map[string]bool{daemon + "/registry": true, daemon: false, other + "/library": false} {
			x, err := Why(s, document.KindTool, Read, path)
			must(t, err)
			unseen := strings.Contains(x.Hint, "sessions do not see what programs outside have written there")
			if !x.Allowed || unseen != (empty && kept == "private") {
				t.Errorf("%s, %s: %+v", kept, path, x)
			}
		}
	}
}
