//go:build linux

package temporary

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// hidesAs is how the words of a path that a session does not see may read.
var hidesAs = []string{"Permission denied", "No such file or directory", "cannot open directory"}

func mustNotRead(t *testing.T, e *harness.Editor, path string) {
	t.Helper()
	output, status := e.Tool("cat " + harness.Quote(path))
	if status == 0 ||
		!slices.ContainsFunc(hidesAs, func(words string) bool { return strings.Contains(output, words) }) {
		t.Errorf("cat %s: status %d: %s", path, status, output)
	}
}

// The built-in list hides tokens below ~/.config, which sessions may read.
// What the user grants there is seen.
func TestHiddenPaths_BuiltIn(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorld(t)
	harness.Write(t, w.HomePath(".config/gh/hosts.yml"), "token\n")
	harness.Write(t, w.HomePath(".config/gh/config.yml"), "harmless\n")
	harness.Write(t, w.HomePath(".config/rclone/rclone.conf"), "password\n")
	harness.Write(t, w.HomePath(".config/other"), "other\n")
	e := start(t, w, nil)
	mustNotRead(t, e, w.HomePath(".config/gh/hosts.yml"))
	mustNotRead(t, e, w.HomePath(".config/rclone/rclone.conf"))
	if got := must(t, e, "cat ~/.config/other"); got != "other\n" {
		t.Errorf("its neighbour: %q", got)
	}
	e = start(t, w, harness.Sandbox{
		"additional_read_only_paths": []string{"~/.config/gh/config.yml", "~/.config/rclone"},
	})
	if got := must(t, e, "cat ~/.config/gh/config.yml ~/.config/rclone/rclone.conf"); got != "harmless\npassword\n" {
		t.Errorf("what is granted: %q", got)
	}
	mustNotRead(t, e, w.HomePath(".config/gh/hosts.yml"))
}

// Grants below a hidden directory are reached, and no directory on the way to
// them can be listed. Root may list them, and sees nothing but that way.
func TestHiddenPaths_TheWayToAGrantIsNotListed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorld(t)
	for _, name := range []string{"secret/a", "secret/b/a", "secret/b/c/a", "secret/b/c/given", "secret/b/dir/given"} {
		harness.Write(t, w.ProjectPath(name), "from "+name+"\n")
	}
	e := start(t, w, harness.Sandbox{
		"hidden_paths":               []string{"secret"},
		"additional_read_only_paths": []string{w.ProjectPath("secret/b/c/given"), w.ProjectPath("secret/b/dir")},
	})
	if got := must(t, e, "cat secret/b/c/given && ls secret/b/dir"); got != "from secret/b/c/given\ngiven\n" {
		t.Errorf("what is granted: %q", got)
	}
	for dir, way := range map[string]string{"secret": "b\n", "secret/b": "c\ndir\n", "secret/b/c": "given\n"} {
		output, status := e.Tool("ls -1 " + dir)
		if os.Geteuid() == 0 && (status != 0 || output != way) {
			t.Errorf("ls %s: status %d: %q, but root sees the way, %q", dir, status, output, way)
		}
		if os.Geteuid() != 0 && (status == 0 || !strings.Contains(output, "Permission denied")) {
			t.Errorf("ls %s: status %d: %q", dir, status, output)
		}
		mustNotRead(t, e, dir+"/a")
	}
}

// A hidden path that does not exist, is a symlink, lies behind one, or is the
// project itself has a diagnostic, and opens nothing.
func TestHiddenPaths_OddOnes(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorld(t)
	harness.Write(t, w.ProjectPath("real/secret"), "secret\n")
	harness.Write(t, w.ProjectPath("keys/a.pem"), "secret\n")
	harness.Write(t, w.ProjectPath("keys/a.txt"), "fine\n")
	harness.Must(t, os.Symlink("real", w.ProjectPath("link")))
	harness.Must(t, os.Symlink("real/secret", w.ProjectPath("name")))
	for _, test := range []struct {
		entry, secret, says string
	}{
		{"real/secret", "real/secret", ""},
		{"link/secret", "real/secret", ""},
		{"name", "real/secret", ""},
		{"real", "link/secret", ""},
		{"keys/*.pem", "keys/a.pem", ""},
		{"none", "", "there is no"},
		{".", "", "is the project"},
	} {
		e := start(t, w, harness.Sandbox{"hidden_paths": []string{test.entry}})
		if test.secret != "" {
			mustNotRead(t, e, test.secret)
		}
		must(t, e, "cat keys/a.txt && ls . && touch new")
		compiled := harness.Call(e, protocol.PolicyGet, protocol.PolicyGetParams{
			ProjectDir: w.Project, Kind: protocol.Tool,
		})
		said := ""
		for _, d := range compiled.Policy.Diagnostics {
			if d.Key == "hidden_paths" {
				said += d.Message
			}
		}
		if test.says == "" && said != "" || !strings.Contains(said, test.says) {
			t.Errorf("%s: the diagnostics say %q", test.entry, said)
		}
	}
	for _, entry := range []string{"/", "a*/b", ""} {
		e := start(t, w, harness.Sandbox{"hidden_paths": []string{entry}})
		if _, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
			Kind: protocol.Tool, Command: "true", Cwd: w.Project,
		}); err == nil {
			t.Errorf("a tool starts although %q cannot be understood", entry)
		}
	}
}

