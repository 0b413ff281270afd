package systemd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// units are how a desktop or a service for remote work starts an editor: the
// user's systemd starts them in a cgroup that the user owns. Such a service
// does not inherit the environment of the process that requests it.
var units = []struct {
	name, kind string
	through    []string
}{
	{"service", ".service", []string{
		"--pipe", "--wait", "--collect", "--quiet", "-E", "HOME", "-E", "PATH", "-E",
		"SHELL", "-E", "USER",
	}},
	{"delegated service", ".service", []string{
		"--pipe", "--wait", "--collect", "--quiet", "-p", "Delegate=yes", "-E", "HOME", "-E", "PATH", "-E",
		"SHELL", "-E", "USER",
	}},
	{"scope", ".scope", []string{"--scope", "--quiet", "-p", "Delegate=yes"}},
}

// A sidecar in a unit of the user's systemd divides the unit's own cgroup. It
// needs no help for that, and no process outlives its session.
func TestASidecarInAUnitOfTheUsersDividesItsCgroup(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	for _, unit := range units {
		t.Run(unit.name, func(t *testing.T) {
			t.Parallel()
			through := append([]string{"/usr/bin/systemd-run", "--user"}, unit.through...)
			e := l.editThrough(t, through, harness.Off(), "XDG_RUNTIME_DIR="+l.runtime,
				"DBUS_SESSION_BUS_ADDRESS=unix:path="+l.runtime+"/bus")
			b := harness.StartEscapees(t, e, protocol.Tool)
			if got := b.Session.Tracking; got.Mechanism != "cgroup" || !got.Guarantee {
				t.Errorf("tracking %+v, expected a cgroup and a guarantee", got)
			}
			for _, pid := range b.Alive() {
				line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
				if err == nil && !strings.Contains(string(line), unit.kind+"/sandbox-sidecar-") {
					t.Errorf("process %d is not below the cgroup of the unit:\n%s", pid, line)
				}
			}
			if result := b.Session.Close(0); result.Remaining != 0 {
				t.Errorf("close says %+v", result)
			}
			b.AwaitDead(t)
		})
	}
}
