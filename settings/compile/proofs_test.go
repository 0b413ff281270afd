package compile

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// otherProject is what a project of somebody's may hold, and proves nothing.
var otherProject = []string{
	"README", "README.md", "LICENSE", "VERSION", "package.json", "go.mod", "Cargo.toml", "composer.json", "config.toml",
	"config.json", "settings.yml", "settings.toml", "auth.json", "global.conf", "CACHEDIR.TAG", ".htaccess", ".env",
	".lock", ".git/config", ".venv/pyvenv.cfg", "venv/pyvenv.cfg", "src/main.go", "pkg/mod/mod.go", "bin/run",
	"bin/deploy", "lib/x", "vendor/composer/x", "vendor/bundle/x", "node_modules/x/x", "toolchains/x/BUILD",
	"versions/v1/x", "tools/x/x", "dotnet/x", "go/bin/x", "java/x", "pnpm/package.json", "store/index.ts",
	"global/x", "specifications/api.md", "doc/x", "gems/x", "cache/x", "caches/x", "registry/main.go", "git/x",
	"sessions/x", "projects/x", "session/x", "log/x", "tmp/x", "temp/x", "http/server.go", "remote/x", "deps/x",
	"npm/x", "gen/x", "v1/api.go", "p/x", "profiles/x", "wheels/x", "repo/x", "files/x", "extensions/x", "host/x",
	"sdk/x", "usr/bin/x", "Contents/x", "conda-meta.txt", "store/vuex.js",
	"a/b/x", "selfcheck/x", "http-v2/x", "http/a/x", "archive-v2/x", "wheels-v1/x", "simple-v1/x", "remote/https/x/y",
	"deps/https/x/y", "microsoft.x/x/x", "newtonsoft.json/x", "v1/npm/x/y", "v1/pnpm/x", "host/fxr/x/y",
	"specifications/default/x", "session-state/x/y", "history-session-state/x", "sessions/2024/x/y", "update-hashes/x",
	"bin/pnpm", "store/v10/x", "env/conda-meta/history", "miniconda3/conda-meta/history",
	"lib/node_modules/typescript/package.json", "lib/node_modules/pnpm/package.json",
	"lib/node_modules/yarn/package.json", "lib/node_modules/x/package.json", "cache/repo/x", "cache/files/x",
}

// movable are the places that variables move on a platform, one for each
// variable and toolchain.
func movable(platform string) map[string]toolchain.Place {
	list := map[string]toolchain.Place{}
	for _, t := range toolchain.All {
		for _, p := range t.Places {
			if p.Variable != "" && !p.Public && (p.Platform == "" || p.Platform == platform) {
				list[t.Name+" "+p.Variable] = p
			}
		}
	}
	return list
}

// TestProofs_EveryVariableThatMovesAPlaceNeedsOne checks the table.
func TestProofs_EveryVariableThatMovesAPlaceNeedsOne(t *testing.T) {
	t.Parallel()
	for _, platform := range []string{"linux", "darwin"} {
		for name, p := range movable(platform) {
			if len(p.Proof()) == 0 {
				t.Errorf("%s: any directory would be granted", name)
			}
			for _, proof := range p.Proof() {
				file := strings.TrimSuffix(proof, "/")
				if filepath.Clean(file) != file || !filepath.IsLocal(file) || strings.Trim(file, "*/") == "" {
					t.Errorf("%s: proof %q", name, proof)
				}
				if slices.Contains(otherProject, file) {
					t.Errorf("%s: %q is what any project has", name, proof)
				}
			}
		}
	}
}

// withVariable compiles a policy with a toolchain for a session whose
// environment has a variable.
func withVariable(t *testing.T, f resolve.FS, name, variable, value string) Result {
	t.Helper()
	s := snapshotOf(t, f, fmt.Sprintf(`{"enabled": true, "toolchains": [%q]}`, name), "")
	s.Host.Env[variable] = value
	return s.Compile(document.KindTool)
}

// TestProofs_NoVariableOpensAnotherProject is a line in the .env or .envrc of a
// project that names another project's directory, for each variable.
func TestProofs_NoVariableOpensAnotherProject(t *testing.T) {
	t.Parallel()
	other := map[string]string{"/home/u/project/": "", "/home/u/empty/": ""}
	for _, name := range otherProject {
		other["/home/u/work/other/"+name] = "x"
	}
	f := resolvetest.InMemory(other)
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		for _, dir := range []string{"/home/u/work/other", "/home/u/work", "/home/u/empty"} {
			c := withVariable(t, f, name, variable, dir)
			for _, path := range []string{
				dir, filepath.Join(dir, p.Below), dir + "/.env", dir + "/bin/run", dir + "/other/bin",
			} {
				if got := accessOf(c, path); got != "none" {
					t.Errorf("%s=%s: %s: %s", variable, dir, path, got)
				}
			}
			want := fmt.Sprintf("the variable %s is %q: not granted, because it holds no %q", variable, dir, p.Proof()[0])
			if got := strings.Count(said(c, userFile), want); got != 1 {
				t.Errorf("%d notes, want one of %s:\n%s", got, want, said(c, userFile))
			}
		}
	}
}

