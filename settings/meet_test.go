package settings

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// meetTree has symlinks in all directions: into and out of directories that are
// often granted, within the project, and in chains.
var meetTree = map[string]string{
	"/usr/bin/": "", "/bin": "-> usr/bin", "/etc/": "", "/tmp/": "", "/dev/null": "", "/dev/pts/": "",
	"/run/user/1000/":                 "",
	"/home/u/.ssh/id":                 "",
	"/home/u/.cache/pip/":             "",
	"/home/u/.cache/link":             "-> ../.ssh",
	"/home/u/.cache/tools":            "-> /home/u/tools",
	"/home/u/tools/bin/":              "",
	"/home/u/tools/up":                "-> ..",
	"/home/u/bin":                     "-> .cache/tools/bin",
	"/home/u/.config/":                "",
	"/home/u/.zshrc":                  "-> tools/zshrc",
	"/home/u/project/src/":            "",
	"/home/u/project/out":             "-> ../.ssh",
	"/home/u/project/.zed/":           "",
	"/home/u/project/docker.sock":     "-> /home/u/.ssh/id",
	"/home/u/.ssh/docker.sock":        "",
	"/home/u/project/loop":            "-> loop",
	"/home/u/project/node_modules/.x": "-> ../../.cache",
}

var (
	meetPaths = []string{
		"/", "/home", "~", "~/", "~/.ssh", "~/.ssh/id", "~/.cache", "~/.cache/pip", "~/.cache/link", "~/.cache/link/id",
		"~/.cache/tools/bin",
		"~/tools", "~/tools/up/.ssh", "~/tools/bin", "~/bin", "~/.cache/../.ssh", "/bin", "/usr", "/usr/bin",
		"/etc", "/tmp", "/tmp/x/y",
		"/dev", "/dev/null", "/dev/pts/3", "/run", "/run/user", "/run/user/1000", "/run/user/1000/bus",
		"src", ".", "..", "out", "out/id",
		"loop", "node_modules/.x/pip", "../.ssh", "$CACHE", "${CACHE}/missing", "$UNSET", "~/project",
		"~/project/out", "", "~root",
	}
	meetHidden = []string{"*", "~/.c*", "o*", "~/*/x"}
	meetVars   = []string{
		"A", "A_B", "A_*", "A*", "LD_PRELOAD", "LD_*", "L*", "_*", "NODE_OPTIONS", "NODE_*", "PATH",
		"TERM", "*", "1A",
	}
	meetNames = []string{
		"~/.ssh/docker.sock", "docker.sock", "~/.ssh/id", "$UNSET", "abstract:a", "abstract:b",
		"abstract:", "/run/user/1000/bus", "~/.cache/link/docker.sock",
	}
	meetKeys = []string{
		"*", "ask:*", aKey, "ask:" + aKey, "5C9E027F6F534FF59047F3F6B7E676A7B9EF8BA6",
		"ask:5c9e027f6f534ff59047f3f6b7e676a7b9ef8ba6", "SHA256:x", "",
	}
	meetNets = []string{
		"a.org", "*.a.org", "b.a.org:1", "*.b.a.org", "c.b.a.org", "a.org:1", "*.a.org:2", "10.0.0.0/8",
		"10.1.0.0/16:1",
		"*", "*.org", "localhost:1", "bad..name", "*.golang.org", "proxy.golang.org:443", "static.crates.io",
	}
	meetSecret = []string{
		"a", "!*", "!.git", "*.x", "d/*y", "!.claude", "!src", ".git/hooks", "../x", "/home/u/project/b", ".",
		"src/../c",
	}
)

// choose makes the decisions for a generated settings block. The fuzzer uses
// bytes, the property test random numbers.
type choose func(n int) int

func (c choose) some(words []string) []string {
	list := []string{}
	for range c(5) {
		list = append(list, words[c(len(words))])
	}
	return list
}

