//go:build linux

package toolchains

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Files of settings that variables name count inside, without their tokens. So no
// program asks a public registry in silence. Where a set does not bring the
// variable, a warning says so, and a line of variables opens nothing of another
// project.
func TestVariables_NameSettings(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "hidden_paths")
	harness.RequirePrograms(t, "npm", "pip3")
	const token = "npm_q8Zr2Kx7Vb4Ty1Lw9Dm3"
	const npmrc = "registry=https://npm.corp.example/\n//npm.corp.example/:_authToken=" + token + "\n"
	const line = "export TERM=dumb NO_COLOR=1; npm config get registry; pip3 config debug; " +
		"cat \"$NPM_CONFIG_USERCONFIG\"; grep -rs " + token + " ~"
	world := func(at string) (*harness.World, []string) {
		w := harness.NewWorldOutsideDefaults(t)
		harness.Write(t, w.HomePath(at), npmrc)
		harness.Write(t, w.HomePath("etc/pip.conf"),
			"[global]\nindex-url = https://u:"+token+"@pip.corp.example/simple\n")
		return w, []string{
			"PATH=" + harness.SearchPath, "NPM_CONFIG_USERCONFIG=" + w.HomePath(at),
			"PIP_CONFIG_FILE=" + w.HomePath("etc/pip.conf"),
		}
	}
	ask := func(w *harness.World, env []string, sets ...string) (output string, warned bool) {
		e := harness.Start(t, w, harness.Options{
			Settings: harness.Defaults(harness.Sandbox{"toolchains": sets}), Env: env,
		})
		reply := harness.Call(e, protocol.PolicyGet,
			protocol.PolicyGetParams{ProjectDir: w.Project, Kind: protocol.Tool})
		for _, d := range reply.Policy.Diagnostics {
			warned = warned || strings.Contains(d.Message, "NPM_CONFIG_USERCONFIG names ")
		}
		session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
		session.Exit()
		return strings.ReplaceAll(session.Output(), "\r", ""), warned
	}

	w, env := world("etc/npmrc")
	output, warned := ask(w, env, "node", "python")
	if !strings.Contains(output, "https://npm.corp.example/\n") ||
		!strings.Contains(output, "https://pip.corp.example/simple\n") || warned {
		t.Errorf("the settings do not count, or a warning says so (%t):\n%s", warned, output)
	}
	if strings.Contains(output, token) {
		harness.Breach(t, "a token is read:\n%s", output)
	}
	if output, warned = ask(w, env); !warned || strings.Contains(output, token) {
		t.Errorf("without the sets nothing is said, or a token is read:\n%s", output)
	}
	other, env := world("work/.npmrc")
	harness.Write(t, other.HomePath("work/.git/HEAD"), "ref: refs/heads/main\n")
	if output, warned = ask(other, env, "node"); !warned || strings.Contains(output, "npm.corp.example") {
		harness.Breach(t, "a variable opens another project (warned: %t):\n%s", warned, output)
	}
}
