//go:build unix

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestHome_IsNotMade starts everything that keeps files in a home directory that
// does not exist, and in one that does.
func TestHome_IsNotMade(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	home := filepath.Join(w.Outside, "gone")
	keepsNothing(t, w, home, "does not exist", func() {
		if _, err := os.Lstat(home); err == nil {
			t.Errorf("%s was made", home)
		}
	})
	keeps(t, w, w.Home)
}

// TestHome_OfAnotherUserIsLeftAsItIs is root with the home directory of another
// user, as with sudo -E.
func TestHome_OfAnotherUserIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "the test runs as an ordinary user")
	}
	w := harness.NewWorldOutsideDefaults(t)
	home := filepath.Join(w.Outside, "user")
	for _, dir := range []string{home, filepath.Join(home, ".config")} {
		harness.Must(t, os.Mkdir(dir, 0o755))
		harness.Must(t, os.Chown(dir, 12345, 12345))
	}
	keepsNothing(t, w, home, "another user", func() {
		harness.Must(t, filepath.WalkDir(home, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.Sys().(*syscall.Stat_t).Uid == 0 {
				t.Errorf("%s is root's", path)
			}
			return err
		}))
	})
}

// keepsNothing runs a session, and what writes settings, trust and links, with a
// home directory in which nothing is to be made.
func keepsNothing(t *testing.T, w *harness.World, home, why string, check func()) {
	t.Helper()
	file := filepath.Join(w.Outside, "settings.json")
	harness.Write(t, file, harness.Defaults(harness.Sandbox{"toolchains": []string{"go", "node"}, "audit": "file"}))
	project := w.ProjectPath(".zed/settings.json")
	harness.Write(t, project, harness.Defaults(nil))
	for name, run := range map[string]struct {
		args  []string
		works bool
	}{
		"exec":    {[]string{"exec", "--settings", file, "--", "echo", "ran"}, true},
		"init":    {[]string{"init", "--yes"}, false},
		"trust":   {[]string{"trust", "--settings", file, "--digest", harness.Digest(t, project)}, false},
		"install": {[]string{"shell", "install"}, false},
	} {
		out, ok := withHome(t, w, home, run.args...)
		if ok != run.works || run.works && !strings.Contains(out, "ran\n") {
			t.Errorf("%s: %s", name, out)
		}
		if !strings.Contains(strings.Join(strings.Fields(out), " "), why) {
			t.Errorf("%s: nothing says why: %s", name, out)
		}
		check()
	}
}

// keeps is the control: in a home directory of the user's own all is made.
func keeps(t *testing.T, w *harness.World, home string) {
	t.Helper()
	for _, args := range [][]string{{"init", "--yes"}, {"shell", "install"}, {"exec", "--", "true"}} {
		if out, ok := withHome(t, w, home, args...); !ok {
			t.Errorf("control: %v: %s", args, out)
		}
	}
	for _, path := range []string{
		".config/sandbox-sidecar", ".local/share/sandbox-sidecar", ".local/state/sandbox-sidecar",
	} {
		if _, err := os.Stat(filepath.Join(home, path)); err != nil {
			t.Errorf("control: %v", err)
		}
	}
}

func withHome(t *testing.T, w *harness.World, home string, args ...string) (string, bool) {
	t.Helper()
	command := exec.Command(harness.Binary(t), args...)
	command.Dir = w.Project
	command.Env = append(harness.Environ(w), "HOME="+home)
	out, err := command.CombinedOutput()
	return string(out), err == nil
}
