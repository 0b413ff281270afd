package compile

import (
	"testing"

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
func snapshotOf(t testing.TB, f resolve.FS, user, project string) *Snapshot {
	t.Helper()
	s := New(Input{Host: settingstest.Host(), FS: f, ProjectDir: "/home/u/project"}, nil, nil)
	if user != "" {
		s.UserStates = []source.State{settingstest.State(t, userFile, user)}
	}
	if project != "" {
		state := settingstest.State(t, projectFile, project)
		s.ProjectState = &state
	}
	return s
}

// accessOf is what the compiled policy grants for a path, as names.
func accessOf(c Result, path string) string { return settingstest.Access(c.Policy, path).String() }

// said joins the diagnostics of a file, one a line.
func said(c Result, file string) string { return settingstest.Said(c.Diagnostics, file) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// again is a snapshot of the same settings that nobody has asked yet.
func again(s *Snapshot) *Snapshot {
	return New(Input{
		Host: s.Host, FS: s.FS, UserStates: s.UserStates, ProjectState: s.ProjectState, ProjectDir: s.ProjectDir,
		Trust: s.Trust, OwnPaths: s.OwnPaths,
	}, nil, nil)
}