// TestProofs_EachProofIsEnough is the control: a directory of one's own with
// any of the proofs is granted, and the note is gone.
func TestProofs_EachProofIsEnough(t *testing.T) {
	t.Parallel()
	for key, p := range movable("linux") {
		name, variable, _ := strings.Cut(key, " ")
		for _, proof := range p.Proof() {
			path := "/data/own/" + strings.NewReplacer("[0-9]", "1", "[0-9a-f]", "a", "*", "1").Replace(proof)
			f := resolvetest.InMemory(map[string]string{
				path: "", filepath.Join("/data/own", p.Below) + "/": "", "/home/u/project/": "",
			})
			c := withVariable(t, f, name, variable, "/data/own")
			if got := accessOf(c, filepath.Join("/data/own", p.Below, "x")); got == "none" {
				t.Errorf("%s with %s: not granted:\n%s", variable, proof, said(c, userFile))
			}
			if strings.Contains(said(c, userFile), "it holds no") {
				t.Errorf("%s with %s:\n%s", variable, proof, said(c, userFile))
			}
		}
	}
}

// TestProofs_AUsualPlaceNeedsNone has variables name places that the toolchain
// grants in any case.
func TestProofs_AUsualPlaceNeedsNone(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(map[string]string{
		"/home/u/.cargo/bin/": "", "/home/u/.virtualenvs/x/": "", "/home/u/.jdks/21/": "",
		"/home/u/.gem/ruby/3.2.0/": "",
		"/home/u/go/bin/":          "", "/home/u/project/": "", "/home/u/link": "-> .virtualenvs/x",
		"/home/u/away":         "-> work/other",
		"/home/u/work/other/x": "",
	})
	for _, row := range []struct{ toolchain, variable, value, access string }{
		{"rust", "CARGO_HOME", "/home/u/.cargo", ""},
		{"python", "VIRTUAL_ENV", "/home/u/.virtualenvs/x", "read,execute"},
		{"python", "VIRTUAL_ENV", "/home/u/link", "read,execute"},
		{"java", "JAVA_HOME", "/home/u/.jdks/21", "read,execute"},
		{"ruby", "GEM_HOME", "/home/u/.gem/ruby/3.2.0", "read,execute"},
		{"go", "GOBIN", "/home/u/go/bin", "read,execute"},
		{"c", "CCACHE_DIR", "/home/u/.cache/ccache", "read,write,execute"},
	} {
		c := withVariable(t, f, row.toolchain, row.variable, row.value)
		if strings.Contains(said(c, userFile), "it holds no") {
			t.Errorf("%s=%s:\n%s", row.variable, row.value, said(c, userFile))
		}
		real, err := filepath.EvalSymlinks(row.value)
		if err != nil {
			real = strings.Replace(row.value, "/home/u/link", "/home/u/.virtualenvs/x", 1)
		}
		if got := accessOf(c, real); row.access != "" && got != row.access {
			t.Errorf("%s=%s: %s", row.variable, row.value, got)
		}
	}
	// A link with a usual name is no usual place, nor is one that may only be
	// executed a place for a cache.
	for _, row := range []struct{ toolchain, variable, value string }{
		{"python", "VIRTUAL_ENV", "/home/u/away"},
		{"go", "GOMODCACHE", "/home/u/go/bin"},
	} {
		c := withVariable(t, f, row.toolchain, row.variable, row.value)
		if !strings.Contains(said(c, userFile), "it holds no") ||
			accessOf(c, "/home/u/work/other/x") != "none" || accessOf(c, "/home/u/go/bin/x") == "read,write,execute" {
			t.Errorf("%s=%s:\n%s", row.variable, row.value, said(c, userFile))
		}
	}
	// What is not there and is not made is nothing to tell.
	if c := withVariable(t, f, "java", "JAVA_HOME", "/nowhere"); strings.Contains(said(c, userFile), "JAVA_HOME") {
		t.Errorf("diagnostics:\n%s", said(c, userFile))
	}
}

// TestProofs_OfRealTools asks real tools for their directories.
func TestProofs_OfRealTools(t *testing.T) {
	t.Parallel()
	view := fsView{View: resolve.NewView(resolve.OS), listed: map[string][]string{}, moving: &moving{}}
	proves := func(variable, dir string) {
		t.Helper()
		for key, p := range movable("linux") {
			if _, of, _ := strings.Cut(key, " "); of != variable {
				continue
			}
			if proved, doubtful := view.proves(dir, p); !proved {
				t.Errorf("%s=%s is not proved: %q", variable, dir, doubtful)
			}
		}
	}
	for _, variable := range []string{"GOROOT", "GOCACHE", "GOMODCACHE"} {
		out, err := exec.Command("go", "env", variable).Output()
		must(t, err)
		proves(variable, strings.TrimSpace(string(out)))
	}
	if proved, _ := view.proves(t.TempDir(), movable("linux")["go GOROOT"]); proved {
		t.Error("control: an empty directory is proved")
	}
}
