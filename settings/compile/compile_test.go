package compile

import (
	"flag"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/golden"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestCompile_Paths(t *testing.T) {
	t.Parallel()
	home := map[string]string{
		"/home/u/project/.git/HEAD":  "",
		"/home/u/project/src/":       "",
		"/home/u/.ssh/id":            "",
		"/home/u/.cache/link":        "-> ../.ssh",
		"/home/u/.cache/pip/":        "",
		"/home/u/tools/bin/":         "",
		"/home/u/bin":                "-> tools/bin",
		"/home/u/project/escape":     "-> /home/u/.ssh",
		"/home/u/loop":               "-> loop",
		"/home/u/file":               "x",
		"/home/u/a \"b\"\nc/":        "",
		"/home/u/through/dir":        "-> /home/u/tools/bin",
		"/etc/passwd":                "",
		"/run/user/1000/bus":         "",
		"/dev/null":                  "",
		"/proc/self":                 "-> 42",
		"/proc/42/environ":           "",
		"/home/u/.ssh/agent.sock":    "",
		"/home/u/.cache/docker.sock": "-> ../.ssh/agent.sock",
	}
	tests := []struct {
		name, user, project string
		access              map[string]string // path → names
		says                []string          // parts of the user's diagnostics
		projectSays         []string
	}{
		{
			name: "the project is writable and executable, the rest of the home directory is not there",
			user: `{"enabled": true}`,
			access: map[string]string{
				"/home/u/project/src/x": "read,write,execute", "/home/u/.ssh/id": "none",
				"/etc/passwd": "read", "/home/u/.zshrc": "read",
			},
		},
		{
			name: "each additional list grants its own access",
			user: `{"enabled": true, "additional_executable_paths": ["~/tools"], "additional_read_only_paths": ["~/.ssh"], "additional_read_write_paths": ["$CACHE/pip"]}`,
			says: []string{`"~/.ssh" lets sessions read SSH keys`},
			access: map[string]string{
				"/home/u/tools/x": "read,execute", "/home/u/.ssh/id": "read",
				"/home/u/.cache/pip/x": "read,write,execute",
			},
		},
		{
			name: "a socket that sessions can move is granted with a diagnostic, and one that they cannot without",
			user: `{"additional_read_write_paths": ["~/.cache"], "allowed_unix_sockets": ["~/.cache/agent.sock", "~/.ssh/agent.sock"]}`,
			says: []string{"\"~/.cache/agent.sock\" lies in a directory that sessions may write: only one that exists"},
		},
		{
			name:   "a grant covers the real path of a symlink",
			user:   `{"enabled": true, "additional_executable_paths": ["~/bin"]}`,
			access: map[string]string{"/home/u/tools/bin/go": "read,execute", "/home/u/bin": "none"},
		},
		{
			name:   "a grant through a symlink in a writable directory is refused",
			user:   `{"additional_read_write_paths": ["~/.cache"], "additional_read_only_paths": ["~/.cache/link", "~/project/escape"]}`,
			access: map[string]string{"/home/u/.ssh/id": "none", "/home/u/.cache/x": "read,write,execute"},
			says: []string{
				`crosses the symlink "/home/u/.cache/link"`, `crosses the symlink "/home/u/project/escape"`,
			},
		},
		{
			name:   "dot-dot is taken from where the symlink leads, and said",
			user:   `{"additional_read_only_paths": ["~/through/dir/../secret"]}`,
			access: map[string]string{"/home/u/tools/secret": "read", "/home/u/through/secret": "none"},
			says:   []string{`leads to "/home/u/tools/secret"`},
		},
		{
			name:   "a missing path is granted for the day it exists, and said",
			user:   `{"additional_read_only_paths": ["~/later/../later/x"]}`,
			access: map[string]string{"/home/u/later/x": "read"},
			says:   []string{`there is no "/home/u/later/x"`},
		},
		{
			name:   "entries that make no sense do not count",
			user:   `{"additional_read_only_paths": ["", "~other/x", "relative", "$UNSET/x", "${x", "a\u0000b", "~/loop", "~/tools"]}`,
			access: map[string]string{"/home/u/tools/x": "read", "/home/u/loop": "none", "/x": "none"},
			says: []string{
				"an empty path", "your own home", "a relative path", "UNSET is not set", "expected ${NAME}", "NUL",
				"too many levels",
			},
		},
		{
			name:   "quotes and newlines in names are legal",
			user:   `{"enabled": true, "additional_read_only_paths": ["~/a \"b\"\nc"]}`,
			access: map[string]string{"/home/u/a \"b\"\nc/x": "read"},
		},
		{
			name:   "a file granted for writing is diagnosed",
			user:   `{"additional_read_write_paths": ["~/file"]}`,
			access: map[string]string{"/home/u/file": "read,write,execute"},
			says:   []string{"grant the directory"},
		},
		{
			name:   "a link in /proc is another one for each process",
			user:   `{"additional_read_only_paths": ["/proc/self/environ"], "system_paths": {"read_only": []}}`,
			access: map[string]string{"/proc/42/environ": "none"},
			says:   []string{"another file for each process"},
		},
		{
			name: "the baseline's /dev is the safe devices",
			user: `{}`,
			access: map[string]string{
				"/dev/null": "read,write,device", "/dev/pts/3": "none", "/dev/sda": "none",
				"/dev/shm/x": "read,write,execute", "/run/user/1000/bus": "none",
			},
		},
		{
			name: "a written /dev and /run/user are literal, with a warning",
			user: `{"system_paths": {"read_write": ["/dev", "/run/user"]}}`,
			access: map[string]string{
				"/dev/sda": "read,write,execute,device", "/run/user/1000/bus": "read,write,execute",
				"/tmp/x": "none",
			},
			says: []string{"every device", "full escape"},
		},
		{
			name:   "an empty category denies all of it and leaves the others",
			user:   `{"enabled": true, "system_paths": {"executable": []}}`,
			access: map[string]string{"/usr/bin/ls": "none", "/etc/passwd": "read", "/usr/share/x": "read"},
		},
		{
			name:    "a project narrows the baseline",
			user:    `{"enabled": true}`,
			project: `{"system_paths": {"executable": ["/usr/bin"], "read_write": ["/dev"]}}`,
			access: map[string]string{
				"/usr/bin/ls": "read,execute", "/opt/x": "none", "/dev/null": "read,write,device",
				"/dev/sda": "none", "/tmp/x": "none",
			},
		},
		{
			name:    "a project cannot grant what the user does not",
			user:    `{"enabled": true, "additional_read_only_paths": ["~/tools"]}`,
			project: `{"additional_read_only_paths": ["~/.ssh", "/home/u", "~/tools/bin"], "additional_read_write_paths": ["/home", "src"]}`,
			access: map[string]string{
				"/home/u/.ssh/id": "none", "/home/u/tools/bin/x": "read", "/home/u/tools/y": "read",
				"/home/u/project/src/x": "read,write,execute",
			},
			projectSays: []string{`"~/.ssh" has no effect`, `"/home" has no effect`},
		},
		{
			name:        "a project's entry below a granted directory does not become a grant of where a symlink there leads",
			user:        `{"enabled": true, "system_paths": {"read_write": []}, "additional_read_only_paths": ["~/.cache"]}`,
			project:     `{"additional_read_only_paths": ["~/.cache/link"]}`,
			access:      map[string]string{"/home/u/.ssh/id": "none", "/home/u/.cache/x": "none"},
			projectSays: []string{`"~/.cache/link" has no effect`},
		},
		{
			name:    "a project that drops a writable directory does not bring back a grant refused because of it",
			user:    `{"enabled": true, "additional_read_write_paths": ["~/.cache"], "additional_read_only_paths": ["~/.cache/link"]}`,
			project: `{"additional_read_write_paths": []}`,
			access:  map[string]string{"/home/u/.ssh/id": "none"},
			says:    []string{"crosses the symlink"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := snapshotOf(t, resolvetest.Tree(t, home), test.user, test.project).Compile(document.KindTool)
			for path, want := range test.access {
				if access := accessOf(got, path); access != want {
					t.Errorf("%s: granted %s, want %s", path, access, want)
				}
			}
			for _, part := range test.says {
				if !strings.Contains(said(got, userFile), part) {
					t.Errorf("user's diagnostics lack %q:\n%s", part, said(got, userFile))
				}
			}
			for _, part := range test.projectSays {
				if !strings.Contains(said(got, projectFile), part) {
					t.Errorf("project's diagnostics lack %q:\n%s", part, said(got, projectFile))
				}
			}
			if test.says == nil && said(got, userFile) != "" {
				t.Errorf("unexpected diagnostics:\n%s", said(got, userFile))
			}
		})
	}
}

