package explain

import (
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

const (
	userFile    = settingstest.UserFile
	projectFile = settingstest.ProjectFile
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

// managedSnapshot has a file of the organisation's below the user's.
func managedSnapshot(t testing.TB, f resolve.FS, defaults, required, user string) *compile.Snapshot {
	t.Helper()
	s := snapshotOf(t, f, user, "")
	s.Host.Account = s.Host.Home
	own := settingstest.Managed(t, managed.File, defaults, required)
	s.UserStates = slices.Concat([]source.State{own}, s.UserStates)
	return s
}

// said joins the diagnostics of a file, one a line.
func said(c compile.Result, file string) string { return settingstest.Said(c.Diagnostics, file) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
