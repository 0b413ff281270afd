//go:build linux

package toolchains

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A cache that is a symlink into the project is what the project's sessions
// write anyway. The settings say who uses it.
func TestCaches_ASymlinkIntoTheProject(t *testing.T) {
	t.Parallel()
	harness.Require(t, "toolchain_caches")
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.ProjectPath("npm/_npx/tool"), "real\n")
	harness.Must(t, os.Symlink(w.ProjectPath("npm"), w.HomePath(".npm")))
	e := editor(t, w, nil)
	reply := harness.Call(e, protocol.PolicyGet, protocol.PolicyGetParams{ProjectDir: w.Project, Kind: protocol.Tool})
	warned := false
	for _, d := range reply.Policy.Diagnostics {
		warned = warned || d.Key == "toolchains" && strings.Contains(d.Message, "as it is in the project")
	}
	if !warned {
		t.Errorf("no diagnostic says so: %+v", reply.Policy.Diagnostics)
	}
	mustTool(t, e, spoil+" && cat npm/new")
	if got := harness.Read(t, w.ProjectPath("npm/_npx/tool")); got != "evil\n" {
		t.Errorf("a session cannot write its own project: %q", got)
	}
}

// The sidecar's own directory is on a file system that cannot be the upper layer
// of an overlay, such as another overlay. Caches are shared then, and the reply
// says so.
func TestCaches_OnAFileSystemWithoutOverlays(t *testing.T) {
	t.Parallel()
	harness.Require(t, "toolchain_caches")
	harness.RequirePrograms(t, "unshare", "mount")
	w := cacheWorld(t)
	for _, dir := range []string{".cache", "lower", "upper", "work"} {
		harness.MakeDir(t, w.HomePath(dir))
	}
	const script = `layers=lowerdir=$0/lower,upperdir=$0/upper,workdir=$0/work
mount -t overlay -o "$layers" none "$0/.cache" || exit 125
exec "$@"`
	wrapper := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		wrapper = append(wrapper, "--user", "--map-current-user", "--keep-caps")
	}
	wrapper = append(wrapper, "/bin/sh", "-c", script, w.Home)
	try := exec.Command(wrapper[0], append(wrapper[1:], "true")...)
	if out, err := try.CombinedOutput(); err != nil {
		harness.Skip(t, "mount_namespace", string(out))
	}
	e := harness.Start(t, w, harness.Options{
		Settings: harness.Defaults(harness.Sandbox{"toolchains": []string{"node"}}),
		Wrap: func(command *exec.Cmd) {
			command.Args = append(wrapper[:len(wrapper):len(wrapper)],
				append([]string{command.Path}, command.Args[1:]...)...)
			command.Path = "/usr/bin/unshare"
		},
	})
	s, status := e.Run(protocol.SpawnParams{Command: spoil})
	p := s.Sandbox.Protections["toolchain_caches"]
	if status != 0 || p.Status != protocol.Absent || !strings.Contains(p.Detail, "programs outside use") {
		t.Errorf("status %d, the reply says %+v\n%s", status, p, s.Output())
	}
	if got := harness.Read(t, w.HomePath(".npm/_npx/tool")); got != "evil\n" {
		t.Errorf("outside, the cache has %q", got)
	}
}
