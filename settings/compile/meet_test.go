package compile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func checkMeet(t testing.TB, f resolve.FS, user, project string) {
	t.Helper()
	checkMeetOf(t, snapshotOf(t, f, user, project), user, project)
}

func checkMeetOf(t testing.TB, s *Snapshot, user, project string) {
	t.Helper()
	g := s.view()
	// Without blocks for the kinds, what is granted does not depend on the kind.
	for i, kind := range []document.Kind{document.KindTerminal, document.KindTool} {
		alone := s.run(g, s.ProjectDir, asIgnored, kind, nil).policyFor(kind)
		narrow := s.run(g, s.ProjectDir, asTightening, kind, nil).policyFor(kind)
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

func TestMeet_AProjectNeverGrantsMoreThanTheUser(t *testing.T) {
	t.Parallel()
	harness.Once(t, "its files are in memory")
	f := resolvetest.InMemory(settingstest.Tree)
	settingstest.ForPairs(t, pairs(t, 3000), func(user, project string) { checkMeet(t, f, user, project) })
}

// The tree in memory behaves like a real one.
func TestMeet_OnARealTree(t *testing.T) {
	t.Parallel()
	real, memory := resolvetest.Tree(t, settingstest.Tree), resolvetest.InMemory(settingstest.Tree)
	settingstest.ForPairs(t, 200, func(user, project string) {
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
	f := resolvetest.InMemory(settingstest.Tree)
	settingstest.ForPairs(t, 200, func(user, _ string) {
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
	tree := resolvetest.Tree(f, settingstest.Tree)
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, []byte{9, 8, 7, 6, 5, 4, 3, 2, 1})
	f.Add([]byte{1, 1, 1, 1, 0, 1, 1, 4, 3, 10, 11, 12}, []byte{0, 1, 1, 0, 1, 3, 20, 30, 40})
	f.Fuzz(func(t *testing.T, user, project []byte) {
		checkMeet(t, tree, settingstest.ByBytes(user).Block(), settingstest.ByBytes(project).Block())
	})
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
			for _, text := range s.UserStates[0].Good.Values.List(key) {
				if path, err := s.Host.Expand(text, ""); err == nil {
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
	f := resolvetest.InMemory(settingstest.Tree)
	settingstest.ForPairs(t, 200, func(user, _ string) {
		s := snapshotOf(t, f, user, "")
		s.ProjectState = &source.State{File: projectFile}
		view := s.view()
		without := s.run(view, s.ProjectDir, asIgnored, document.KindTool, nil)
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