func TestCompile_RestrictsTheUnionOfWhatTheLayersRestrict(t *testing.T) {
	t.Parallel()
	tests := []struct{ user, project, want string }{
		{`{}`, ``, "neither"},
		{`{"enabled": true}`, ``, "both"},
		{`{"enabled": true, "apply_to": "tool"}`, ``, "tool"},
		{`{"enabled": true, "apply_to": "neither"}`, ``, "neither"},
		{`{"enabled": false}`, `{"enabled": true, "apply_to": "tool"}`, "tool"},
		{`{"enabled": true, "apply_to": "tool"}`, `{"apply_to": "terminal"}`, "both"},
		{`{"enabled": true, "apply_to": "tool"}`, `{"enabled": false}`, "tool"},
		{`{"enabled": true}`, `{"apply_to": "neither"}`, "both"},
		{`{"apply_to": "terminal"}`, `{"enabled": true}`, "terminal"},
		{`{}`, `{"apply_to": "both"}`, "neither"},
		{`{"enabled": true, "apply_to": "terminal"}`, `{"enabled": true, "apply_to": "tool"}`, "both"},
	}
	f := resolvetest.Tree(t, nil)
	for _, test := range tests {
		s := snapshotOf(t, f, test.user, test.project)
		got := document.Kinds{
			Terminal: s.Compile(document.KindTerminal).Policy.Restricted,
			Tool:     s.Compile(document.KindTool).Policy.Restricted,
		}
		if string(got.ApplyTo()) != test.want {
			t.Errorf("user %s, project %s: restricts %s, want %s", test.user, test.project, got.ApplyTo(), test.want)
		}
		if merged := s.Merged(); document.RestrictedKinds(*merged.Enabled, *merged.ApplyTo) != got {
			t.Errorf("user %s, project %s: merged says enabled %t, apply_to %s", test.user, test.project,
				*merged.Enabled, *merged.ApplyTo)
		}
	}
}

