//go:build linux

package denials

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// mostRounds is how many runs of learn a tool may need: one until its cache is
// refused, and one to its end.
const mostRounds = 2

// lessons is how many there are. They take turns.
const lessons = 3

// lesson is a small project that fails with the default settings, and works
// with what learn prints.
type lesson struct {
	// needs are programs that must be on the machine.
	needs []string
	// turn is when it runs, if lessons take turns.
	turn int
	// prepare makes files, by path: "project/…", "home/…" or "outside/…".
	prepare map[string]string
	// before is a command line that the user runs outside, in the project.
	before string
	line   string
	prints string
	// refused is part of the output with the default settings, as a regular
	// expression. readOnly replaces it if the session has a file tree of its
	// own; "" is the same.
	refused   string
	readOnly  string
	toolchain string
	// outside are the paths that the settings may name for reading, besides the
	// system's.
	outside []string
	// noted is part of what learn explains but does not suggest; "" if there is
	// nothing.
	noted string
}

func (l lesson) run(t *testing.T) {
	t.Helper()
	t.Parallel()
	if !harness.Turn(t, l.turn, lessons) {
		t.Skip("another lesson has its turn")
	}
	requireReports(t)
	s := &scene{harness.NewSceneIn(t, harness.NewWorldOutsideDefaults(t), "")}
	s.prepare(l)
	refused := l.refused
	try := func(settings string) (e *editor, output string, status int) {
		s.forget(l)
		e = s.start(settings, nil)
		session, status, _ := e.tool("/bin/sh", "-c", "PATH="+harness.SearchPath+"; "+l.line)
		if l.readOnly != "" && session.Sandbox.Protections["file_tree"].Status == protocol.Enforced {
			refused = l.readOnly
		}
		return e, session.Output(), status
	}
	_, output, status := try(harness.Defaults(nil))
	if status == 0 || !regexp.MustCompile(refused).MatchString(output) {
		t.Fatalf("control: with the default settings: status %d, want a failure that says %q:\n%s", status,
			refused, output)
	}
	// A refusal while learn runs may end the tool before it has tried
	// everything.
	learnt := learnt{status: -1, text: harness.Defaults(nil)}
	for rounds := 0; learnt.status != 0; rounds++ {
		if rounds == mostRounds {
			t.Fatalf("it fails after %d lessons: status %d\n%s\n%s", rounds, learnt.status, learnt.text, learnt.said)
		}
		s.forget(l)
		learnt = s.learn(learnt.text, "/bin/sh", "-c", "PATH="+harness.SearchPath+"; "+l.line)
		t.Logf("learnt %s\n%s", learnt.text, learnt.said)
	}
	e, output, status := try(learnt.text)
	if status != 0 || !strings.Contains(output, l.prints) {
		t.Fatalf("with what was learnt: status %d, want %q:\n%s\nlearnt\n%s\n%s", status, l.prints, output, learnt.text,
			learnt.said)
	}
	s.judge(l, learnt, e)
}

// prepare makes the project and the files around it.
func (s *scene) prepare(l lesson) {
	s.T.Helper()
	harness.RequirePrograms(s.T, l.needs...)
	for name, content := range l.prepare {
		harness.Write(s.T, filepath.Join(filepath.Dir(s.Home), name), content)
	}
	command := exec.Command("/bin/sh", "-ec", l.before)
	command.Dir, command.Env = s.Project, append(harness.Environ(s.World), "PATH="+harness.SearchPath)
	if output, err := command.CombinedOutput(); err != nil {
		s.T.Fatalf("outside: %v\n%s", err, output)
	}
	harness.Write(s.T, filepath.Join(s.Home, ".ssh", "id"), "secret key\n")
}

// forget empties the home, so that each run is a first one, without a cache and
// without private directories of earlier sessions.
func (s *scene) forget(l lesson) {
	s.T.Helper()
	entries, err := os.ReadDir(s.Home)
	if err != nil {
		s.T.Fatal(err)
	}
	for _, entry := range entries {
		// The sidecar's own files are in use.
		if name := entry.Name(); name != ".ssh" && name != ".local" &&
			!slices.ContainsFunc(slices.Collect(maps.Keys(l.prepare)), func(path string) bool {
				return strings.HasPrefix(path+"/", "home/"+name+"/")
			}) {
			if err := os.RemoveAll(filepath.Join(s.Home, name)); err != nil {
				s.T.Fatal(err)
			}
		}
	}
}

