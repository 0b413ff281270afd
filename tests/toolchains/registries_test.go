//go:build linux

package toolchains

import (
	"maps"
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

// Sessions read the settings of files that hold tokens, without the tokens. On a
// machine without namespaces they read nothing of them. Outside, the files stay
// as they are.
func TestRegistriesWithoutTokens(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "npm", "pip3")
	const token = "npm_q8Zr2Kx7Vb4Ty1Lw9Dm3"
	files := map[string]string{
		".npmrc": "registry=https://npm.corp.example/\n//npm.corp.example/:_authToken=" + token + "\n",
		".yarnrc.yml": "npmScopes:\n  corp:\n    npmRegistryServer: \"https://u:" + token + "@yarn.corp.example\"\n" +
			"    npmAuthToken: " + token + "\n",
		".pip/pip.conf": "[global]\nindex-url = https://u:" + token + "@pip.corp.example/simple\n",
		".hgrc":         "[ui]\nusername = Me <me@corp.example>\n[auth]\ncorp.password = " + token + "\n",
		".curlrc":       "proxy = http://u:" + token + "@curl.corp.example:3128\nuser = u:" + token + "\n",
		".wgetrc":       "https_proxy = http://wget.corp.example:3128\npassword = " + token + "\n",
		".m2/settings.xml": "<settings><servers><server><password>" + token + "</password></server></servers>" +
			"<mirrors><mirror><url>https://maven.corp.example/</url></mirror></mirrors></settings>\n",
		// A default grant has ~/.config.
		".config/pip/pip.conf": "[install]\nextra-index-url = https://u:" + token + "@more.corp.example/simple\n",
	}
	// No spinner and no colour stands before a line.
	const line = "export TERM=dumb NO_COLOR=1 npm_config_progress=false; " +
		"npm config get registry; pip3 config get global.index-url; cat ~/.yarnrc.yml; " +
		"cat ~/.npmrc ~/.pip/pip.conf ~/.config/pip/pip.conf ~/.hgrc ~/.curlrc ~/.wgetrc " +
		"~/.m2/settings.xml; grep -rs " + token + " ~; echo x >>~/.npmrc"
	newWorld := func(t *testing.T) *harness.World {
		t.Helper()
		w := harness.NewWorldOutsideDefaults(t)
		for file, text := range files {
			harness.Write(t, filepath.Join(w.Home, file), text)
		}
		return w
	}
	t.Run("outside", func(t *testing.T) { // the control of all others
		t.Parallel()
		w := newWorld(t)
		command := exec.Command("/bin/sh", "-c", line)
		command.Dir, command.Env = w.Project, append(harness.Environ(w), "PATH="+harness.SearchPath)
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), token) {
			t.Errorf("%v: %s", err, out)
		}
	})
	grants := map[string]harness.Sandbox{
		"toolchains": {"toolchains": []string{"node", "python"}},
		// Where the home directory is granted, what is in the place of a hidden
		// file must not be hidden.
		"home": {"toolchains": []string{"node"}, "additional_read_only_paths": []string{"~"}},
		"none": {},
	}
	machines := harness.Machines(t)
	for i, machine := range machines {
		for j, name := range slices.Sorted(maps.Keys(grants)) {
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			t.Run(machine.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				e := harness.Start(t, w, harness.Options{
					Settings: harness.Defaults(grants[name]), Env: []string{"PATH=" + harness.SearchPath},
					Wrap: machine.Wrap,
				})
				session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
				session.Exit()
				output := strings.ReplaceAll(session.Output(), "\r", "")
				// Without namespaces nothing in a granted directory is hidden.
				open := !machine.Namespaces && name == "home"
				given := machine.Namespaces
				if strings.Contains(output, token) != !machine.Namespaces {
					t.Errorf("a token is read: %t, want %t:\n%s", machine.Namespaces, !machine.Namespaces, output)
				}
				for want, is := range map[string]bool{
					"https://npm.corp.example/\n":                        given || open,
					"npmRegistryServer: \"https://yarn.corp.example\"\n": given,
					"\nhttps://pip.corp.example/simple\n":                given,
					"= https://more.corp.example/simple\n":               given,
					"username = Me <me@corp.example>\n":                  given || open,
					"proxy = http://curl.corp.example:3128\n":            given,
					"https_proxy = http://wget.corp.example:3128\n":      given || open,
					"<url>https://maven.corp.example/</url>":             given || open,
				} {
					if strings.Contains(output, want) != is {
						t.Errorf("%q is printed: %t, want %t:\n%s", want, !is, is, output)
					}
				}
				if got := harness.Read(t, filepath.Join(w.Home, ".npmrc")); got != files[".npmrc"] {
					t.Errorf("a session has changed it: %q", got)
				}
			})
		}
	}
}

// A token that is added while a session runs is no part of what the session
// reads, whether the file is written in place or replaced. Only a grant of the
// home directory shows a file that replaces the hidden one, as SECURITY.md says.
func TestRegistries_ATokenIsAddedLater(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "hidden_paths")
	const token = "npm_q8Zr2Kx7Vb4Ty1Lw9Dm3"
	const before, after = "fund=false\n_auth=first\n", "fund=false\n_auth=" + token + "\n"
	for name, test := range map[string]struct {
		keys     harness.Sandbox
		replaced bool
		want     bool // the token is read
	}{
		"in place":                {nil, false, false},
		"replaced":                {nil, true, false},
		"in place, home granted":  {harness.Sandbox{"additional_read_only_paths": []string{"~"}}, false, false},
		"replaced, home granted":  {harness.Sandbox{"additional_read_only_paths": []string{"~"}}, true, true},
		"the file itself granted": {harness.Sandbox{"additional_read_only_paths": []string{"~/.npmrc"}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			file := filepath.Join(w.Home, ".npmrc")
			harness.Write(t, file, before)
			changed := filepath.Join(w.Project, "changed") // a tool has no input
			if err := unix.Mkfifo(changed, 0o600); err != nil {
				t.Fatal(err)
			}
			e := harness.Start(t, w, harness.Options{
				Settings: harness.Defaults(test.keys), Env: []string{"PATH=" + harness.SearchPath},
			})
			session := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Command: "cat ~/.npmrc; echo is-ready; cat changed; cat ~/.npmrc; echo at-end",
			})
			session.Await("fund=false\r?\n(.*\r?\n)?is-ready")
			if test.replaced {
				harness.Write(t, file+".new", after)
				if err := os.Rename(file+".new", file); err != nil {
					t.Fatal(err)
				}
			} else {
				harness.Write(t, file, after)
			}
			harness.Write(t, changed, "changed\n")
			session.Exit()
			if output := session.Output(); strings.Contains(output, token) != test.want ||
				!strings.Contains(output, "changed\n") || !strings.Contains(output, "at-end") {
				t.Errorf("the token is read: %t, want %t:\n%s", !test.want, test.want, output)
			}
		})
	}
}
