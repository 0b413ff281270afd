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
		if id := current(e); e.running() && id != "" && id != e.policyID {
			params.StaleSessions = append(params.StaleSessions,
				protocol.StaleSession{SessionID: e.id, PolicyID: e.policyID, CurrentPolicyID: id})
		}
	}
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
// sorted, after "", which stands for none.
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

// currentPolicies returns a function that says which policy a session would get
// if it were started now. It compiles each project and kind once.
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

// policyKey is what decides about the policy of a session that starts now.
type policyKey struct {
	project string
	kind    protocol.Kind
}

func keyOf(e *entry) policyKey { return policyKey{e.projectDir, e.kind} }

// compileFor says which policy a session would get now; "" where it would get
// none, because its project does not answer.
func (s *Server) compileFor(k policyKey) string {
	compiled := s.store.Snapshot(k.project).Compile(settings.Kind(k.kind))
	if compiled.NoAnswer != "" {
		return ""
	}
	return compiled.Policy.ID()
}

// listTimeout is how long terminal/list waits for policies to be compiled,
// which takes milliseconds unless a file system does not answer.
const listTimeout = 500 * time.Millisecond

// policyCache are the policies that sessions would get, as they were last found
// out.
type policyCache struct {
	mu sync.Mutex // guards by, and the ids
	by map[policyKey]*cachedPolicy
}

type cachedPolicy struct {
	id   string
	done chan struct{} // closed once somebody who finds out is done; nil while nobody does
}

// cachedPolicies are those that the sessions would get if they were started now,
// or would have got when that could last be said.
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
