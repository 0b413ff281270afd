//go:build linux

package protected

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// held is a session that may write what holds the sidecar's own places: by its
// project, or by a grant. Paths are below the home directory.
type held struct{ project, grant string }

// helds are the ways to hold the settings, and those to hold the state.
var (
	holdsSettings = map[string]held{
		"home": {project: "."}, "config": {project: ".config"},
		"home granted": {"project", "."}, "config granted": {"project", ".config"},
	}
	holdsState = map[string]held{
		"home": {project: "."}, "local": {project: ".local"}, "state": {project: ".local/state"},
		"home granted": {"project", "."}, "local granted": {"project", ".local"},
		"state granted": {"project", ".local/state"},
	}
)

// hold starts an editor for such sessions.
func (s *scene) hold(h held, settings harness.Sandbox) *editor {
	s.T.Helper()
	s.Project = filepath.Join(s.Home, h.project)
	harness.MakeDir(s.T, s.Project)
	keys := harness.Sandbox{}
	if h.grant != "" {
		keys["additional_read_write_paths"] = []string{filepath.Join(s.Home, h.grant)}
	}
	for key, value := range settings {
		keys[key] = value
	}
	return s.start(harness.Defaults(keys), harness.Machine{})
}

// A missing settings file is not created by a race against whoever reads a path
// before the kernel does. The control is a name in the project, which nothing but
// that reading protects: it is won.
func TestOwnPlaces_ARaceIsNotWon(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	race := func(s *scene, e *editor, path string) (string, protocol.CloseResult) {
		if s.Victim == "" {
			s.Victim = s.ProjectPath("victim")
			harness.Victim(s.T, "tests/victim", s.Victim)
			harness.Must(s.T, os.Chmod(s.Victim, 0o755)) // a private file in ~/.config is hidden
		}
		_, output, _, end := e.run(s.Victim + " create-raced " + path + " 3000")
		return output, end
	}
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		e := s.hold(held{project: "project"}, nil)
		path := s.ProjectPath(".mcp.json")
		harness.Eventually(t, "a race is won", func() bool {
			output, end := race(s, e, path)
			_, err := os.Lstat(path)
			if err == nil && !told(end, nil, s.Project, path) {
				harness.Breach(t, "it was won in silence: %+v", end.Review)
			}
			return strings.Contains(output, "won")
		})
	})
	for i, name := range slices.Sorted(maps.Keys(holdsSettings)) {
		if !harness.Turn(t, i, 2) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			harness.Write(t, s.HomePath(".config/zed/keymap.json"), "[]")
			e := s.hold(holdsSettings[name], nil)
			path := s.HomePath(".config/zed/settings.json")
			output, _ := race(s, e, path)
			if _, err := os.Lstat(path); err == nil || !strings.Contains(output, "lost") {
				harness.Breach(t, "there are new settings (%v): %s", err == nil, output)
			}
		})
	}
}

// placeAttack is a line for a shell in the home directory, and what must not hold
// right afterwards. Sidecars change their state, so nobody looks later.
type placeAttack struct{ line, harm string }

var settingsAttacks = map[string]placeAttack{
	"open":        {`echo evil >.config/zed/settings.json`, `[ -e .config/zed/settings.json ]`},
	"link":        {`echo evil >.config/x; ln .config/x .config/zed/settings.json`, `[ -e .config/zed/settings.json ]`},
	"symlink":     {`echo evil >.config/x; ln -s ../x .config/zed/settings.json`, `[ -L .config/zed/settings.json ]`},
	"rename":      {`echo evil >.config/x; mv .config/x .config/zed/settings.json`, `[ -e .config/zed/settings.json ]`},
	"tasks":       {`echo evil >.config/zed/tasks.json`, `[ -e .config/zed/tasks.json ]`},
	"a neighbour": {`echo evil >.config/sandbox-sidecar/new`, `[ -e .config/sandbox-sidecar/new ]`},
	"ours": {
		`echo evil >.config/sandbox-sidecar/settings.json`, `grep evil .config/sandbox-sidecar/settings.json`,
	},
	"ours exchanged": {
		`mkdir .config/x; echo evil >.config/x/settings.json; mv .config/sandbox-sidecar .config/y; ` +
			`mv -T .config/x .config/sandbox-sidecar`,
		`grep evil .config/sandbox-sidecar/settings.json`,
	},
	"Zed's exchanged": {
		`mkdir .config/x; echo evil >.config/x/settings.json; mv .config/zed .config/y; mv -T .config/x .config/zed`,
		`[ -e .config/zed/settings.json ]`,
	},
	"the parent exchanged": {
		`mkdir -p .config/x/zed; echo evil >.config/x/zed/settings.json; mv .config/x .; mv .config y; mv -T x .config`,
		`[ -e .config/zed/settings.json ]`,
	},
}

