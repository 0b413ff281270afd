package managed

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// session runs a script in a session of the world's project, which must succeed.
func (o *organisation) session(w *harness.World, env []string, script string) {
	o.t.Helper()
	if out, ok := o.in(w.Project, w, env, "exec", "--", "bash", "-ec", script); !ok {
		o.t.Fatalf("control: the session: %s", out)
	}
}

// in runs the sidecar in a directory.
func (o *organisation) in(dir string, w *harness.World, env []string, args ...string) (string, bool) {
	o.t.Helper()
	inside := *w
	inside.Project = dir
	return o.runBinary(harness.Binary(o.t), &inside, env, args...)
}

// forgedHome are the variables by which a session's directory is to become the
// home directory, or that of the sidecar's state.
func forgedHome(dir string) map[string][]string {
	state := filepath.Join(dir, ".local", "state")
	return map[string][]string{
		"HOME":           {"HOME=" + dir},
		"XDG_STATE_HOME": {"XDG_STATE_HOME=" + state},
		"both":           {"HOME=" + dir, "XDG_STATE_HOME=" + state},
	}
}

// TestHome_NoVariableTrustsAProject has a session write settings for a part of its
// project, and a list that trusts them.
func TestHome_NoVariableTrustsAProject(t *testing.T) {
	t.Parallel()
	for _, config := range []string{".config", "configuration"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			noVariableTrusts(t, config)
		})
	}
}

// noVariableTrusts is for settings in a directory below the home directory, which
// XDG_CONFIG_HOME names if it is not the usual one.
func noVariableTrusts(t *testing.T, config string) {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	o := newOrganisation(t)
	o.account(w)
	var usual []string // variables that the user has set
	if config != ".config" {
		usual = []string{"XDG_CONFIG_HOME=" + filepath.Join(w.Home, config)}
	}
	harness.Write(t, filepath.Join(w.Home, config, "sandbox-sidecar", "settings.json"), harness.Defaults(nil))
	part, home := filepath.Join(w.Project, "part"), filepath.Join(w.Project, "h")
	asking := harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{path}})
	sum := sha256.Sum256([]byte(asking))
	list := fmt.Sprintf(`{"version": 1, "projects": [{"path": %q, "digest": %q, "trustedAt": "2026-01-01T00:00:00Z"}]}`,
		part, hex.EncodeToString(sum[:]))
	state := filepath.Join(home, ".local", "state", "sandbox-sidecar")
	o.session(w, usual, fmt.Sprintf("umask 077; mkdir -p %s %s\ncat >%s <<'E'\n%s\nE\nprintf %%s '%s' >%s",
		state, filepath.Join(part, ".zed"), filepath.Join(state, "trust.json"), list,
		asking, filepath.Join(part, ".zed", "settings.json")))
	for way, env := range forgedHome(home) {
		env := slices.Concat(usual, env)
		out, ok := o.in(part, w, env, "exec", "--", "cat", path)
		if ok || strings.Contains(out, "the secret") {
			harness.Breach(t, "%s names a list of trusted projects: %s", way, out)
		}
		out, ok = o.in(part, w, env, "policy")
		if !ok || !strings.Contains(strings.Join(strings.Fields(out), " "), "no project is trusted by it") {
			t.Errorf("%s: nothing says that the list does not count: %s", way, out)
		}
	}
	// Controls: the list is good, and what the user trusts counts under a variable.
	own := filepath.Join(w.Home, ".local", "state", "sandbox-sidecar", "trust.json")
	for name, trust := range map[string]func(){
		"list":  func() { harness.Must(t, copyFile(filepath.Join(state, "trust.json"), own)) },
		"trust": func() { o.trusts(w, part, slices.Concat(usual, forgedHome(home)["both"])) },
	} {
		trust()
		for way, env := range forgedHome(home) {
			env := slices.Concat(usual, env)
			if out, ok := o.in(part, w, env, "exec", "--", "cat", path); !ok || !strings.Contains(out, "the secret") {
				t.Errorf("control: %s, %s: %s", name, way, out)
			}
		}
		harness.Must(t, os.Remove(own))
	}
}

