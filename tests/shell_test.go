//go:build unix

package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The settings name the shell of terminals and of command lines. Zed's own
// setting counts for terminals, and a project's for nothing.
func TestTheShellOfTheSettings(t *testing.T) {
	t.Parallel()
	const zed = `{"terminal": {"shell": {"with_arguments": {"program": "/bin/sh", "args": ["-c", "echo zeds"]}}, ` +
		`"sandbox": {"enabled": true%s}}}`
	for _, test := range map[string]struct {
		settings, project string
		kind              protocol.Kind
		want              string
	}{
		"Zed's, for a terminal": {fmt.Sprintf(zed, ""), "", protocol.Terminal, "zeds"},
		"ours counts more": {
			fmt.Sprintf(zed, `, "terminal": {"shell": ["/bin/sh", "-c", "echo ours"]}`), "", protocol.Terminal, "ours",
		},
		"a command line": {
			fmt.Sprintf(zed, `, "shell": ["/bin/sh", "-c", "echo line: $1", "sh"]`), "", protocol.Tool, "line: -c",
		},
		"a project": {
			fmt.Sprintf(zed, ""), `{"terminal": {"shell": {"program": "/bin/false"}, ` +
				`"sandbox": {"shell": ["/bin/false"]}}}`, protocol.Terminal, "zeds",
		},
	} {
		w := harness.NewWorld(t)
		harness.Write(t, filepath.Join(w.Home, ".config", "zed", "settings.json"), test.settings)
		if test.project != "" {
			harness.Write(t, filepath.Join(w.Project, ".zed", "settings.json"), test.project)
		}
		e := harness.Start(t, w, harness.Options{Settings: "{}"})
		params := protocol.SpawnParams{Kind: test.kind}
		if test.kind == protocol.Tool {
			params.Command = "true"
		}
		e.Spawn(params).Await(test.want + "\r?\n")
	}
}

// A command line may use bash's own words if the machine has bash.
func TestACommandLineIsForBash(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/bash"); err != nil {
		harness.Skip(t, "bash", err.Error())
	}
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Settings(nil)})
	for _, kind := range []protocol.Kind{protocol.Tool, protocol.Terminal} {
		session, status := e.Run(protocol.SpawnParams{
			Kind: kind, Command: `set -o pipefail; [[ abc == a* ]] && false | true; echo "$?"`,
		})
		if status != 0 || session.Argv[0] != "/bin/bash" {
			t.Errorf("%s: status %d, %q: %s", kind, status, session.Argv, session.Output())
		}
		session.Await(`^1\r?\n`)
	}
}
