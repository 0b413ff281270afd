//go:build linux

package groups

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// serveAs is a server on localhost in the background. It answers with a word. The
// command prints its port, and fails if the server cannot listen there. The port 0
// is any.
func serveAs(word string, port int) string {
	return fmt.Sprintf(`/usr/bin/python3 -c '
import os, socket
s = socket.create_server(("127.0.0.1", %[2]d))
with open("%[1]s.part", "w") as f: f.write(str(s.getsockname()[1]))
os.rename("%[1]s.part", "%[1]s.port")
while True:
    c = s.accept()[0]; c.sendall(b"served by %[1]s"); c.close()' &
until test -e %[1]s.port; do kill -0 $! || exit 9; done; cat %[1]s.port`, word, port)
}

// askAt asks a server on localhost, and prints its answer or what was refused.
func askAt(port int) string {
	return fmt.Sprintf(`/usr/bin/python3 -c '
import socket
try: print(socket.create_connection(("127.0.0.1", %d)).recv(100).decode())
except OSError as e: print(type(e).__name__)'`, port)
}

// started runs serveAs in a group of a project, and returns the port.
func started(t *testing.T, e *harness.Editor, group, project, word string, port int) int {
	t.Helper()
	s, status := e.Run(protocol.SpawnParams{
		Group: group, Cwd: project, ProjectDir: project, Command: serveAs(word, port),
	})
	port, err := strconv.Atoi(strings.TrimSpace(s.Output()))
	if status != 0 || err != nil || s.Exit().Background != 1 {
		t.Fatalf("a server of group %q: status %d, %+v, %q", group, status, s.Exit(), s.Output())
	}
	return port
}

// With the network off, and with single hosts, each group has a localhost with all
// ports. Two groups of a project and a service of this machine use one port, and
// reach what is theirs. Each group reaches the allowed host, and no server of
// another.
func TestGroup_EachHasAllPortsOfLocalhost(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	machines := withNamespaces(t)
	for i, machine := range machines {
		for j, network := range []string{"off", "by host"} {
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			t.Run(machine.Name+", "+network, func(t *testing.T) {
				t.Parallel()
				w, port := harness.NewWorldOutsideDefaults(t), serveOutside(t, harness.FreePort(t))
				hosts := []string{}
				if network == "by host" {
					harness.Require(t, "network_hosts")
					hosts = append(hosts, fmt.Sprintf("localhost:%d", port))
				}
				e := harness.Start(t, w, harness.Options{
					Settings: settings(harness.Sandbox{"allowed_hosts": hosts}), Wrap: machine.Wrap,
				})
				started(t, e, "agent", w.Project, "agent", port)
				started(t, e, "other", w.Project, "other", port)
				for group, want := range map[string]string{
					"agent": "served by agent", "other": "served by other",
					"third": "ConnectionRefusedError", "own": "ConnectionRefusedError",
				} {
					out, _ := run(e, group, askAt(port))
					switch {
					case out == want:
					case strings.Contains(out, "served") || strings.Contains(out, "outside"):
						harness.Breach(t, "group %q reaches %q, want %q", group, out, want)
					default:
						t.Errorf("group %q: %q, want %q", group, out, want)
					}
					out, _ = run(e, group, connecting(port).line)
					switch reached := strings.Contains(out, "outside"); {
					case reached && len(hosts) == 0:
						harness.Breach(t, "with the network off group %q reaches a service of this machine: %q", group, out)
					case !reached && len(hosts) > 0:
						t.Errorf("group %q does not reach the allowed host: %q", group, out)
					}
				}
			})
		}
	}
}

// With the network on, the next call reaches a server by localhost, and no session
// of another project does. Sessions of the same project do, in whatever group they
// are: docs/design/localhost.md.
func TestGroup_ServersWithTheNetworkOn(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	for _, machine := range inTurn(t, machines(t)) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			e := harness.Start(t, w, harness.Options{
				Settings: harness.Defaults(harness.Sandbox{"allow_network": true, "localhost": "own"}),
				Wrap:     machine.Wrap,
			})
			another := w.OutsidePath("another")
			harness.MakeDir(t, another)
			projects := map[string]string{"here": w.Project, "there": another}
			ports := map[string]int{}
			for word, project := range projects {
				ports[word] = started(t, e, "agent", project, word, 0)
			}
			for word, project := range projects {
				for server, port := range ports {
					for _, group := range []string{"agent", "other", "own"} {
						s, _ := e.Run(protocol.SpawnParams{
							Group: group, Cwd: project, ProjectDir: project, Command: askAt(port),
						})
						switch out := strings.TrimSpace(s.Output()); {
						case word == server && out != "served by "+server:
							t.Errorf("group %q of %q does not reach its own project's server: %q", group, word, out)
						case word != server && strings.Contains(out, "served"):
							harness.Breach(t, "group %q of %q reaches another project's server: %q", group, word, out)
						case word != server && out != "PermissionError":
							t.Errorf("group %q of %q: %q", group, word, out)
						}
					}
				}
			}
		})
	}
}
