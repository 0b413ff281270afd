package settings

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// snapshotOf is a snapshot over a tree, with the sandbox blocks of the user's
// file and of the project's; "" leaves a file out.
func snapshotOf(t testing.TB, f resolve.FS, user, project string) *compile.Snapshot {
	t.Helper()
	in := compile.Input{Host: settingstest.Host(), FS: f, ProjectDir: "/home/u/project"}
	if user != "" {
		in.UserStates = []source.State{settingstest.State(t, settingstest.UserFile, user)}
	}
	if project != "" {
		state := settingstest.State(t, settingstest.ProjectFile, project)
		in.ProjectState = &state
	}
	return compile.New(in, nil, nil)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
