//go:build unix

package roles

import (
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

func init() {
	switch {
	case len(os.Args) == 2 && hidden[os.Args[1]] != nil:
		os.Exit(hidden[os.Args[1]]())
	case len(os.Args) == 3 && os.Args[1] == "watchdog":
		os.Exit(lifecycle.RunWatchdog(os.Args[2]))
	}
}
