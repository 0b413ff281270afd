//go:build linux

package syscalls

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// System V IPC is private to the session if it has an IPC namespace; otherwise
// it is refused.
func TestSystemVIPCIsPrivateOrRefused(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	for _, machine := range harness.Machines(t) {
		w := harness.NewWorld(t)
		e := harness.Start(t, w, harness.Options{Settings: sandboxed(), Wrap: machine.Wrap})
		for _, kind := range []string{"-M 4096", "-Q", "-S 1"} {
			output, status := e.Tool("id=$(ipcmk " + kind + " | grep -o '[0-9]*$') && echo made $id")
			if made := status == 0 && strings.Contains(output, "made 0"); made != machine.Namespaces {
				t.Errorf("%s: ipcmk %s: status %d: %s", machine.Name, kind, status, output)
			}
			if !machine.Namespaces && !strings.Contains(output, "not implemented") {
				t.Errorf("%s: ipcmk %s is not answered as by a kernel without it: %s", machine.Name, kind, output)
			}
		}
	}
}
