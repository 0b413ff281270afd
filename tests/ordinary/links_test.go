//go:build linux

package ordinary

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What a symlink in a granted directory of the system leads to is granted, too:
// a program that reads the name is refused nothing.
func TestLinksOfTheSystemLeadToGrantedFiles(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	var targets []string
	for _, root := range []string{"/etc", "/usr"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Type()&fs.ModeSymlink == 0 {
				return nil
			}
			target, err := filepath.EvalSymlinks(path)
			inside := strings.HasPrefix(target, "/etc/") || strings.HasPrefix(target, "/usr/")
			if err != nil || inside || strings.HasPrefix(target, "/dev/") || strings.HasPrefix(target, "/proc/") {
				return nil
			}
			if file, err := os.Open(target); err == nil { // who runs the test can read it
				file.Close()
				targets = append(targets, target)
			}
			return nil
		})
		harness.Must(t, err)
	}
	// Packages that this machine may lack have theirs in these directories.
	for _, dir := range []string{
		"/var/lib/dpkg", "/var/lib/apt/lists", "/var/cache/fontconfig", "/var/cache/man", "/sys/fs/cgroup",
		"/sys/devices/system/cpu", "/var/lib/texmf",
	} {
		if _, err := os.ReadDir(dir); err == nil {
			targets = append(targets, dir)
		}
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	harness.Write(t, w.ProjectPath("targets"), strings.Join(targets, "\n")+"\n")
	const script = `while read -r target; do
	if [ -d "$target" ]; then ls "$target"; else head -c 1 "$target"; fi >/dev/null 2>&1 || echo "$target"
done <targets`
	read := func(settings harness.Sandbox) string {
		file := w.ProjectPath("settings.json")
		harness.Write(t, file, harness.Defaults(settings))
		output, err := inSession(t, w, file, script).Output()
		harness.Must(t, err)
		return string(output)
	}
	if closed := read(harness.Sandbox{}); closed != "" {
		t.Errorf("a session cannot read\n%s", closed)
	}
	without := harness.Sandbox{"system_paths": harness.Sandbox{"read_only": []string{"/etc", "/usr/share"}}}
	if closed := read(without); !strings.Contains(closed, "/sys/") {
		t.Errorf("control: without these grants only this is closed:\n%s", closed)
	}
}

// git ends with an error if it cannot read what its configuration names.
func TestGitReadsWhatItsConfigurationNames(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "git")
	w := harness.NewWorldOutsideDefaults(t)
	for file, content := range map[string]string{
		".gitconfig":        "[include]\n\tpath = dotfiles/user.inc\n[core]\n\texcludesFile = ~/dotfiles/ignored\n",
		"dotfiles/user.inc": "[user]\n\tname = Ada\n\temail = ada@example.org\n",
		"dotfiles/ignored":  "*.log\n",
		"dotfiles/other":    "closed\n",
	} {
		harness.MakeDir(t, filepath.Dir(w.HomePath(file)))
		harness.Write(t, w.HomePath(file), content)
	}
	settings := w.ProjectPath("settings.json")
	harness.Write(t, settings, harness.Defaults(harness.Sandbox{}))
	output, err := inSession(t, w, settings, `git init -q repository && cd repository && touch a.log b && git add b &&
git commit -qm x && git log --format=%an && git status -s && { cat ~/dotfiles/other 2>/dev/null || echo shut; }`).Output()
	if err != nil || string(output) != "Ada\nshut\n" {
		t.Errorf("%v: %s", err, output)
	}
}

// inSession runs a script in a session of the project.
func inSession(t *testing.T, w *harness.World, settings, script string) *exec.Cmd {
	t.Helper()
	command := exec.Command(harness.Binary(t), "exec", "--sandbox", "--settings", settings, "--project", w.Project,
		"--", "/bin/sh", "-c", script)
	command.Dir, command.Env = w.Project, harness.Environ(w)
	return command
}
