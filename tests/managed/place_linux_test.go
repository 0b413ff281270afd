package managed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// account makes a user database in which the caller's home directory is that of
// the world. Tests change HOME, which usually names it.
func (o *organisation) account(w *harness.World) {
	o.t.Helper()
	line := "root:x:0:0::" + w.Home + ":/bin/sh\n" // the namespace has no other user
	if err := os.WriteFile(filepath.Join(o.etc, "empty", "passwd"), []byte(line), 0o644); err != nil {
		o.t.Fatal(err)
	}
}

// elsewhere are the ways to name another place of settings, given a directory.
// Each has the settings directory that it leads to.
func elsewhere(dir string) map[string]struct {
	env    []string
	config string
} {
	return map[string]struct {
		env    []string
		config string
	}{
		"HOME":            {[]string{"HOME=" + dir}, filepath.Join(dir, ".config")},
		"XDG_CONFIG_HOME": {[]string{"XDG_CONFIG_HOME=" + dir}, dir},
		"both":            {[]string{"HOME=" + filepath.Join(dir, "none"), "XDG_CONFIG_HOME=" + dir}, dir},
	}
}

// TestPlace_NoVariableTakesSettingsAway has a session write settings into its
// project, and the next command be started with a variable that names them.
func TestPlace_NoVariableTakesSettingsAway(t *testing.T) {
	t.Parallel()
	for _, layer := range []string{"sandbox-sidecar", "zed"} {
		for name, content := range map[string]string{
			"off":     harness.Off(),
			"opens":   harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{"/"}}),
			"relaxed": `{"terminal": {"sandbox": {"mode": "relaxed"}}}`,
			"tools":   `{"terminal": {"sandbox": {"enabled": true, "terminal": {"enabled": false}}}}`,
			"empty":   "{}",
			"nothing": "",
			"broken":  "{",
		} {
			t.Run(layer+" "+name, func(t *testing.T) {
				t.Parallel()
				w := harness.NewWorldOutsideDefaults(t)
				path := secret(t, w)
				o := newOrganisation(t)
				o.account(w)
				for way, to := range elsewhere(filepath.Join(w.Project, "elsewhere")) {
					file := filepath.Join(to.config, layer, "settings.json")
					harness.Write(t, file, content)
					own := filepath.Join(w.Home, ".config", layer, "settings.json")
					harness.Write(t, own, harness.Defaults(nil))
					out, ok := o.runBinary(harness.Binary(t), w, to.env, "exec", "--", "cat", path)
					if ok || strings.Contains(out, "the secret") {
						harness.Breach(t, "%s in the place of the user's settings: %s", way, out)
					}
					if name == "broken" || name == "nothing" && layer != "zed" {
						continue // nothing starts, as with every file
					}
					if out, ok := o.runBinary(harness.Binary(t), w, to.env, "exec", "--", "true"); !ok {
						t.Errorf("%s: control: nothing runs: %s", way, out)
					}
					if err := os.Remove(own); err != nil {
						t.Fatal(err)
					}
					out, _ = o.runBinary(harness.Binary(t), w, to.env, "exec", "--", "cat", path)
					if strings.Contains(out, "the secret") && o.counted(w) {
						harness.Breach(t, "%s, the settings at home are gone: %s", way, out)
					}
					o.forget(w)
					out, ok = o.runBinary(harness.Binary(t), w, to.env, "exec", "--", "cat", path)
					if !ok && name == "off" {
						t.Errorf("%s: control: without settings at home: %s", way, out)
					}
					if name == "opens" && strings.Contains(out, "the secret") {
						harness.Breach(t, "%s, without settings at home: %s", way, out)
					}
				}
			})
		}
	}
}

// counted reports whether there is a note that settings have counted.
func (o *organisation) counted(w *harness.World) bool {
	_, err := os.Lstat(filepath.Join(w.Home, ".local", "state", "sandbox-sidecar", "settings-counted"))
	return err == nil
}

// forget removes all notes, as before the first session.
func (o *organisation) forget(w *harness.World) {
	o.t.Helper()
	for _, notes := range []string{"settings-counted", "sessions-wrote"} {
		harness.Must(o.t, os.RemoveAll(filepath.Join(w.Home, ".local", "state", "sandbox-sidecar", notes)))
	}
}

// TestPlace_SettingsElsewhereTighten switches the network off by a file that a
// variable names, beside the user's own settings.
func TestPlace_SettingsElsewhereTighten(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	o := newOrganisation(t)
	o.account(w)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	for way, to := range elsewhere(filepath.Join(w.Project, "elsewhere")) {
		file := filepath.Join(to.config, "sandbox-sidecar", "settings.json")
		for content, want := range map[string]string{
			`{"terminal": {"sandbox": {"allow_network": false}}}`: "false",
			`{"terminal": {"sandbox": {"allow_network": true}}}`:  "true",
		} {
			harness.Write(t, file, content)
			out, ok := o.runBinary(harness.Binary(t), w, to.env, "policy")
			if !ok || !strings.Contains(strings.Join(strings.Fields(out), " "), "allow_network "+want) ||
				!strings.Contains(out, "can only tighten") {
				t.Errorf("%s, %s: %s", way, content, out)
			}
		}
	}
}

// TestPlace_WithoutSettingsAtHomeThoseElsewhereCount is the story of a user
// whose settings are where XDG_CONFIG_HOME says.
func TestPlace_WithoutSettingsAtHomeThoseElsewhereCount(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	config := filepath.Join(w.Home, "configuration")
	o := newOrganisation(t)
	o.account(w)
	// Every user of Zed has this file, and it says nothing about sessions.
	harness.Write(t, filepath.Join(w.Home, ".config", "zed", "settings.json"), `{"theme": "One Dark"}`)
	for content, readable := range map[string]bool{
		harness.Defaults(nil): false,
		harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{path}}): true,
	} {
		harness.Write(t, filepath.Join(config, "sandbox-sidecar", "settings.json"), content)
		out, ok := o.runBinary(harness.Binary(t), w, []string{"XDG_CONFIG_HOME=" + config}, "exec", "--", "cat", path)
		if ok != readable || strings.Contains(out, "only tighten") {
			t.Errorf("%s: %s", content, out)
		}
	}
}

// TestPlace_InitWritesWhatCounts has init started with a variable that names
// another place. Beside settings at home, a file there could only tighten.
func TestPlace_InitWritesWhatCounts(t *testing.T) {
	t.Parallel()
	for _, atHome := range []bool{true, false} {
		w := harness.NewWorldOutsideDefaults(t)
		o := newOrganisation(t)
		o.account(w)
		dir := filepath.Join(w.Home, "elsewhere")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(dir, "sandbox-sidecar", "settings.json")
		written := other
		if atHome {
			harness.Write(t, w.UserSettings(), "{}")
			written = w.UserSettings()
		}
		out, ok := o.runBinary(harness.Binary(t), w, []string{"XDG_CONFIG_HOME=" + dir}, "init", "--yes")
		text := strings.Join(strings.Fields(out), "")
		if !ok || !strings.Contains(text, written) || !strings.Contains(text, "sandboxedfromnowon:terminalsandtools") {
			t.Errorf("settings at home: %v: %s", atHome, out)
		}
		if _, err := os.Lstat(other); (err == nil) == atHome {
			t.Errorf("settings at home: %v: the file elsewhere: %v", atHome, err)
		}
	}
}
