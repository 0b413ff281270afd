//go:build unix

package platformtest

import (
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// actorName is the first argument of an actor.
const actorName = "platformtest-actor"

// Main runs a package's tests, or the role that this process was started for:
// the stage, which confines itself by the given function, or an actor. TestMain
// calls it first; it does not return.
func Main(m *testing.M, confine handshake.ConfineSelf) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "stage":
			os.Exit(handshake.RunStage(confine, nil))
		case actorName:
			os.Exit(performAll(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}
