package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
)

// cachePaths are the private caches below the home directory of a policy.
func (d *fixture) cachePaths() (paths []string, compiled compile.Result) {
	compiled = d.store.Snapshot(d.project).Compile(document.KindTool)
	for _, c := range compiled.Policy.Caches {
		// Others are made before every session.
		if path := strings.TrimPrefix(c.Path, d.home+"/"); path == ".npm" || path == ".yarn/berry" {
			paths = append(paths, path)
		}
	}
	return paths, compiled
}

func TestCaches_ArePrivateUnlessGranted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, user, project string
		want                []string
	}{
		{"by default", `"toolchains": ["node"]`, ``, []string{".npm", ".yarn/berry"}},
		{"shared", `"toolchains": ["node"], "toolchain_caches": "shared"`, ``, nil},
		{
			"a project cannot share", `"toolchains": ["node"]`, `"toolchain_caches": "shared"`,
			[]string{".npm", ".yarn/berry"},
		},
		{
			"a project can tighten", `"toolchains": ["node"], "toolchain_caches": "shared"`,
			`"toolchain_caches": "private"`,
			[]string{".npm", ".yarn/berry"},
		},
		{
			"one is granted", `"toolchains": ["node"], "additional_read_write_paths": ["~/.npm"]`, ``,
			[]string{".yarn/berry"},
		},
		{
			"one is below a grant", `"toolchains": ["node"], "additional_read_write_paths": ["~/.yarn"]`, ``,
			[]string{".npm"},
		},
		{
			"a part of one is granted", `"toolchains": ["node"], "additional_read_write_paths": ["~/.npm/_logs"]`, ``,
			[]string{".yarn/berry"},
		},
		{"without toolchains", ``, ``, nil},
	} {
		d := newFixture(t)
		for _, dir := range []string{".npm/_logs", ".yarn/berry", "project"} {
			d.must(os.MkdirAll(filepath.Join(d.home, dir), 0o700))
		}
		d.write(d.own, strings.ReplaceAll(`{"terminal": {"sandbox": {"enabled": true, `+test.user+`}}}`, ", }", "}"))
		if test.project != "" {
			d.write(filepath.Join(d.project, ".zed/settings.json"), `{"terminal": {"sandbox": {`+test.project+`}}}`)
		}
		d.open(nil)
		if got, _ := d.cachePaths(); !slices.Equal(got, test.want) {
			t.Errorf("%s: private are %q, want %q", test.name, got, test.want)
		}
	}
}

// A cache in the project is written by sessions and used outside. That is said.
func TestCaches_InTheProjectAreNot(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	inside := filepath.Join(d.project, "cache")
	d.must(os.MkdirAll(inside, 0o700))
	d.must(os.Symlink(inside, filepath.Join(d.home, ".npm")))
	// Without /tmp, where the test's home directory is.
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "toolchains": ["node"], `+
		`"system_paths": {"read_write": []}}}}`)
	d.open(nil)
	got, compiled := d.cachePaths()
	if want := []string{".yarn/berry"}; !slices.Equal(got, want) { // which is made
		t.Errorf("private are %q, want %q", got, want)
	}
	if !slices.ContainsFunc(compiled.Diagnostics, func(f document.FileDiagnostic) bool {
		return f.Key == "toolchains" && strings.Contains(f.Message, "it is in the project")
	}) {
		t.Errorf("no diagnostic: %v", compiled.Diagnostics)
	}
}

// What sessions have written lies in a directory that no grant opens, to no
// session: not to one without toolchains either.
func TestCaches_TheirDirectoryIsProtected(t *testing.T) {
	t.Parallel()
	for name, toolchains := range map[string]string{"with toolchains": `["node"]`, "without": `[]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testCacheDirectory(t, toolchains)
		})
	}
}

func testCacheDirectory(t *testing.T, toolchains string) {
	t.Helper()
	d := newFixture(t)
	d.must(os.MkdirAll(filepath.Join(d.home, ".cache"), 0o700))
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "toolchains": `+toolchains+`,
		"additional_read_write_paths": ["~/.cache", "~/.cache/sandbox-sidecar"]}}}`)
	d.open(nil)
	_, compiled := d.cachePaths()
	dir := filepath.Join(d.home, ".cache/sandbox-sidecar")
	d.must(compiled.MakeDirs())
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
	if !slices.ContainsFunc(compiled.Policy.Protected, func(p policy.Protected) bool {
		return p.Path == dir && p.Decides
	}) {
		t.Error("the directory is not protected")
	}
	if slices.ContainsFunc(compiled.Policy.Rules, func(r policy.Rule) bool { return r.Path == dir }) {
		t.Error("the directory is granted")
	}
}

func TestToolchains_MakeTheirCaches(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, `{"terminal": {"sandbox": {"enabled": true, "apply_to": "tool", "toolchains": ["go", "c"]}}}`)
	d.open(nil)
	cache := filepath.Join(d.home, ".cache/go-build")
	terminal := d.store.Snapshot("").Compile(document.KindTerminal)
	must(t, terminal.MakeDirs())
	if _, err := os.Stat(cache); err == nil {
		t.Error("an unrestricted session needs no directories made")
	}
	tool := d.store.Snapshot("").Compile(document.KindTool)
	must(t, tool.MakeDirs())
	info, err := os.Stat(cache)
	must(t, err)
	if !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
	x, err := explain.Why(d.store.Snapshot(""), document.KindTool, explain.Write, cache+"/x")
	if err != nil || !x.Allowed ||
		x.Key != "toolchains" {
		t.Errorf("explained: %+v, %v", x, err)
	}
	must(t, os.RemoveAll(filepath.Join(d.home, ".cache")))
	d.write(filepath.Join(d.home, ".cache"), "a file")
	tool = d.store.Snapshot("").Compile(document.KindTool)
	if err := tool.MakeDirs(); err == nil || !strings.Contains(err.Error(), "make a directory that sessions need") {
		t.Errorf("in the way of a file: %v", err)
	}
}