// block generates a sandbox block. Each key is absent in half of them. Some have
// blocks for the kinds.
func (c choose) block() string {
	block := c.keys()
	for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
		if c(4) == 1 {
			inner := c.keys()
			delete(inner, "apply_to")
			block[string(kind)] = inner
		}
	}
	data, err := json.Marshal(block)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (c choose) keys() map[string]any {
	block := map[string]any{}
	maybe := func(key string, value func() any) {
		if c(2) == 1 {
			block[key] = value()
		}
	}
	list := func(words []string) func() any { return func() any { return c.some(words) } }
	word := func(words []string) func() any { return func() any { return words[c(len(words))] } }
	maybe("enabled", func() any { return c(3) > 0 })
	if c(4) == 1 {
		block["mode"] = document.Mode("").Values()[c(4)]
	}
	maybe("apply_to", word(document.ApplyTo("").Values()))
	maybe("allow_network", func() any { return c(2) == 1 })
	maybe("on_unavailable", word(document.OnUnavailable("").Values()))
	maybe("on_denied", word(document.OnDenied("").Values()))
	maybe("allowed_hosts", list(meetNets))
	maybe("denied_hosts", list(meetNets))
	maybe("allowed_env_vars", func() any {
		names := c.some(meetVars)
		if c(3) == 1 {
			for i := range names {
				names[i] = "+" + names[i]
			}
		}
		return names
	})
	maybe("allowed_unix_sockets", list(meetNames))
	maybe("signing_keys", list(meetKeys))
	maybe("protected_paths", list(meetSecret))
	maybe("toolchains", list([]string{"go", "rust"}))
	maybe("limits", func() any {
		return map[string]any{
			"processes":  []any{1, 40, 4096, 9000, 0, "x", nil}[c(7)],
			"memory":     []any{"50%", "75%", "90%", "1G", "8G", "0%", 7, nil}[c(8)],
			"cpu_weight": []any{1, 100, 10000, 0, "x", nil}[c(6)],
		}
	})
	maybe("temporary_files", word(document.TemporaryFiles("").Values()))
	maybe("hidden_paths", list(slices.Concat(meetPaths, meetHidden)))
	for _, key := range []string{
		"additional_executable_paths", "additional_read_only_paths",
		"additional_read_write_paths",
	} {
		maybe(key, list(meetPaths))
	}
	system := map[string]any{}
	for _, key := range []string{"executable", "read_only", "read_write"} {
		if c(3) == 0 {
			system[key] = c.some(meetPaths)
		}
	}
	if len(system) > 0 {
		block["system_paths"] = system
	}
	return block
}

func checkMeet(t testing.TB, f resolve.FS, user, project string) {
	t.Helper()
	checkMeetOf(t, snapshotOf(t, f, user, project), user, project)
}

func checkMeetOf(t testing.TB, s *Snapshot, user, project string) {
	t.Helper()
	g := s.view()
	// Without blocks for the kinds, what is granted does not depend on the kind.
	for i, kind := range []document.Kind{document.KindTerminal, document.KindTool} {
		alone := s.run(g, s.projectDir, asIgnored, kind, nil).policyFor(kind)
		narrow := s.run(g, s.projectDir, asTightening, kind, nil).policyFor(kind)
		how := exceedsKind(&narrow, &alone)
		if how == "" && (i == 0 || s.byKind()) {
			how = exceedsGrants(&narrow, &alone)
		}
		if how != "" {
			t.Errorf("with the project's file: %s: %s\nuser    %s\nproject %s", kind, how, user, project)
		}
	}
}

// pairs is how many pairs of settings a property test generates: few, or as
// many as SIDECAR_PAIRS says.
func pairs(t *testing.T, few int) int {
	t.Helper()
	given := os.Getenv("SIDECAR_PAIRS")
	if given == "" {
		return few
	}
	many, err := strconv.Atoi(given)
	if err != nil {
		t.Fatalf("SIDECAR_PAIRS: %v", err)
	}
	return many
}

// forPairs calls check with generated blocks of a user's and of a project's
// settings, on every processor.
func forPairs(t *testing.T, count int, check func(user, project string)) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("%d pairs, seed %d", count, seed)
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			for range count/workers + 1 {
				if t.Failed() {
					return
				}
				check(choose(random.IntN).block(), choose(random.IntN).block())
			}
		})
	}
	group.Wait()
}

func TestMeet_AProjectNeverGrantsMoreThanTheUser(t *testing.T) {
	t.Parallel()
	harness.Once(t, "its files are in memory")
	f := resolvetest.InMemory(meetTree)
	forPairs(t, pairs(t, 3000), func(user, project string) { checkMeet(t, f, user, project) })
}