var stateAttacks = map[string]placeAttack{
	"a journal": {
		`for f in .local/state/sandbox-sidecar/run/*.journal; do echo '{"kind":"evil"}' >>$f; done`,
		`grep -r evil .local/state/sandbox-sidecar`,
	},
	"a new journal": {
		`echo evil >.local/state/sandbox-sidecar/run/forged.journal`, `grep -r evil .local/state/sandbox-sidecar`,
	},
	"a history": {
		`mkdir -p .local/state/sandbox-sidecar/history/x; echo evil >.local/state/sandbox-sidecar/history/x/bash_history`,
		`grep -r evil .local/state/sandbox-sidecar`,
	},
	"trust": {
		`echo evil >.local/state/sandbox-sidecar/trust.json`, `[ -e .local/state/sandbox-sidecar/trust.json ]`,
	},
	"the parent exchanged": {
		`mkdir -p .local/state/x/run; echo evil >.local/state/x/run/forged.journal; ` +
			`mv .local/state/sandbox-sidecar .local/state/y; mv -T .local/state/x .local/state/sandbox-sidecar`,
		`[ -d .local/state/y ]`,
	},
}

func TestOwnPlaces_StayAsTheyAre(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	try := func(t *testing.T, ways map[string]held, attacks map[string]placeAttack) {
		t.Helper()
		for i, way := range slices.Sorted(maps.Keys(ways)) {
			s := newScene(t)
			harness.Write(t, s.HomePath(".config/zed/keymap.json"), "[]")
			e := s.hold(ways[way], nil)
			for j, name := range slices.Sorted(maps.Keys(attacks)) {
				if !harness.Turn(t, i+j, len(holdsSettings)) {
					continue
				}
				if output, harmed := attacks[name].by(s, e); harmed {
					harness.Breach(t, "%s: %s: %s", way, name, output)
				}
			}
		}
	}
	t.Run("settings", func(t *testing.T) {
		t.Parallel()
		controls, printed := withoutSandbox(t, maps.Keys(settingsAttacks), func(s *scene, name string) string {
			harness.Write(t, s.HomePath(".config/zed/keymap.json"), "[]")
			harness.Write(t, s.UserSettings(), harness.Off())
			return settingsAttacks[name].on(s) + " && : >~/harmed"
		})
		for name, s := range controls {
			if _, err := os.Lstat(s.HomePath("harmed")); err != nil {
				t.Errorf("control: %s: without a sandbox it does no harm: %s", name, printed)
			}
		}
		try(t, holdsSettings, settingsAttacks)
	})
	t.Run("state", func(t *testing.T) {
		t.Parallel()
		for name, attack := range stateAttacks { // of a sidecar each, which has state in its home
			s := newScene(t)
			harness.Write(t, s.HomePath(".config/zed/keymap.json"), "[]")
			control := s.hold(held{project: "."}, harness.Sandbox{"enabled": false})
			if output, harmed := attack.by(s, control); !harmed {
				t.Errorf("control: %s: without a sandbox it does no harm: %s", name, output)
			}
		}
		try(t, holdsState, stateAttacks)
	})
}

// on is the line in a scene. It succeeds if there is harm afterwards.
func (a placeAttack) on(s *scene) string {
	return "cd " + harness.Quote(s.Home) + "; " + a.line + "; " + a.harm
}

// by has a session try it.
func (a placeAttack) by(s *scene, e *editor) (output string, harmed bool) {
	_, output, _, _ = e.run(a.on(s) + " && echo harm is done")
	return output, strings.Contains(output, "harm is done")
}

// What is missing is made only where a session could make it, and then cannot be
// written either.
func TestOwnPlaces_AreMadeOnlyBelowAGrant(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	for grant, made := range map[string]bool{"": false, ".config": true} {
		s := newScene(t)
		harness.MakeDir(t, s.HomePath(".config"))
		e := s.hold(held{"project", grant}, nil)
		_, output, _, _ := e.run(`mkdir -p ~/.config/zed && echo evil >~/.config/zed/settings.json`)
		if _, err := os.Lstat(s.HomePath(".config/zed")); (err == nil) != made {
			t.Errorf("grant %q: made: %t: %s", grant, err == nil, output)
		}
		if _, err := os.Lstat(s.HomePath(".config/zed/settings.json")); err == nil {
			harness.Breach(t, "grant %q: there are settings: %s", grant, output)
		}
	}
}