func TestCompile_OtherKeys(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/.ssh/agent.sock":     "",
		"/home/u/project/sock":        "-> /home/u/.ssh/agent.sock",
		"/home/u/project/.git":        "gitdir: ../elsewhere",
		"/home/u/project/.gitmodules": "[submodule \"lib\"]\n\tpath = lib\n",
		"/home/u/project/lib/.git":    "gitdir: ../.git/modules/lib",
	})
	render := func(c Result) string {
		p := c.Policy
		var out strings.Builder
		fmt.Fprintf(&out, "network %t, unavailable %s, denied %s, env %v, runtime %t\n",
			p.Network.Allowed, p.OnUnavailable, p.OnDenied, p.Environment.Allowed, p.PrivateRuntimeDir)
		for _, s := range p.UnixSockets {
			fmt.Fprintf(&out, "socket %s%s\n", s.Path, s.Abstract)
		}
		for _, s := range p.Protected {
			if s.Origin.File != policy.OriginBuiltIn {
				fmt.Fprintf(&out, "protected %s by %s\n", s.Path, s.Origin)
			}
		}
		return out.String()
	}
	const env = `"allowed_env_vars": ["A", "B_*"], `
	tests := []struct{ name, user, project, want string }{
		{
			"user alone",
			`{` + env + `"allow_network": false, "allowed_unix_sockets": ["~/.ssh/agent.sock", "abstract:x", "$NONE", "abstract:", "~/project/sock"], "on_denied": "ask", "protected_paths": ["a/../b", "../out", "/home/u/project/c", "/etc"]}`, ``,
			"network false, unavailable refuse, denied ask, env [A B_*], runtime true\nsocket x\nsocket " +
				"/home/u/.ssh/agent.sock\n" +
				"protected /home/u/project/b by protected_paths (" + userFile +
				":1)\nprotected /home/u/project/c by protected_paths (" + userFile + ":1)\n",
		},
		{
			"a project tightens",
			`{` + env + `"allowed_unix_sockets": ["~/.ssh/agent.sock", "abstract:x", "abstract:z"], "on_unavailable": "warn"}`,
			`{"allow_network": false, "allowed_env_vars": ["B_X", "A", "C"], "allowed_unix_sockets": ["abstract:x", "abstract:y"], "on_unavailable": "refuse", "protected_paths": ["mine"], "system_paths": {"read_write": ["/tmp"]}}`,
			"network false, unavailable refuse, denied report, env [A B_X], runtime false\nsocket x\nprotected " +
				"/home/u/project/mine by protected_paths (" + projectFile + ":1)\n",
		},
		{
			"a project does not loosen",
			`{` + env + `"allow_network": false, "on_unavailable": "refuse", "protected_paths": ["p"], "on_denied": "ask"}`,
			`{"allow_network": true, "allowed_env_vars": ["LD_*", "A", "B_*", "D"], "allowed_unix_sockets": ["/run/docker.sock"], "on_unavailable": "warn", "protected_paths": [], "on_denied": "ignore", "process_tracking": "seatbelt"}`,
			"network false, unavailable refuse, denied ask, env [A B_*], runtime true\nprotected /home/u/project/p by " +
				"protected_paths (" + userFile + ":1)\n",
		},
		{
			"a private runtime directory is not a grant of a part of the shared one", `{` + env + `"on_unavailable": "warn"}`,
			`{"system_paths": {"read_write": ["/run/user/1000/x"]}}`,
			"network true, unavailable warn, denied report, env [A B_*], runtime false\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := render(snapshotOf(t, f, test.user, test.project).Compile(document.KindTool)); got != test.want {
				t.Errorf("got:\n%swant:\n%s", got, test.want)
			}
		})
	}
}