// The tree in memory behaves like a real one.
func TestMeet_OnARealTree(t *testing.T) {
	t.Parallel()
	real, memory := resolvetest.Tree(t, meetTree), resolvetest.InMemory(meetTree)
	forPairs(t, 200, func(user, project string) {
		checkMeet(t, real, user, project)
		a := snapshotOf(t, real, user, project).Compile(document.KindTool)
		b := snapshotOf(t, memory, user, project).Compile(document.KindTool)
		if a.Policy.ID() != b.Policy.ID() || !slices.Equal(a.Diagnostics, b.Diagnostics) {
			t.Errorf("in memory %+v\non disk %+v\nuser    %s\nproject %s", b, a, user, project)
		}
	})
}

func TestMeet_AProjectThatSaysNothingChangesNothing(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(meetTree)
	forPairs(t, 200, func(user, _ string) {
		for _, kind := range []document.Kind{document.KindTerminal, document.KindTool} {
			without, with := snapshotOf(t, f, user, "").Compile(kind), snapshotOf(t, f, user, "{}").Compile(kind)
			if without.Policy.ID() != with.Policy.ID() {
				t.Errorf("an empty project file changes the policy of %s", user)
			}
		}
	})
}

func TestMeet_ExceedsNoticesEveryLoosening(t *testing.T) {
	t.Parallel()
	base := func() *policy.Policy {
		return &policy.Policy{
			Restricted: true, OnUnavailable: policy.Refuse, Protected: []policy.Protected{{Path: "/p/a"}},
			Limits: policy.Limits{
				Processes: 40, Memory: policy.Memory{Bytes: 1 << 30, Percent: 50}, CPUWeight: 100, Connections: 9,
			},
			Rules: []policy.Rule{{Path: "/a", Access: policy.Read}, {Path: "/p", Access: policy.ReadWrite}},
		}
	}
	for name, loosen := range map[string]func(*policy.Policy){
		"off":     func(p *policy.Policy) { p.Restricted = false },
		"path":    func(p *policy.Policy) { p.Rules = append(p.Rules, policy.Rule{Path: "/b", Access: policy.Read}) },
		"access":  func(p *policy.Policy) { p.Rules = []policy.Rule{{Path: "/a/b", Access: policy.ReadWrite}} },
		"parent":  func(p *policy.Policy) { p.Rules = []policy.Rule{{Path: "/", Access: policy.Read}} },
		"network": func(p *policy.Policy) { p.Network.Allowed = true },
		"host": func(p *policy.Policy) {
			p.Network.AllowedHosts = []policy.Host{{Pattern: "sum.golang.org:443"}}
		},
		"runtime":     func(p *policy.Policy) { p.PrivateRuntimeDir = true },
		"warn":        func(p *policy.Policy) { p.OnUnavailable = policy.Warn },
		"variable":    func(p *policy.Policy) { p.Environment.Allowed = []string{"LD_PRELOAD"} },
		"prefix":      func(p *policy.Policy) { p.Environment.Allowed = []string{"Q*"} },
		"socket":      func(p *policy.Policy) { p.UnixSockets = []policy.UnixSocket{{Abstract: "x"}} },
		"protected":   func(p *policy.Policy) { p.Protected = nil },
		"key":         func(p *policy.Policy) { p.SigningKeys = []policy.SigningKey{{Key: aKey}} },
		"processes":   func(p *policy.Policy) { p.Limits.Processes++ },
		"bytes":       func(p *policy.Policy) { p.Limits.Memory.Bytes++ },
		"percent":     func(p *policy.Policy) { p.Limits.Memory.Percent++ },
		"all bytes":   func(p *policy.Policy) { p.Limits.Memory.Bytes = 0 },
		"weight":      func(p *policy.Policy) { p.Limits.CPUWeight++ },
		"connections": func(p *policy.Policy) { p.Limits.Connections++ },
		"no limit":    func(p *policy.Policy) { p.Limits = policy.Limits{} },
	} {
		loose := base()
		loosen(loose)
		if exceeds(loose, base()) == "" {
			t.Errorf("%s is not noticed", name)
		}
	}
	if how := exceeds(base(), base()); how != "" {
		t.Errorf("equal policies: %s", how)
	}
}

func FuzzMeet(f *testing.F) {
	tree := resolvetest.Tree(f, meetTree)
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, []byte{9, 8, 7, 6, 5, 4, 3, 2, 1})
	f.Add([]byte{1, 1, 1, 1, 0, 1, 1, 4, 3, 10, 11, 12}, []byte{0, 1, 1, 0, 1, 3, 20, 30, 40})
	f.Fuzz(func(t *testing.T, user, project []byte) {
		checkMeet(t, tree, byBytes(user).block(), byBytes(project).block())
	})
}

