//go:build linux

package temporary

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// private makes a file that only its owner may read.
func private(t *testing.T, w *harness.World, name, content string) {
	t.Helper()
	harness.Write(t, w.HomePath(name), content)
	harness.Must(t, os.Chmod(w.HomePath(name), 0o600))
}

// usual makes what many programs keep in a home directory under an usual umask.
func usual(t *testing.T, w *harness.World) {
	t.Helper()
	for i := range 80 {
		harness.Write(t, w.HomePath(fmt.Sprintf(".config/usual%d/settings", i)), "plain\n")
	}
	harness.Write(t, w.HomePath(".profile"), "# plain\n")
}

// wide are the settings that let sessions read a home directory, or parts of it.
func wide() map[string]harness.Sandbox {
	return map[string]harness.Sandbox{
		"default": nil,
		"home":    {"additional_read_only_paths": []string{"~"}},
		"relaxed": {"mode": "relaxed"},
	}
}

// Of 150 places of secrets none can be read: 104 of the table, and 46 of programs
// that it does not name.
func TestPrivate_NoneOf150KnownPlacesCanBeRead(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorldOutsideDefaults(t)
	usual(t, w)
	var names []string
	const ofTable, ofOthers = 104, 46
	for _, place := range risks.All() {
		name, inHome := strings.CutPrefix(place.Path, "~/")
		if !inHome || !place.Hidden() || len(names) == ofTable {
			continue
		}
		if filepath.Ext(name) == "" {
			name += "/file"
		}
		if _, err := os.Lstat(w.HomePath(name)); err == nil {
			continue
		}
		harness.Write(t, w.HomePath(name), "token = TOKEN\n") // the table knows it, whatever its mode
		names = append(names, name)
	}
	for i := range ofOthers {
		name := fmt.Sprintf([]string{
			".config/unknown%d/token", ".config/unknown%d/state/auth.json", ".unknown%d", ".unknown%d/credentials",
			".local/share/unknown%d/session/key", ".config/unknown%d.toml", ".cache/unknown%d/token",
		}[i%7], i)
		private(t, w, name, "TOKEN\n")
		names = append(names, name)
	}
	if len(names) != ofTable+ofOthers {
		t.Fatalf("%d places", len(names))
	}
	var script strings.Builder
	for _, name := range append(names, ".config/usual1/settings") {
		fmt.Fprintf(&script, "cat %s 2>/dev/null; ", harness.Quote(w.HomePath(name)))
	}
	for mode, settings := range wide() {
		e := start(t, w, settings)
		output, _ := e.Tool(script.String())
		if found := strings.Count(output, "TOKEN"); found > 0 || !strings.Contains(output, "plain") {
			t.Errorf("%s: %d secrets can be read: %.2000s", mode, found, output)
		}
	}
}

// A program that asks for a private file is told what would show it, and that
// shows it.
func TestPrivate_IsToldWithItsStep(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorldOutsideDefaults(t)
	private(t, w, ".config/unknown/token", "TOKEN\n")
	path := w.HomePath(".config/unknown/token")
	e := start(t, w, nil)
	mustNotRead(t, e, path)
	answer := harness.Call(e, protocol.PolicyExplain, protocol.PolicyExplainParams{
		ProjectDir: w.Project, Kind: protocol.Tool, Access: "read", Target: path,
	})
	if answer.Allowed || !answer.Careful || !strings.Contains(answer.Reason, "is private to you") ||
		answer.Setting != "additional_read_only_paths" || answer.Value != path {
		t.Errorf("%+v", answer)
	}
	compiled := harness.Call(e, protocol.PolicyGet, protocol.PolicyGetParams{
		ProjectDir: w.Project, Kind: protocol.Tool,
	})
	said := ""
	for _, o := range compiled.Policy.Origins {
		if o.Value == path {
			said = o.Reason
		}
	}
	if said != "private to you" {
		t.Errorf("policy says %q", said)
	}
	e = start(t, w, harness.Sandbox{"additional_read_only_paths": []string{path}})
	if got := must(t, e, "cat "+harness.Quote(path)); got != "TOKEN\n" {
		t.Errorf("what is granted: %q", got)
	}
}

