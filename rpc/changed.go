package rpc

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// settingsChanged notifies the editor of changed settings files. The store
// calls it after each change.
func (s *Server) settingsChanged(change settings.Change) {
	s.mu.Lock()
	store := s.store
	s.mu.Unlock()
	if store == nil {
		return // initialize is not done yet; the change is in what follows it
	}
	params := protocol.SettingsChangedParams{
		Files: change.Files, Diagnostics: []protocol.FileDiagnostic{}, StaleSessions: []protocol.StaleSession{},
		Projects: []protocol.Project{},
	}
	current := s.currentPolicies()
	for _, e := range s.sessions.all() {
		if id := current(e); e.running() && id != "" && id != e.policyID {
			params.StaleSessions = append(params.StaleSessions,
				protocol.StaleSession{SessionID: e.id, PolicyID: e.policyID, CurrentPolicyID: id})
		}
	}
	params.StaleSessions = append(params.StaleSessions, s.staleShells(current)...)
	for _, dir := range s.projects() {
		snapshot := store.Snapshot(dir)
		diagnostics := snapshot.Diagnostics()
		s.publish(snapshot, diagnostics)
		for _, d := range presentation.FileDiagnostics(diagnostics) {
			if slices.Contains(change.Files, d.File) && !slices.Contains(params.Diagnostics, d) {
				params.Diagnostics = append(params.Diagnostics, d)
			}
		}
		if project := snapshot.Project(); project.Exists {
			params.Projects = append(params.Projects, presentation.Project(project))
		}
	}
	notify(s, protocol.SettingsChanged, params)
}

// projects are the directories that the editor has open or has sessions in,
// sorted. The first is "", which means no project.
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

// currentPolicies returns a function that returns the id of the policy that a
// session would get if it started now. It compiles each project and kind once.
func (s *Server) currentPolicies() func(*entry) string {
	ids := map[policyKey]string{}
	return func(e *entry) string {
		k := keyOf(e)
		id, known := ids[k]
		if !known {
			id = s.compileFor(k)
			ids[k] = id
		}
		return id
	}
}

// policyKey is what the policy of a new session depends on.
type policyKey struct {
	project string
	kind    protocol.Kind
}

func keyOf(e *entry) policyKey { return policyKey{e.projectDir, e.kind} }

// compileFor returns the id of the policy that a session would get now; "" if
// its project's file system does not answer.
func (s *Server) compileFor(k policyKey) string {
	plan := s.plan(s.store.InWindow(k.project), k.kind, "", "")
	if plan.NoAnswer != "" {
		return ""
	}
	return plan.PolicyID()
}

// listTimeout is how long terminal/list waits for policies to be compiled,
// which takes milliseconds unless a file system does not answer.
const listTimeout = 500 * time.Millisecond

// policyCache holds the policies that sessions would get, as last compiled.
type policyCache struct {
	mu sync.Mutex // guards by, and the ids
	by map[policyKey]*cachedPolicy
}

type cachedPolicy struct {
	id   string
	done chan struct{} // closed once a refresh is done; nil if none is under way
}

// cachedPolicies returns the id of the policy that each session would get if it
// started now. If compiling takes longer than listTimeout, it returns the last
// known id.
func (s *Server) cachedPolicies(entries []*entry) map[policyKey]string {
	ctx, cancel := context.WithTimeout(s.ctx, listTimeout)
	defer cancel()
	t := &s.policyCache
	t.mu.Lock()
	now, waits := map[policyKey]*cachedPolicy{}, map[policyKey]chan struct{}{}
	for _, e := range entries {
		k := keyOf(e)
		if now[k] != nil {
			continue
		}
		at := t.by[k]
		if at == nil {
			at = &cachedPolicy{id: e.policyID}
		}
		now[k] = at
		if at.done == nil {
			at.done = make(chan struct{})
			s.background.Go(func() { t.refresh(at, func() string { return s.compileFor(k) }) })
		}
		waits[k] = at.done
	}
	t.by = now
	t.mu.Unlock()
	ids := map[policyKey]string{}
	for k, done := range waits {
		select {
		case <-done:
		case <-ctx.Done():
		}
		t.mu.Lock()
		ids[k] = now[k].id
		t.mu.Unlock()
	}
	return ids
}

// refresh compiles a policy and stores its id.
func (t *policyCache) refresh(at *cachedPolicy, compile func() string) {
	id := compile()
	t.mu.Lock()
	defer t.mu.Unlock()
	close(at.done)
	at.done = nil
	if id != "" {
		at.id = id
	}
}