func TestCompile_DefaultLinuxPolicy(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/usr/bin/": "", "/usr/lib/": "", "/bin": "-> usr/bin", "/lib": "-> usr/lib", "/lib64": "-> usr/lib",
		"/home/u/.zshrc": "-> dotfiles/zshrc", "/home/u/dotfiles/zshrc": "", "/home/u/project/": "",
		"/home/u/.config/": "",
	})
	c := snapshotOf(t, f, `{"enabled": true}`, "").Compile(document.KindTerminal)
	golden.Compare(t, *update, "testdata/default_linux.golden", describePolicy(&c.Policy))
}

func TestCompile_DefaultDarwinPolicy(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{
		"/var": "-> private/var", "/private/var/folders/": "",
		"/home/u/project/": "",
	}),
		`{"enabled": true}`, "")
	s.Host.Platform = "darwin"
	c := s.Compile(document.KindTool)
	golden.Compare(t, *update, "testdata/default_darwin.golden", describePolicy(&c.Policy))
}

func TestCompile_ProcessTrackingIsForMacsAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		platform, user, project string
		want                    bool
	}{
		{"darwin", `{"process_tracking": "seatbelt"}`, "", true},
		{"darwin", `{"process_tracking": "auto"}`, "", false},
		{"darwin", `{}`, `{"process_tracking": "seatbelt"}`, false},
		{"linux", `{"process_tracking": "seatbelt"}`, "", false},
	} {
		s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/home/u/project/": ""}), test.user, test.project)
		s.Host.Platform = test.platform
		if got := s.Compile(document.KindTerminal).Policy.TrackBySandbox; got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}

