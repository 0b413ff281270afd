package rpc

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
)

// published remembers the diagnostics of each project, and which ones the
// editor has. The editor gets only changes, and an empty list for a file whose
// diagnostics are gone. A file may have diagnostics for one project only. They
// stay while another project is updated.
type published struct {
	mu sync.Mutex // guards the fields below, and held while sending, so that the newest list is sent last
	// known holds the diagnostics by project directory; those for every project
	// are under "".
	known map[string][]settings.FileDiagnostic
	sent  map[string][]settings.Diagnostic // to the editor, by file
}

// publish sends the diagnostics of a snapshot to the editor, as far as it does
// not have them. They include those for every project. It also withdraws the
// diagnostics of projects that are no longer open.
func (s *Server) publish(snapshot *compile.Snapshot, diagnostics []settings.FileDiagnostic) {
	open := s.projects()
	s.published.mu.Lock()
	defer s.published.mu.Unlock()
	for file, list := range s.published.update(snapshot.ProjectDir, diagnostics, open) {
		notify(s, protocol.SettingsDiagnostics, protocol.DiagnosticsParams{
			File: file, Diagnostics: presentation.Diagnostics(list),
		})
	}
}

// update stores a project's diagnostics, and yields the files whose lists have
// changed, sorted. p.mu is held.
func (p *published) update(project string, diagnostics []settings.FileDiagnostic,
	open []string,
) func(yield func(string, []settings.Diagnostic) bool) {
	if p.known == nil {
		p.known, p.sent = map[string][]settings.FileDiagnostic{}, map[string][]settings.Diagnostic{}
	}
	p.known[""], p.known[project] = nil, nil
	for _, d := range diagnostics {
		p.known[d.Project] = append(p.known[d.Project], d)
	}
	maps.DeleteFunc(p.known, func(dir string, _ []settings.FileDiagnostic) bool {
		return dir != project && !slices.Contains(open, dir)
	})
	lists := map[string][]settings.Diagnostic{}
	for file := range p.sent {
		lists[file] = nil
	}
	for _, dir := range slices.Sorted(maps.Keys(p.known)) {
		for _, d := range p.known[dir] {
			if !slices.Contains(lists[d.File], d.Diagnostic) {
				lists[d.File] = append(lists[d.File], d.Diagnostic)
			}
		}
	}
	return func(yield func(string, []settings.Diagnostic) bool) {
		for _, file := range slices.Sorted(maps.Keys(lists)) {
			list := lists[file]
			slices.SortStableFunc(list, func(a, b settings.Diagnostic) int {
				return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
			})
			if slices.Equal(list, p.sent[file]) {
				continue
			}
			p.sent[file] = list
			if !yield(file, list) {
				return
			}
		}
	}
}

// publishFolders sends the diagnostics of workspace folders before a session is
// started in them.
func (s *Server) publishFolders(folders []protocol.WorkspaceFolder) {
	dirs := []string{""}
	for _, folder := range folders {
		dirs = append(dirs, folder.Path)
	}
	for _, dir := range dirs {
		snapshot := s.store.Snapshot(dir)
		s.publish(snapshot, snapshot.Diagnostics())
	}
}