// What appears later is hidden from the next session on, of a sidecar that runs
// already, too.
func TestPrivate_NextSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.HomePath(".config/unknown/plain"), "plain\n")
	e := start(t, w, nil)
	must(t, e, "cat ~/.config/unknown/plain")
	private(t, w, ".config/unknown/token", "TOKEN\n")
	mustNotRead(t, e, w.HomePath(".config/unknown/token"))
	must(t, e, "cat ~/.config/unknown/plain")
}

// doctor says it where the modes of files tell nothing, and only there.
func TestPrivate_DoctorSaysThatModesTellNothing(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	for _, all := range []bool{true, false} {
		w := harness.NewWorldOutsideDefaults(t)
		usual(t, w)
		for i := range 80 * 2 {
			if name := fmt.Sprintf(".config/other%d/file", i); all {
				private(t, w, name, "TOKEN\n")
			}
		}
		harness.Write(t, w.UserSettings(), harness.Defaults(nil))
		command := exec.Command(harness.Binary(t), "doctor")
		command.Dir, command.Env = w.Project, harness.Environ(w)
		output, _ := command.CombinedOutput() // the status says what the machine lacks
		words := strings.Join(strings.Fields(string(output)), " ")
		if said := strings.Contains(words, "most files of your home directory are private to you"); said != all {
			t.Errorf("private: %t; doctor says %.1500s", all, words)
		}
	}
}

// Everyday programs work in a home directory in which everything is private, be
// it by an umask or not.
func TestPrivate_EverydayPrograms(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	files := map[string]string{
		".bashrc": "FROM=bashrc\n", ".zshrc": "FROM=zshrc\n", ".config/fish/config.fish": "set FROM fishrc\n",
		".config/fish/fish_variables": "# VERSION: 3.0\nSETUVAR from_variables:yes\n",
		".config/git/config":          "[alias]\n\tfrom = config --get user.email\n[user]\n\temail = from@git\n",
		".config/gh/config.yml":       "version: 1\neditor: from-gh\n",
		".config/gh/hosts.yml":        "github.com:\n    oauth_token: TOKEN\n    user: u\n",
		".config/nvim/init.lua":       "-- from nvim\n",
		".config/htop/htoprc":         "from htop\n", ".tmux.conf": "# from tmux\n", ".vimrc": "let g:from = 'vimrc'\n",
	}
	for i, test := range []struct {
		name  string
		umask bool
	}{{"everything is private", true}, {"single files are", false}} {
		w := harness.NewWorldOutsideDefaults(t)
		for name, content := range files {
			private(t, w, name, content)
		}
		harness.Must(t, os.Chmod(w.Home, 0o700))
		usual(t, w)
		if test.umask {
			harness.Must(t, filepath.WalkDir(w.Home, func(path string, entry os.DirEntry, err error) error {
				if err == nil && entry.Type().IsRegular() {
					return os.Chmod(path, 0o600)
				}
				return err
			}))
		}
		modes := wide()
		for j, mode := range slices.Sorted(maps.Keys(modes)) {
			if harness.Turn(t, i+j, 2) {
				everyday(t, w, test.name+", "+mode, start(t, w, modes[mode]))
			}
		}
	}
}

// everyday runs programs that read private files.
func everyday(t *testing.T, w *harness.World, name string, e *harness.Editor) {
	t.Helper()
	for _, line := range []struct{ program, command, says string }{
		{"bash", "bash -ic 'echo $FROM'", "bashrc"},
		{"zsh", "zsh -ic 'echo $FROM'", "zshrc"},
		{"fish", "fish -c 'echo $FROM $from_variables'", "fishrc yes"},
		{"git", "git from", "from@git"},
		{"vim", `vim -es -u ~/.vimrc +'verbose echo g:from' +q 2>&1`, "vimrc"},
		{"gh", "gh config get editor", "from-gh"},
		{"cat", "cat ~/.config/htop/htoprc", "from htop"},
		{"cat", "cat ~/.config/usual1/settings", "plain"},
		{"cat", "cat ~/.config/nvim/init.lua", "from nvim"},
	} {
		harness.RequirePrograms(t, line.program)
		if got := must(t, e, line.command); !strings.Contains(got, line.says) {
			t.Errorf("%s: %s: %q", name, line.program, got)
		}
	}
	mustNotRead(t, e, w.HomePath(".config/gh/hosts.yml"))
}