func byBytes(data []byte) choose {
	return func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b % n
	}
}

// FuzzCompile: no grant comes from nothing. The file system has no symlinks, so
// that text and real path agree.
func FuzzCompile(f *testing.F) {
	tree := resolvetest.Tree(f, map[string]string{"/home/u/project/": "", "/tmp/": ""})
	f.Add("~/a", "/b/../c", "$CACHE/x", byte(1))
	f.Add("\x00", "~x", "${", byte(2))
	f.Add("//", "/home/u/project/./..", "a\n\"b", byte(7))
	f.Fuzz(func(t *testing.T, a, b, c string, keys byte) {
		block := map[string]any{"enabled": true, "system_paths": map[string]any{
			"executable": []string{},
			"read_only":  []string{a}, "read_write": []string{},
		}}
		for i, key := range []string{
			"additional_executable_paths", "additional_read_only_paths",
			"additional_read_write_paths",
		} {
			if keys>>i&1 == 1 {
				block[key] = []string{b, c}
			}
		}
		data, err := json.Marshal(block)
		if err != nil {
			t.Fatal(err)
		}
		s := snapshotOf(t, tree, string(data), "")
		compiled := s.Compile(document.KindTool)
		allowed := []string{"/home/u/project"}
		for _, name := range homeDotfiles {
			allowed = append(allowed, "/home/u/"+name)
		}
		for _, key := range []string{
			"system_paths.read_only", "additional_executable_paths", "additional_read_only_paths",
			"additional_read_write_paths",
		} {
			for _, text := range s.user[0].Good.Values.List(key) {
				if path, err := s.host.Expand(text, ""); err == nil {
					allowed = append(allowed, filepath.Clean(path))
				}
			}
		}
		last := ""
		for _, rule := range compiled.Policy.Rules {
			if rule.Path != filepath.Clean(rule.Path) || !filepath.IsAbs(rule.Path) || rule.Path <= last {
				t.Fatalf("rule %q: not clean, not absolute or not in order", rule.Path)
			}
			last = rule.Path
			if !slices.Contains(allowed, rule.Path) {
				t.Fatalf("rule %q comes from nothing: %s", rule.Path, data)
			}
			if rule.Access == 0 || rule.Origin.Key == "" || rule.Origin.File == "" {
				t.Fatalf("rule %q: access %s, origin %s", rule.Path, rule.Access, rule.Origin)
			}
		}
	})
}

func TestMeetPatterns(t *testing.T) {
	t.Parallel()
	tests := []struct{ a, b, want []string }{
		{[]string{"A", "B"}, []string{"B", "C"}, []string{"B"}},
		{[]string{"A_*"}, []string{"A_B", "A_C_*", "D"}, []string{"A_B", "A_C_*"}},
		{[]string{"LD_*"}, []string{"LD_PRELOAD"}, nil},
		{[]string{"LD_PRELOAD"}, []string{"LD_*"}, nil},
		{[]string{"LD_*", "LD_PRELOAD"}, []string{"LD_*", "LD_PRELOAD"}, []string{"LD_*", "LD_PRELOAD"}},
		{[]string{"A*"}, []string{"A_*"}, []string{"A_*"}},
		{[]string{"A_*"}, []string{"B_*"}, nil},
		{nil, []string{"A"}, nil},
	}
	for _, test := range tests {
		if got := meetPatterns(test.a, test.b); !slices.Equal(got, test.want) {
			t.Errorf("%v and %v: %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

// A project without a settings file is not evaluated again; judgeFile would
// come to the same.
func TestJudge_WithoutAFileIsAsWithOneThatSaysNothing(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(meetTree)
	forPairs(t, 200, func(user, _ string) {
		s := snapshotOf(t, f, user, "")
		s.project = &source.State{File: projectFile}
		view := s.view()
		without := s.run(view, s.projectDir, asIgnored, document.KindTool, nil)
		short, full := s.judgeNoFile(view, without), s.judgeFile(view, without)
		for _, e := range []*evaluation{&short, &full} {
			e.alone.fsView = fsView{} // its functions cannot be compared
			if !reflect.DeepEqual(e.alone.policy, without.policy) {
				t.Errorf("alone is another policy with %s", user)
			}
			e.fsView, e.alone = fsView{}, nil
		}
		if !reflect.DeepEqual(short, full) {
			t.Errorf("with %s\nshort %+v\nfull  %+v", user, short, full)
		}
	})
}
