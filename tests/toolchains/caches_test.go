//go:build linux

package toolchains

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// cacheWorld is a world with a cache of npm that has one file.
func cacheWorld(t *testing.T) *harness.World {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.HomePath(".npm/_npx/tool"), "real\n")
	return w
}

// editor starts a sidecar with the toolchain node, and with these keys.
func editor(t *testing.T, w *harness.World, keys harness.Sandbox) *harness.Editor {
	t.Helper()
	block := harness.Sandbox{"toolchains": []string{"node"}}
	for key, value := range keys {
		block[key] = value
	}
	return harness.Start(t, w, harness.Options{Settings: harness.Defaults(block)})
}

// mustTool runs a command line as a tool, which must succeed.
func mustTool(t *testing.T, e *harness.Editor, line string) string {
	t.Helper()
	output, status := e.Tool(line)
	if status != 0 {
		t.Fatalf("%s: status %d:\n%s", line, status, output)
	}
	return output
}

const spoil = `echo evil >~/.npm/_npx/tool && rm -f ~/.npm/_npx/other && echo new >~/.npm/new`

// cacheCommand runs "sandbox-sidecar cache" in the world.
func cacheCommand(t *testing.T, w *harness.World, args ...string) (output string, failed bool) {
	t.Helper()
	command := exec.Command(harness.Binary(t), append([]string{"cache"}, args...)...)
	command.Env = harness.Environ(w)
	text, err := command.CombinedOutput()
	return harness.Unfold(string(text)), err != nil
}

// Two sidecars of a user run at once. Their sessions see what both write, and no
// program outside does.
func TestCaches_ArePrivate(t *testing.T) {
	t.Parallel()
	harness.Require(t, "toolchain_caches")
	w := cacheWorld(t)
	first := editor(t, w, nil)
	mustTool(t, first, spoil)
	second := editor(t, w, nil)
	if got := mustTool(t, second, "cat ~/.npm/_npx/tool ~/.npm/new && echo third >~/.npm/third"); got != "evil\nnew\n" {
		t.Errorf("a session of another sidecar reads %q", got)
	}
	if got := mustTool(t, first, "cat ~/.npm/third"); got != "third\n" {
		t.Errorf("the first sidecar's session reads %q", got)
	}
	if got := harness.Read(t, w.HomePath(".npm/_npx/tool")); got != "real\n" {
		t.Errorf("outside, the cache has %q", got)
	}
	if entries, err := os.ReadDir(w.HomePath(".npm")); err != nil || len(entries) != 1 {
		t.Errorf("outside, the cache has %v, %v", entries, err)
	}
	output, failed := cacheCommand(t, w, "clear")
	if !failed || !strings.Contains(output, "end your sandboxed sessions") {
		t.Errorf("clear while sessions may use it: %s", output)
	}
	harness.Write(t, w.HomePath(".npm/later"), "made outside\n")
	if got := mustTool(t, first, "cat ~/.npm/later"); got != "made outside\n" {
		t.Errorf("a session that starts later reads %q", got)
	}
}

// With "shared", programs outside see what a session writes.
func TestCaches_AreSharedIfTheUserWants(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := cacheWorld(t)
	mustTool(t, editor(t, w, harness.Sandbox{"toolchain_caches": "shared"}), spoil)
	if got := harness.Read(t, w.HomePath(".npm/_npx/tool")); got != "evil\n" {
		t.Errorf("outside, the cache has %q", got)
	}
	// A grant of the cache itself means the same.
	w = cacheWorld(t)
	mustTool(t, editor(t, w, harness.Sandbox{"additional_read_write_paths": []string{"~/.npm"}}), spoil)
	if got := harness.Read(t, w.HomePath(".npm/_npx/tool")); got != "evil\n" {
		t.Errorf("outside, the cache that is granted has %q", got)
	}
}

