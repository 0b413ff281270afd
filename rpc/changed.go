package rpc

import (
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// settingsChanged is called by the store after a change.
func (s *Server) settingsChanged(change settings.Change) {
	s.mu.Lock()
	store := s.store
	s.mu.Unlock()
	if store == nil {
		return // the change came before initialize was answered, and is in what follows
	}
	params := protocol.SettingsChangedParams{
		Files: change.Files, Diagnostics: []protocol.FileDiagnostic{}, StaleSessions: []protocol.StaleSession{}, Projects: []protocol.Project{},
	}
	current := s.currentPolicies()
	for _, e := range s.sessions.all() {
		if id := current(e); e.running() && id != e.policyID {
			params.StaleSessions = append(params.StaleSessions, protocol.StaleSession{SessionID: e.id, PolicyID: e.policyID, CurrentPolicyID: id})
		}
	}
	for _, dir := range s.projects() {
		snapshot := store.Snapshot(dir)
		diagnostics := snapshot.Diagnostics()
		s.publish(snapshot, diagnostics)
		for _, d := range wireFileDiagnostics(diagnostics) {
			if slices.Contains(change.Files, d.File) && !slices.Contains(params.Diagnostics, d) {
				params.Diagnostics = append(params.Diagnostics, d)
			}
		}
		if project := snapshot.Project(); project.Exists {
			params.Projects = append(params.Projects, wireProject(project))
		}
	}
	notify(s, protocol.SettingsChanged, params)
}

// projects are the directories that the editor has open or has sessions in, sorted, after "", which stands for none.
func (s *Server) projects() []string {
	s.mu.Lock()
	dirs := []string{""}
	for _, folder := range s.folders {
		dirs = append(dirs, filepath.Clean(folder.Path))
	}
	s.mu.Unlock()
	for _, e := range s.sessions.all() {
		dirs = append(dirs, filepath.Clean(e.projectDir))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// currentPolicies returns a function that says which policy a session would get if it were started now. It compiles each project and
// kind once.
func (s *Server) currentPolicies() func(*entry) string {
	type key struct {
		project string
		kind    protocol.Kind
	}
	ids := map[key]string{}
	return func(e *entry) string {
		k := key{e.projectDir, e.kind}
		id, known := ids[k]
		if !known {
			compiled := s.store.Snapshot(e.projectDir).Compile(settings.Kind(e.kind))
			id = compiled.Policy.ID()
			ids[k] = id
		}
		return id
	}
}