func describePolicy(p *policy.Policy) string {
	var out strings.Builder
	fmt.Fprintf(&out, "restricted %t\nproject %s\nruntime dir %t\nterminals %t\nnetwork %t\nunavailable %s\ndenied "+
		"%s\nenv %s\n",
		p.Restricted, p.Project, p.PrivateRuntimeDir, p.PrivateTerminals, p.Network.Allowed,
		p.OnUnavailable, p.OnDenied,
		strings.Join(p.Environment.Allowed, " "))
	for _, rule := range p.Rules {
		fmt.Fprintf(&out, "%-24s %s: %s\n", rule.Access, rule.Path, rule.Origin)
	}
	for _, protected := range p.Protected {
		fmt.Fprintf(&out, "protected %s: %s\n", protected.Path, protected.Origin)
	}
	return out.String()
}

func TestOrigins_CoverEveryKey(t *testing.T) {
	t.Parallel()
	origins := snapshotOf(t, resolvetest.Tree(t, nil), `{"enabled": true}`, "").Origins()
	if len(origins) != len(document.Keys()) || origins["enabled"] != userFile ||
		origins["apply_to"] != "built-in defaults" {
		t.Errorf("origins: %v", origins)
	}
}

// tenThousand is a snapshot in which the user and the project list ten thousand
// directories each, with a count of the lookups.
func tenThousand(t testing.TB) (*Snapshot, *int) {
	var list []string
	for i := range 10_000 {
		list = append(list, fmt.Sprintf("%q", fmt.Sprintf("~/dir%d/sub%d", i%100, i)))
	}
	block := `{"enabled": true, "additional_read_write_paths": [` + strings.Join(list, ",") + `]}`
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/home/u/project/": ""}), block, block)
	lookups := 0
	lstat := s.FS.Lstat
	s.FS.Lstat = func(path string) (fs.FileMode, error) { lookups++; return lstat(path) }
	return s, &lookups
}

func TestCompile_TenThousandEntriesAreResolvedOnce(t *testing.T) {
	t.Parallel()
	s, lookups := tenThousand(t)
	c := s.Compile(document.KindTool)
	if *lookups > 11_000 {
		t.Errorf("%d calls of lstat", *lookups)
	}
	if got := accessOf(c, "/home/u/dir99/sub9999/x"); got != "read,write,execute" {
		t.Errorf("last entry grants %s", got)
	}
}

func BenchmarkCompile_TenThousandEntries(b *testing.B) {
	s, _ := tenThousand(b)
	for b.Loop() {
		again(s).Compile(document.KindTool)
	}
}

func BenchmarkCompile_Defaults(b *testing.B) {
	s := snapshotOf(b, resolvetest.Tree(b, map[string]string{"/home/u/project/": ""}), `{"enabled": true}`, "")
	for b.Loop() {
		again(s).Compile(document.KindTool)
	}
}

func TestCompile_EndlessPathsDoNotCount(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.Tree(t, nil), `{"additional_read_only_paths": ["/`+strings.Repeat("a/",
		1_000_000)+`", "`+strings.Repeat("$BIG", 1_000_000)+`"]}`, "")
	s.Host.Env["BIG"] = "/" + strings.Repeat("b", 100_000)
	c := s.Compile(document.KindTool)
	if got := strings.Count(said(c, userFile), "which no path may be"); got != 2 {
		t.Errorf("%d refusals:\n%.400s", got, said(c, userFile))
	}
}