// judge checks that the printed settings are minimal. e is an editor with them.
func (s *scene) judge(l lesson, learnt learnt, e *editor) {
	s.T.Helper()
	if got := learnt.list("toolchains"); !slices.Equal(got, []string{l.toolchain}) {
		s.T.Errorf("toolchains is %q, want %q alone", got, l.toolchain)
	}
	for _, key := range []string{"additional_read_write_paths", "additional_executable_paths", "allowed_unix_sockets"} {
		if got := learnt.list(key); len(got) > 0 {
			s.T.Errorf("%s is %q, want none", key, got)
		}
	}
	world, named := filepath.Dir(s.Home), []string{}
	for _, path := range learnt.list("additional_read_only_paths") {
		switch below, err := filepath.Rel(world, path); {
		case err == nil && filepath.IsLocal(below):
			named = append(named, below)
		case !strings.HasPrefix(path, "/usr/") && !strings.HasPrefix(path, "/etc/"):
			s.T.Errorf("it names %q, which is neither the test's nor the system's", path)
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, l.outside) {
		s.T.Errorf("for reading it names %q, want %q", named, l.outside)
	}
	if !strings.Contains(learnt.said, l.noted) ||
		strings.Count(learnt.said, "not allowed by these settings: ") != min(1, len(l.noted)) {
		s.T.Errorf("it must say that it does not offer %q, and of nothing else:\n%s", l.noted, learnt.said)
	}
	// Nothing else has become open.
	if open := e.opened(s, map[string][]string{
		"read":  {filepath.Join(s.Home, ".ssh", "id"), s.OutsidePath("private")},
		"write": {s.OutsidePath("lib"), s.UserSettings(), filepath.Join(s.Home, ".config"), filepath.Join(s.Home, "x")},
	}); len(open) > 0 {
		s.T.Errorf("the block opens %v", open)
	}
}

// Installs a package that npm pack has made and one from a directory elsewhere,
// and runs scripts of the project. npm writes to its cache. It looks for a
// registry's token, but does not need one.
func TestLearnOnNpm(t *testing.T) {
	lesson{
		needs: []string{"node", "npm"}, turn: 0,
		prepare: map[string]string{
			"project/dep/package.json": `{"name": "dep", "version": "1.0.0", "main": "dep.js"}`,
			"project/dep/dep.js":       `module.exports = "installed by npm, "`,
			"outside/lib/package.json": `{"name": "lib", "version": "1.0.0", "main": "lib.js"}`,
			"outside/lib/lib.js":       `module.exports = "linked"`,
			"outside/private":          "private\n",
			"project/package.json": `{"name": "app", "version": "1.0.0", "private": true, ` +
				`"scripts": {"postinstall": "node made.js", "test": "node test.js"},` +
				`"dependencies": {"dep": "file:dep-1.0.0.tgz", "lib": "file:../outside/lib"}}`,
			"project/made.js": `require("fs").writeFileSync("made", " and made")`,
			"project/test.js": `console.log(require("dep") + require("lib") + require("fs").readFileSync("made"))`,
			"project/.npmrc":  "offline=true\nupdate-notifier=false\naudit=false\nfund=false\n",
			"home/.npmrc":     "//registry.npmjs.org/:_authToken=secret\n",
		},
		before: "cd dep; npm pack --pack-destination .. >/dev/null; rm -rf ~/.npm",
		line:   "rm -f made; npm install && npm test", prints: "installed by npm, linked and made", refused: "EACCES",
		readOnly: "ENOENT", toolchain: "node", outside: []string{
			"outside/lib/lib.js",
			"outside/lib/package.json",
		}, noted: "tokens of package registries",
	}.run(t)
}

// Builds a package with one from a directory elsewhere. The build cache is
// made. Neither package imports anything, because a program would compile Go's
// whole runtime.
func TestLearnOnGo(t *testing.T) {
	lesson{
		needs: []string{"go"}, turn: 1,
		prepare: map[string]string{
			"project/go.mod": "module example.com/app\n\ngo 1.21\n\nrequire example.com/lib v0.0.0\n\nreplace " +
				"example.com/lib => ../outside/lib\n",
			"project/app.go": "package app\n\nimport \"example.com/lib\"\n\n" +
				"func Word() string { return lib.Word() }\n",
			"outside/lib/go.mod": "module example.com/lib\n\ngo 1.21\n",
			"outside/lib/lib.go": "package lib\n\nfunc Word() string { return \"built by go\" }\n",
			"outside/private":    "private\n",
		},
		line: "go vet . && go build -o app.a . && grep -ao example.com/lib app.a && test -d ~/.cache/go-build/00",
		// Which of both it meets first depends on its threads.
		prints: "example.com/lib", refused: "permission denied|read-only file system",
		toolchain: "go", outside: []string{"outside/lib"},
	}.run(t)
}

// Runs tests with temporary files that use a module of the user's and one from
// a directory elsewhere.
func TestLearnOnPytest(t *testing.T) {
	lesson{
		needs: []string{"pytest-3", "python3"}, turn: 2,
		prepare: map[string]string{
			"project/test_app.py": "import installed, lib\n\ndef test_words(tmp_path):\n    (tmp_path / " +
				"'x').write_text('x')\n    assert installed.word + lib.word == 'ab'\n",
			"project/pytest.ini": "[pytest]\npythonpath = ../outside/lib\n",
			"outside/lib/lib.py": "word = 'b'\n",
			"outside/private":    "private\n",
		},
		before: `dir=$(python3 -c 'import site; print(site.getusersitepackages())'); mkdir -p "$dir"; echo "word = 'a'" ` +
			`>"$dir/installed.py"`,
		line: "pytest-3 -q -p no:cacheprovider --basetemp=temporary", prints: "1 passed",
		refused: "ModuleNotFoundError", toolchain: "python", outside: []string{"outside/lib"},
	}.run(t)
}
