//go:build linux

package groups

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// strangers are sessions of the same project that share nothing with the group
// "agent".
var strangers = []string{"other", "own"}

// victim puts the hostile program into the project, and returns its path.
func victim(t *testing.T, e *harness.Editor) string {
	t.Helper()
	path := e.World.ProjectPath("victim")
	harness.Victim(t, "tests/victim", path)
	return path
}

// place is where a call leaves something.
type place struct{ leave, find string }

// left is what the call leaves, in each place.
const left = "left-by-the-agent"

// privatePlaces are for temporary files and System V IPC. Without namespaces all
// programs of the machine share them.
func privatePlaces(victim string) map[string]place {
	places := map[string]place{}
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		places[dir] = place{"echo " + left + " >" + dir + "/file", "cat " + dir + "/file"}
	}
	for action, kind := range map[string]string{"shared-memory": "-M 4096", "message-queue": "-Q"} {
		id := fmt.Sprintf(`"$(cat %s.id)"`, action) // in the project, which all see
		use := harness.Quote(victim) + " " + action + " " + id
		places[action] = place{
			fmt.Sprintf(`ipcmk %s | grep -o "[0-9]*$" >%s.id; %s %s`, kind, action, use, left), use,
		}
	}
	return places
}

// abstract is a Unix socket without a file.
func abstract(w *harness.World) place {
	name := filepath.Base(filepath.Dir(w.Home)) // no other test has it
	return place{
		fmt.Sprintf(`/usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.bind("\0%s"); s.listen(); open("listens", "w").close()
while True:
    c = s.accept()[0]; c.sendall(b"%s"); c.close()' &
until test -e listens; do kill -0 $! || exit 9; done`, name, left),
		fmt.Sprintf(`/usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_UNIX); s.connect("\0%s"); print(s.recv(100).decode())'`, name),
	}
}

// Two agents of one project do not meet in places without a permission: temporary
// files, System V IPC and abstract sockets. The next call of the same agent finds
// there what the first has left. Processes are in
// TestGroup_OnlyItsCallsReachItsProcesses, ports in
// TestGroup_EachHasAllPortsOfLocalhost.
func TestGroup_MeetsNoOtherOfItsProject(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "ipcmk")
	onBoth(t, func(t *testing.T, e *harness.Editor, machine harness.Machine) {
		places := map[string]place{}
		if machine.Namespaces {
			places = privatePlaces(victim(t, e))
		}
		if machine.Namespaces || e.Hello.Capabilities.Enforcement["unix_sockets"].Status == protocol.Enforced {
			places["abstract socket"] = abstract(e.World)
		}
		for name, p := range places {
			if out, exit := run(e, "agent", p.leave); exit.ExitCode == nil || *exit.ExitCode != 0 {
				t.Errorf("control: %s: nothing is left: %q, %+v", name, out, exit)
			}
			for _, group := range strangers {
				if out, _ := run(e, group, p.find); strings.Contains(out, left) {
					harness.Breach(t, "%s: group %q finds what another has left: %q", name, group, out)
				}
			}
			// This comes last, because who reads a message takes it.
			if out, _ := run(e, "agent", p.find); out != left {
				t.Errorf("control: %s: the next call finds %q", name, out)
			}
		}
	})
}
