//go:build unix

package tests

import (
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

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