// Users edit Zed's key bindings and themes in a session that may write them, and
// are told where to edit the rest.
func TestOwnPlaces_KeymapsAndThemesCanBeEdited(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	harness.Write(t, s.HomePath(".config/zed/keymap.json"), "[]")
	harness.Write(t, s.HomePath(".config/zed/settings.json"), "{}")
	harness.Write(t, s.HomePath(".config/zed/themes/a.json"), "{}")
	e := s.hold(held{"project", ".config"}, nil)
	_, output, status, _ := e.run(`cd ~/.config/zed && echo new >keymap.json && echo new >themes/new.json && ` +
		`rm themes/a.json`)
	if status != 0 || harness.Read(t, s.HomePath(".config/zed/keymap.json")) != "new\n" {
		t.Errorf("status %d: %s", status, output)
	}
	_, output, _, _ = e.run(`echo new >~/.config/zed/settings.json`)
	if !strings.Contains(output, "Read-only file system") {
		t.Error(output)
	}
	harness.Eventually(t, "the report says where", func() bool {
		for _, d := range e.denials.All() {
			if d.Target == s.HomePath(".config/zed/settings.json") && strings.Contains(d.Hint, "edit it outside") {
				return true
			}
		}
		return false
	})
}

// A program outside that replaces Zed's settings takes no mount away that
// matters.
func TestOwnPlaces_StayShutIfAProgramOutsideReplacesAFile(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	settings := s.HomePath(".config/zed/settings.json")
	harness.Write(t, settings, "{}")
	e := s.hold(held{"project", ".config"}, nil)
	go func() {
		if harness.Within(func() bool { _, err := os.Lstat(s.ProjectPath("ready")); return err == nil }) {
			_ = os.WriteFile(settings+".new", []byte("{}"), 0o600)
			_ = os.Rename(settings+".new", settings)
			_ = os.WriteFile(s.ProjectPath("done"), nil, 0o600)
		}
	}()
	_, output, _, _ := e.run(`touch ready; n=0; until [ -e done ] || [ $n = 600 ]; do sleep 0.1; n=$((n+1)); done; ` +
		`echo evil >` + settings + ` && echo written`)
	if harness.Read(t, settings) != "{}" || !strings.Contains(output, "Read-only") {
		harness.Breach(t, "it was written: %s", output)
	}
}

// Directories of settings are often links to a repository of dotfiles.
func TestOwnPlaces_SymlinksToThemStay(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	const attack = `cd ~; mkdir x; echo evil >x/settings.json; rm -f .config/zed; mv -T x .config/zed; ` +
		`echo evil >dotfiles/zed/settings.json; mkdir y; mv dotfiles y/d; ln -sfn ~/x .config/zed; ` +
		`rm -f .config .config/zed/settings.json; mkdir -p .config/zed; echo evil >.config/zed/settings.json`
	links := map[string]string{
		"the directory": `mkdir -p dotfiles/zed .config; ln -s ../dotfiles/zed .config/zed`,
		"all of them":   `mkdir -p dotfiles/zed; ln -s dotfiles .config`,
		"the file": `mkdir -p dotfiles/zed .config/zed; echo >dotfiles/zed/settings.json; ` +
			`ln -s ../../dotfiles/zed/settings.json .config/zed/`,
	}
	prepare := func(s *scene, name string) (line string) {
		s.Project = s.Home
		s.outside(links[name])
		return attack
	}
	harmed := func(s *scene) bool {
		text, _ := os.ReadFile(s.HomePath(".config/zed/settings.json"))
		return strings.Contains(string(text), "evil")
	}
	controls, printed := withoutSandbox(t, maps.Keys(links), prepare)
	for name := range links {
		if !harmed(controls[name]) {
			t.Errorf("control: %s: without a sandbox it does no harm: %s", name, printed)
		}
		s := newScene(t)
		line := prepare(s, name)
		if _, output, _, _ := s.hold(held{project: "."}, nil).run(line); harmed(s) {
			harness.Breach(t, "%s: %s", name, output)
		}
	}
}

// Without namespaces nothing is mounted, and the reply says what follows.
func TestOwnPlaces_TheReplySaysWhatIsOpenWithoutMounts(t *testing.T) {
	t.Parallel()
	for _, machine := range harness.Machines(t) {
		s := newScene(t)
		s.Project = s.Home
		reply, _, _, _ := s.start(harness.Defaults(nil), machine).run("true")
		said := strings.Join(reply.Sandbox.Warnings, "\n")
		for _, want := range []string{"the settings file", "the sidecar's state"} {
			if strings.Contains(said, want) == machine.Namespaces {
				t.Errorf("%s: %q: %s", machine.Name, want, said)
			}
		}
	}
}