// What sessions have written outlives the sidecar, and is listed and cleared,
// whatever modes they have given it.
func TestCaches_AreListedAndCleared(t *testing.T) {
	t.Parallel()
	harness.Require(t, "toolchain_caches")
	w := cacheWorld(t)
	e := editor(t, w, nil)
	mustTool(t, e, spoil+" && mkdir -p ~/.npm/a/b/c && head -c 300000 /dev/zero >~/.npm/zeros && "+
		"chmod 0 ~/.npm/a/b ~/.npm/a")
	_ = e.HangUp() // its status says that nobody has shut it down
	e = editor(t, w, nil)
	if got := mustTool(t, e, "cat ~/.npm/new"); got != "new\n" {
		t.Errorf("after a restart a session reads %q", got)
	}
	_ = e.HangUp() // its status says that nobody has shut it down
	if output, _ := cacheCommand(t, w); !strings.Contains(output, "0.3 MB") ||
		!strings.Contains(output, w.HomePath(".npm")) {
		t.Errorf("cache lists:\n%s", output)
	}
	if output, failed := cacheCommand(t, w, "clear", "python"); failed ||
		!strings.Contains(output, "nothing to clear") {
		t.Errorf("cache clear python: %s", output)
	}
	if output, failed := cacheCommand(t, w, "clear", "no-such"); !failed || !strings.Contains(output, "no-such") {
		t.Errorf("cache clear no-such: %s", output)
	}
	if output, failed := cacheCommand(t, w, "clear", "node"); failed || !strings.Contains(output, "cleared") {
		t.Errorf("cache clear node: %s", output)
	}
	left, err := filepath.Glob(w.HomePath(".cache/sandbox-sidecar/overlays/*/upper/new"))
	if err != nil || len(left) > 0 {
		t.Errorf("cache clear has left %v, %v", left, err)
	}
	if got := mustTool(t, editor(t, w, nil), "cat ~/.npm/_npx/tool"); got != "real\n" {
		t.Errorf("after clear a session reads %q", got)
	}
}

// holders are the processes that hold overlays in a world.
func holders(w *harness.World) (pids []int) {
	for _, pid := range harness.Find("cache-holder") {
		dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "fd", "3"))
		if err == nil && strings.HasPrefix(dir, w.Home) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// If the process that holds the overlays is killed, sessions that start later
// cannot write the caches. The next sidecar has overlays again.
func TestCaches_AreReadOnlyWithoutTheirHolder(t *testing.T) {
	t.Parallel()
	harness.Require(t, "toolchain_caches")
	w := cacheWorld(t)
	e := editor(t, w, nil)
	mustTool(t, e, spoil)
	pids := holders(w)
	if len(pids) != 1 {
		t.Fatalf("%d processes hold overlays, want 1", len(pids))
	}
	harness.Must(t, unix.Kill(pids[0], unix.SIGKILL))
	harness.Eventually(t, "the end of the holder", func() bool { return !harness.Alive(pids[0]) })
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "echo again >~/.npm/_npx/tool"})
	if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode == 0 {
		t.Errorf("a session without overlays writes the cache: %s", s.Output())
	}
	if got := s.Sandbox.Protections["toolchain_caches"]; got.Status != "degraded" ||
		!strings.Contains(got.Detail, "restart your editor") {
		t.Errorf("the reply says %+v", got)
	}
	if got := harness.Read(t, w.HomePath(".npm/_npx/tool")); got != "real\n" {
		t.Errorf("outside, the cache has %q", got)
	}
	_ = e.HangUp() // its status says that nobody has shut it down
	if got := mustTool(t, editor(t, w, nil), "cat ~/.npm/_npx/tool"); got != "evil\n" {
		t.Errorf("the next sidecar's session reads %q", got)
	}
}

