//go:build linux

package toolchains

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// proof is a command line that works in a sandbox with a toolchain, and not
// without.
type proof struct {
	toolchain string
	// needs are programs that must be on the machine.
	needs []string
	// prepare makes files, by path: "project/…" or "home/…".
	prepare map[string]string
	// before is a command line that the user runs outside, in the project.
	before string
	line   string
	prints string
	// refused is part of the output without the toolchain. readOnly replaces it
	// if the session has a file tree of its own; "" is the same.
	refused, readOnly string
}

func (p proof) run(t *testing.T) {
	t.Helper()
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, p.needs...)
	output, status, fileTree := p.try(t, harness.Sandbox{})
	refused := p.refused
	if fileTree && p.readOnly != "" {
		refused = p.readOnly
	}
	if status == 0 || !strings.Contains(output, refused) {
		t.Errorf("control: without the toolchain: status %d, want a failure that says %q:\n%s", status, refused, output)
	}
	output, status, _ = p.try(t, harness.Sandbox{"toolchains": []string{p.toolchain}})
	if status != 0 || !strings.Contains(output, p.prints) {
		t.Errorf("with the toolchain: status %d, want %q:\n%s", status, p.prints, output)
	}
}

func (p proof) try(t *testing.T, keys harness.Sandbox) (output string, status int, fileTree bool) {
	t.Helper()
	// Not below a temporary directory, which sessions may write by default.
	w := harness.NewWorldOutsideDefaults(t)
	if err := os.Mkdir(filepath.Join(w.Home, ".cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range p.prepare {
		path := filepath.Join(filepath.Dir(w.Home), name)
		harness.Write(t, path, content)
		if strings.HasPrefix(content, "#!") {
			if err := os.Chmod(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p.before != "" {
		command := exec.Command("/bin/sh", "-ec", p.before)
		command.Dir = w.Project
		command.Env = append(harness.Environ(w), "PATH="+harness.SearchPath)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("outside: %v\n%s", err, output)
		}
	}
	e := harness.Start(t, w, harness.Options{
		Settings: harness.Defaults(keys),
		Env:      []string{"PATH=" + harness.SearchPath},
	})
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: p.line})
	exit := session.Exit()
	fileTree = session.Sandbox.Protections["file_tree"].Status == protocol.Enforced
	if exit.ExitCode == nil {
		return session.Output(), -1, fileTree
	}
	return session.Output(), *exit.ExitCode, fileTree
}

// Builds a package. The build cache lies in the home directory, and is made if
// it does not exist. The package imports nothing, because a program would
// compile Go's whole runtime.
func TestGo(t *testing.T) {
	proof{
		toolchain: "go", needs: []string{"go"},
		prepare: map[string]string{
			"project/go.mod": "module hello\n\ngo 1.21\n",
			"project/lib.go": "package hello\n\nfunc Word() string { return \"built by go\" }\n",
		},
		line:   "go build -o lib.a . && grep -ao 'built by go' lib.a && ls \"$HOME/.cache/go-build\"",
		prints: "built by go", refused: "permission denied", readOnly: "read-only file system",
	}.run(t)
}

// Builds a program that depends on a crate from git, which cargo puts below its
// home.
func TestRust(t *testing.T) {
	proof{
		toolchain: "rust", needs: []string{"cargo", "rustc", "git"},
		prepare: map[string]string{
			"project/dep/Cargo.toml": "[package]\nname = \"dep\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"project/dep/src/lib.rs": "pub fn word() -> &'static str { \"built by cargo\" }\n",
			"project/src/main.rs":    "fn main() { println!(\"{}\", dep::word()); }\n",
			"home/.cargo/config":     "[net]\nretry = 0\n",
		},
		before: "git init -q dep; cd dep; git add .; git -c user.name=a -c user.email=a@b commit -qm a; cd ..; " +
			"printf '[package]\\nname = \"app\"\\nversion = \"0.1.0\"\\nedition = " +
			"\"2021\"\\n[dependencies]\\ndep = { git = \"file://%s/dep\" }\\n' \"$PWD\" >Cargo.toml",
		line: "cargo run --quiet", prints: "built by cargo", refused: "ermission denied",
	}.run(t)
}

// Installs a package from a file. npm writes to its cache, and makes it if it
// does not exist.
func TestNode(t *testing.T) {
	proof{
		toolchain: "node", needs: []string{"node", "npm"},
		prepare: map[string]string{
			"project/dep/package.json": `{"name": "dep", "version": "1.0.0", "main": "dep.js"}`,
			"project/dep/dep.js":       `module.exports = "installed by npm"`,
			"project/package.json":     `{"name": "app", "version": "1.0.0", "private": true}`,
			"home/.npmrc":              "//registry.npmjs.org/:_authToken=secret\n",
		},
		before: "tar czf dep.tgz dep",
		line: "npm install --offline --no-audit --no-fund --no-update-notifier ./dep.tgz && node -e " +
			"'console.log(require(\"dep\"))'",
		prints: "installed by npm", refused: "EACCES",
		readOnly: "ENOENT", // Node does not know EROFS from mkdir(2)
	}.run(t)
}

// Imports a package and runs a program that the user installed in the home
// directory.
func TestPython(t *testing.T) {
	proof{
		toolchain: "python", needs: []string{"python3"},
		prepare: map[string]string{
			"home/.local/bin/hello": "#!/usr/bin/python3\nimport installed\nprint(installed.word)\n",
		},
		before: `dir=$(python3 -c 'import site; print(site.getusersitepackages())'); mkdir -p "$dir"; echo 'word = ` +
			`"imported by python"' >"$dir/installed.py"`,
		line:    `"$HOME/.local/bin/hello" && echo cached >"$HOME/.cache/pip/x"`,
		prints:  "imported by python",
		refused: "ermission denied",
	}.run(t)
}

// Compiles against a library in Maven's repository, and puts one there.
func TestJava(t *testing.T) {
	proof{
		toolchain: "java", needs: []string{"javac", "java", "jar"},
		prepare: map[string]string{
			"home/.m2/repository/lib/Dep.java": "public class Dep { public static String word() { return \"built by " +
				"javac\"; } }\n",
			"project/App.java": "public class App { public static void main(String[] a) { " +
				"System.out.println(Dep.word()); } }\n",
		},
		before: `javac -d "$HOME/.m2/repository/lib" "$HOME/.m2/repository/lib/Dep.java"`,
		line: `R=$HOME/.m2/repository; javac -cp "$R/lib" -d . App.java && java -cp "$R/lib:." App && ` +
			`jar cf "$R/app.jar" App.class`,
		prints: "built by javac", refused: "Dep",
	}.run(t)
}

// Uses a gem that the user installed.
func TestRuby(t *testing.T) {
	proof{
		toolchain: "ruby", needs: []string{"ruby", "gem"},
		prepare: map[string]string{
			"project/dep/dep.gemspec": "Gem::Specification.new { |s| s.name = 'dep'; s.version = '1.0.0'; " +
				"s.summary = 'x'; s.authors = ['a']; s.files = ['lib/dep.rb'] }\n",
			"project/dep/lib/dep.rb": "module Dep; WORD = 'required by ruby'; end\n",
		},
		before: "cd dep; gem build -q dep.gemspec; gem install -q --local --user-install --no-document dep-1.0.0.gem",
		line:   "ruby -e 'gem \"dep\"; require \"dep\"; puts Dep::WORD'",
		prints: "required by ruby", refused: "dep",
	}.run(t)
}

// Runs a program that composer installed for the user, and writes composer's
// cache.
func TestPHP(t *testing.T) {
	proof{
		toolchain: "php", needs: []string{"php"},
		prepare: map[string]string{
			"home/.composer/vendor/bin/hello": "#!/usr/bin/env php\n<?php require __DIR__ . '/../dep.php'; " +
				"file_put_contents(getenv('HOME') . '/.cache/composer/x', 'x') or exit(1); echo word();\n",
			"home/.composer/vendor/dep.php":      "<?php function word() { return \"run by php\\n\"; }\n",
			"home/.composer/auth.json":           `{"http-basic": {}}`,
			"home/.composer/vendor/autoload.php": "<?php\n",
		},
		line: `"$HOME/.composer/vendor/bin/hello"`, prints: "run by php", refused: "ermission denied",
	}.run(t)
}

// Compiles through ccache, twice. The second time comes from the cache.
func TestC(t *testing.T) {
	proof{
		toolchain: "c", needs: []string{"gcc", "ccache"},
		prepare: map[string]string{"project/main.c": "#include <stdio.h>\nint main(void) { puts(\"built by gcc\"); " +
			"return 0; }\n"},
		line: "ccache gcc -c main.c -o a.o && ccache gcc -c main.c -o b.o && gcc a.o -o app && ./app && " +
			"ccache --print-stats | grep -E '^(direct|preprocessed)_cache_hit.[1-9]'",
		prints: "built by gcc", refused: "ermission denied",
		readOnly: "Read-only file system",
	}.run(t)
}

// Evaluates an expression and adds a file to a store in Nix's cache. The
// machine need not have a store of its own.
func TestNix(t *testing.T) {
	proof{
		toolchain: "nix", needs: []string{"nix-instantiate", "nix-store"},
		prepare: map[string]string{"project/word": "x"},
		line: `S=$HOME/.cache/nix/root; nix-instantiate --store "$S" --eval -E '"evaluated by ${"nix"}"' && ` +
			`nix-store --store "$S" --add word && ls "$S/nix/store"`,
		prints: "evaluated by nix", refused: "ermission denied",
		readOnly: "Read-only file system",
	}.run(t)
}

// Runs the SDK.
func TestDotNet(t *testing.T) {
	proof{
		toolchain: "dotnet", needs: []string{"dotnet"},
		line: "dotnet new console -o app && dotnet run --project app", prints: "Hello, World!", refused: "denied",
	}.run(t)
}
