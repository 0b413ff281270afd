//go:build linux

package groups

import (
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