// Ten thousand hidden paths cost time, and nothing else.
func TestHiddenPaths_Many(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorld(t)
	count := 10000
	if testing.Short() {
		count = 500
	}
	list := []string{}
	for i := range count {
		name := fmt.Sprintf("dir%d/file%d", i%100, i)
		harness.Write(t, w.ProjectPath(name), "secret\n")
		list = append(list, name)
	}
	e := start(t, w, harness.Sandbox{"hidden_paths": list})
	output, status := e.Tool("cat dir*/file* | grep -c secret")
	if last := lastLine(output); status != 1 || strings.TrimSpace(last) != "0" {
		t.Errorf("status %d: %.300s", status, last)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// A project may hide more. It cannot show what the user hides, by a narrower
// grant neither.
func TestHiddenPaths_AProjectOnlyAdds(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorld(t)
	harness.Write(t, w.HomePath(".config/gh/hosts.yml"), "token\n")
	harness.Write(t, w.ProjectPath(".env"), "secret\n")
	harness.Write(t, w.ProjectPath("more"), "secret\n")
	block, err := json.Marshal(map[string]any{"terminal": map[string]any{"sandbox": map[string]any{
		"hidden_paths": []string{"more"}, "additional_read_only_paths": []string{"~/.config/gh"},
	}}})
	harness.Must(t, err)
	harness.Write(t, w.ProjectPath(".zed/settings.json"), string(block))
	e := start(t, w, harness.Sandbox{
		"hidden_paths": []string{".env"}, "additional_read_only_paths": []string{"~/.config"},
	})
	for _, path := range []string{".env", "more", w.HomePath(".config/gh/hosts.yml")} {
		mustNotRead(t, e, path)
	}
}

// A refused access names the setting that hides, also below a hidden directory,
// where nothing is to be seen. None is suggested, and nobody can be asked.
func TestHiddenPaths_AreReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	for _, onDenied := range []string{"report", "ask"} {
		w := harness.NewWorld(t)
		harness.Write(t, w.ProjectPath(".env"), "secret\n")
		harness.Write(t, w.ProjectPath("keys/deep/one"), "secret\n")
		harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
			"hidden_paths": []string{".env", "keys"}, "on_denied": onDenied,
		}))
		for line, refused := range map[string]bool{
			"cat .env":          true,
			"cat keys/deep/one": true,
			"cd / && cat " + w.ProjectPath("keys/deep/one"): true,
			"echo >keys/deep/one":                           true,
			"echo >keys/new":                                true,
			"cat keys/none":                                 false, // nothing is there
			"cat keys/deep/../../none":                      false,
		} {
			command := exec.Command(harness.Binary(t), "exec", "--", "sh", "-c", line)
			command.Dir, command.Env = w.Project, harness.Environ(w)
			output, _ := command.CombinedOutput()
			text := harness.Unfold(string(output))
			if said := strings.Contains(text, "careful: hidden_paths ("+w.UserSettings()+":"); said != refused ||
				strings.Contains(text, "refused") != refused || strings.Contains(text, "add ") {
				t.Errorf("%s, %s: exec says:\n%s", onDenied, line, text)
			}
		}
	}
}

// A file system that is mounted outside over a hidden directory while a session
// runs stays hidden, and one that is unmounted shows nothing.
func TestHiddenPaths_MountsOutside(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root mounts outside")
	}
	w := harness.NewWorld(t)
	share(t, w.Project)
	dir, plain := w.ProjectPath("data"), w.ProjectPath("plain")
	harness.Write(t, filepath.Join(dir, "secret"), "secret\n")
	harness.MakeDir(t, plain)
	e := start(t, w, harness.Sandbox{"hidden_paths": []string{"data"}})
	session := e.Shell()
	read := func(step string) {
		session.Type("cat data/secret plain/secret; echo $((6 * 7))" + step + "\n")
		session.Await("42" + step)
	}
	read("before")
	for _, one := range []string{dir, plain} {
		harness.Must(t, unix.Mount("tmpfs", one, "tmpfs", 0, ""))
		t.Cleanup(func() { _ = unix.Unmount(one, unix.MNT_DETACH) })
		harness.Write(t, filepath.Join(one, "secret"), "secret of "+filepath.Base(one)+"\n")
	}
	read("mounted")
	harness.Must(t, unix.Unmount(dir, 0))
	harness.Must(t, unix.Unmount(plain, 0))
	read("unmounted")
	output := session.Output()
	if strings.Contains(output, "\nsecret\n") || strings.Contains(output, "\nsecret of data") {
		t.Errorf("a session reads it:\n%s", output)
	}
	if strings.Count(output, "\nsecret of plain") != 1 {
		t.Errorf("control: what is mounted beside it is seen:\n%s", output)
	}
}
