//go:build linux

package toolchains

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Sessions read the registries of files that hold tokens, without the tokens. On
// a machine without namespaces they read nothing of them. Outside, the files stay
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
	}
	const line = "npm config get registry; pip3 config get global.index-url; cat ~/.yarnrc.yml; " +
		"cat ~/.npmrc ~/.pip/pip.conf; grep -rs " + token + " ~; echo x >>~/.npmrc"
	for _, machine := range harness.Machines(t) {
		for name, keys := range map[string]harness.Sandbox{
			"toolchains": {"toolchains": []string{"node", "python"}},
			// Where the home directory is granted, what is in the place of a
			// hidden file must not be hidden.
			"home": {"toolchains": []string{"node"}, "additional_read_only_paths": []string{"~"}},
			"none": {},
		} {
			t.Run(machine.Name+" "+name, func(t *testing.T) {
				t.Parallel()
				w := harness.NewWorldOutsideDefaults(t)
				for file, text := range files {
					if name != "home" || file != ".pip/pip.conf" { // no set hides that
						harness.Write(t, filepath.Join(w.Home, file), text)
					}
				}
				e := harness.Start(t, w, harness.Options{
					Settings: harness.Defaults(keys), Env: []string{"PATH=" + harness.SearchPath}, Wrap: machine.Wrap,
				})
				session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
				session.Exit()
				output := strings.ReplaceAll(session.Output(), "\r", "")
				// Without namespaces nothing in a granted directory is hidden.
				open := !machine.Namespaces && name == "home"
				given := machine.Namespaces && name != "none"
				if strings.Contains(output, token) != open {
					t.Errorf("a token is read: %t, want %t:\n%s", !open, open, output)
				}
				for want, is := range map[string]bool{
					"https://npm.corp.example/\n":                        given || open,
					"npmRegistryServer: \"https://yarn.corp.example\"\n": given,
					"\nhttps://pip.corp.example/simple\n":                given && name != "home",
				} {
					if strings.Contains(output, want) != is {
						t.Errorf("%q is printed: %t, want %t:\n%s", want, !is, is, output)
					}
				}
				if got := harness.Read(t, filepath.Join(w.Home, ".npmrc")); got != files[".npmrc"] {
					t.Errorf("a session has changed it: %q", got)
				}
				// The control: outside, the same line finds tokens.
				command := exec.Command("/bin/sh", "-c", line)
				command.Dir, command.Env = w.Project, append(harness.Environ(w), "PATH="+harness.SearchPath)
				if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), token) {
					t.Errorf("outside: %v: %s", err, out)
				}
			})
		}
	}
}
