//go:build linux

package groups

import (
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The list has what runs in each group, and none that has ended.
func TestGroup_IsListed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		list := func() []protocol.GroupInfo { return harness.Call(e, protocol.ListGroups, protocol.Empty{}).Groups }
		if got := list(); len(got) != 0 {
			t.Errorf("before the first session: %+v", got)
		}
		run(e, "idle", "true")
		run(e, "left", "sleep 1000 & sleep 1000 &")
		s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "echo on; exec sleep 1000", Group: "works"})
		s.Await("on")
		got := list()
		if len(got) != 3 {
			t.Fatalf("three groups: %+v", got)
		}
		for i, want := range []struct {
			name                string
			sessions, processes int
		}{{"idle", 0, 0}, {"left", 0, 2}, {"works", 1, 1}} {
			g := got[i]
			if g.Group != want.name || g.Sessions != want.sessions || g.Processes != want.processes ||
				g.Kind != protocol.Tool || g.ProjectDir != e.World.Project || g.PolicyID == "" || g.StartedAt == "" {
				t.Errorf("group %d: %+v, want %+v", i, g, want)
			}
		}
		harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "left"})
		if got := list(); len(got) != 2 || got[0].Group != "idle" || got[1].Group != "works" {
			t.Errorf("after the end of one: %+v", got)
		}
		s.Close(0)
	})
}

// The port of a server that a session has left is shown at a port of this machine
// until its group ends.
func TestGroup_PortsOfServersInTheBackground(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	// Without namespaces servers share this machine's localhost, or can have none.
	on(t, inTurn(t, withNamespaces(t)), func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		if out, exit := run(e, "agent", serve); exit.Background != 1 {
			t.Fatalf("a server was started: %q, %+v", out, exit)
		}
		out, _ := run(e, "agent", "cat /tmp/port")
		port, err := strconv.Atoi(out)
		harness.Must(t, err)
		free := harness.FreePort(t)
		forward := func(change func(*protocol.ForwardPortParams)) (protocol.ForwardPortResult, error) {
			params := protocol.ForwardPortParams{Group: "agent", Port: port, LocalPort: free}
			change(&params)
			return harness.Try(e, protocol.ForwardPort, params)
		}
		for name, change := range map[string]func(*protocol.ForwardPortParams){
			"another group":         func(p *protocol.ForwardPortParams) { p.Group = "other" },
			"another project":       func(p *protocol.ForwardPortParams) { p.ProjectDir = e.World.Home },
			"a session and a group": func(p *protocol.ForwardPortParams) { p.SessionID = "x" },
			"a relative project":    func(p *protocol.ForwardPortParams) { p.ProjectDir = "project" },
		} {
			if result, err := forward(change); err == nil {
				t.Errorf("%s: %+v", name, result)
			}
		}
		result, err := forward(func(p *protocol.ForwardPortParams) { p.ProjectDir = e.World.Project })
		harness.Must(t, err)
		conn, err := net.Dial("tcp", result.Address)
		harness.Must(t, err)
		defer conn.Close()
		if data, err := io.ReadAll(conn); string(data) != "served" {
			t.Errorf("the server answers %q, %v", data, err)
		}
		harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
		if conn, err := net.Dial("tcp", result.Address); err == nil {
			conn.Close()
			t.Error("the port is open after the end of the group")
		}
	})
}

// A directory that is missing is named as without a group, and no sandbox is made
// for it.
func TestGroup_WrongDirectoriesAreNamed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		for _, project := range []string{"", e.World.ProjectPath("gone")} {
			var said [2]string
			for i, group := range []string{"own", "agent"} {
				_, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
					Kind: protocol.Tool, Command: "true", Group: group, ProjectDir: project,
					Cwd: e.World.ProjectPath("gone"),
				})
				if err == nil {
					t.Fatal("a directory that is missing is used")
				}
				said[i] = err.Error()
			}
			if said[0] != said[1] {
				t.Errorf("%q, in a group %q", said[0], said[1])
			}
		}
		if list := harness.Call(e, protocol.ListGroups, protocol.Empty{}).Groups; len(list) != 0 {
			t.Errorf("a sandbox was made: %+v", list)
		}
	})
}
