//go:build unix

package lifecycle

import (
	"os"
	"os/signal"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

func init() {
	proctest.Helpers["watchdog"] = func(args []string) {
		// RunWatchdog does this itself, but perhaps after the first signal.
		signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
		proctest.Ready()
		os.Exit(RunWatchdog(args[0]))
	}
}

func TestMain(m *testing.M) { proctest.Main(m, roles) }