// A sidecar tries whether caches can have overlays, and no process stays for that.
// A session that has some starts one, also if it starts meanwhile.
func TestCaches_NoProcessWithoutASession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "toolchain_caches")
	w := cacheWorld(t)
	for round := range 5 {
		e := editor(t, w, nil)
		if round == 0 {
			harness.Eventually(t, "nobody holds overlays", func() bool { return len(holders(w)) == 0 })
		}
		s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "echo evil >~/.npm/_npx/tool"})
		if s.Exit(); s.Sandbox.Protections["toolchain_caches"].Status != protocol.Enforced {
			t.Errorf("a session has %+v", s.Sandbox.Protections["toolchain_caches"])
		}
		if got := len(holders(w)); got != 1 {
			t.Errorf("%d processes hold overlays", got)
		}
		_ = e.HangUp() // its status says that nobody has shut it down
	}
}

// The holder ends with the last sidecar.
func TestCaches_LeaveNoProcess(t *testing.T) {
	t.Parallel()
	harness.Require(t, "toolchain_caches")
	w := cacheWorld(t)
	first, second := editor(t, w, nil), editor(t, w, nil)
	mustTool(t, first, "true")
	mustTool(t, second, "true")
	if got := holders(w); len(got) != 1 {
		t.Errorf("two sidecars have %d holders", len(got))
	}
	_ = first.HangUp()
	mustTool(t, second, spoil)
	_ = second.HangUp()
	harness.Eventually(t, "the end of the holder", func() bool { return len(holders(w)) == 0 })
}

// Go's module cache has read-only directories. A session downloads a module,
// and another one builds with it. Outside there is none.
func TestCaches_GoModules(t *testing.T) {
	t.Parallel()
	harness.Require(t, "toolchain_caches")
	harness.RequirePrograms(t, "go")
	w := harness.NewWorldOutsideDefaults(t)
	proxy := filepath.Join(w.Outside, "example.org", "m", "@v")
	harness.Write(t, filepath.Join(proxy, "list"), "v1.0.0\n")
	harness.Write(t, filepath.Join(proxy, "v1.0.0.info"), `{"Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}`)
	harness.Write(t, filepath.Join(proxy, "v1.0.0.mod"), "module example.org/m\n")
	module(t, filepath.Join(proxy, "v1.0.0.zip"))
	harness.Write(t, w.ProjectPath("go.mod"), "module hello\n\ngo 1.21\n\nrequire example.org/m v1.0.0\n")
	harness.Write(t, w.ProjectPath("lib.go"), "package hello\n\nimport \"example.org/m\"\n\nconst Word = m.Word\n")
	e := harness.Start(t, w, harness.Options{
		Settings: harness.Defaults(harness.Sandbox{
			"toolchains": []string{"go"}, "additional_read_only_paths": []string{w.Outside},
			"allowed_env_vars": []string{"PATH", "HOME", "GOPROXY"},
		}),
		Env: []string{"PATH=" + harness.SearchPath},
	})
	const env = "export GOFLAGS=-mod=mod GONOSUMDB=* GONOSUMCHECK=1 GOSUMDB=off GOTOOLCHAIN=local; "
	mustTool(t, e, env+"GOPROXY='file://"+w.Outside+"' go mod download example.org/m")
	mustTool(t, e, env+"GOPROXY=off go build -o lib.a .")
	if _, err := os.Stat(w.HomePath("go/pkg/mod/example.org")); err == nil {
		t.Error("outside, the module is in the cache")
	}
	mustTool(t, e, env+"go clean -modcache && ! test -e ~/go/pkg/mod/example.org")
}

// module writes a module with one constant as a proxy has it.
func module(t *testing.T, path string) {
	t.Helper()
	var content bytes.Buffer
	archive := zip.NewWriter(&content)
	for name, text := range map[string]string{
		"go.mod": "module example.org/m\n", "m.go": "package m\n\nconst Word = 1\n",
	} {
		file, err := archive.Create("example.org/m@v1.0.0/" + name)
		harness.Must(t, err)
		_, err = file.Write([]byte(text))
		harness.Must(t, err)
	}
	harness.Must(t, archive.Close())
	harness.Write(t, path, content.String())
}