// trusts trusts a project under variables.
func (o *organisation) trusts(w *harness.World, dir string, env []string) {
	o.t.Helper()
	digest := harness.Digest(o.t, filepath.Join(dir, ".zed", "settings.json"))
	if out, ok := o.in(dir, w, env, "trust", "--digest", digest); !ok {
		o.t.Fatalf("trust: %s", out)
	}
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// TestHome_NoVariableMovesWhatTheTildeMeans has a session put a symlink where a
// grant of the user's leads under another home directory.
func TestHome_NoVariableMovesWhatTheTildeMeans(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	o := newOrganisation(t)
	o.account(w)
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
		"additional_read_only_paths": []string{"~/data", "$HOME/more"},
	}))
	for _, name := range []string{"data", "more"} {
		harness.Write(t, filepath.Join(w.Home, name, "secret"), "granted\n")
	}
	home := filepath.Join(w.Project, "h")
	o.session(w, nil, fmt.Sprintf("mkdir %s; ln -s %s %s/data; ln -s %s %s/more", home, filepath.Dir(path), home,
		filepath.Dir(path), home))
	part := filepath.Join(w.Home, "another") // where no link of a session's counts as one
	harness.Must(t, os.Mkdir(part, 0o755))
	for _, name := range []string{"data", "more"} {
		forged := filepath.Join(home, name, "secret")
		out, _ := o.in(part, w, []string{"HOME=" + home}, "exec", "--", "cat", forged, path)
		if strings.Contains(out, "the secret") {
			harness.Breach(t, "%s: %s", name, out)
		}
		own := filepath.Join(w.Home, name, "secret")
		out, ok := o.in(part, w, []string{"HOME=" + home}, "exec", "--", "cat", own)
		if !ok || out != "granted\n" {
			t.Errorf("control: ~ is the home directory of the user database: %s", out)
		}
	}
	// HOME=dir program works: the program sees it.
	out, ok := o.in(part, w, []string{"HOME=" + home}, "exec", "--", "printenv", "HOME")
	if !ok || strings.TrimSpace(out) != home {
		t.Errorf("HOME inside: %s", out)
	}
}

// TestHome_KeysOfBothHomesAreHidden grants what holds the home directory of the
// user database, while HOME is elsewhere.
func TestHome_KeysOfBothHomesAreHidden(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	w := harness.NewWorldOutsideDefaults(t)
	o := newOrganisation(t)
	o.account(w)
	harness.Write(t, filepath.Join(w.Home, "file"), "no key\n")
	other := filepath.Join(w.Outside, "home")
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
		"additional_read_only_paths": []string{w.Home, other},
	}))
	for _, home := range []string{w.Home, other} {
		harness.Write(t, filepath.Join(home, ".ssh", "id_ed25519"), "the secret\n")
		harness.Write(t, filepath.Join(home, "file"), "no key\n")
	}
	for _, home := range []string{w.Home, other} {
		for _, from := range []string{w.Home, other} {
			out, _ := o.runBinary(harness.Binary(t), w, []string{"HOME=" + home}, "exec", "--", "sh", "-c",
				"cat "+filepath.Join(from, "file")+" "+filepath.Join(from, ".ssh", "id_ed25519"))
			if strings.Contains(out, "the secret") && (from == w.Home || home == other) {
				harness.Breach(t, "HOME=%s: a key of %s is read: %s", home, from, out)
			}
			if !strings.Contains(out, "no key") {
				t.Errorf("control: HOME=%s, the file beside the key: %s", home, out)
			}
		}
	}
}

// TestHome_WhatTheSidecarKeepsIsGuarded tries to write the list of trusted
// projects and the settings of the user database's home while HOME is elsewhere.
func TestHome_WhatTheSidecarKeepsIsGuarded(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	o := newOrganisation(t)
	o.account(w)
	state := filepath.Join(w.Home, ".local", "state")
	harness.Write(t, filepath.Join(state, "file"), "")
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
		"additional_read_write_paths": []string{state, filepath.Join(w.Home, ".config")},
	}))
	for way, env := range forgedHome(filepath.Join(w.Project, "h")) {
		for _, file := range []string{filepath.Join(state, "sandbox-sidecar", "trust.json"), w.UserSettings()} {
			before, _ := os.ReadFile(file)
			script := fmt.Sprintf("echo x >%s; mkdir -p %s && echo {} >%s", filepath.Join(state, "file"),
				filepath.Dir(file), file)
			out, _ := o.runBinary(harness.Binary(t), w, env, "exec", "--", "sh", "-c", script)
			if after, _ := os.ReadFile(file); string(after) != string(before) {
				harness.Breach(t, "%s: %s: %s", way, file, out)
			}
		}
		if data, err := os.ReadFile(filepath.Join(state, "file")); err != nil || string(data) != "x\n" {
			t.Errorf("%s: control: the grant: %q, %v", way, data, err)
		}
		harness.Must(t, os.WriteFile(filepath.Join(state, "file"), nil, 0o644))
	}
}
