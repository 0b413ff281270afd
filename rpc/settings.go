package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

func (s *Server) registerSettings() {
	onRequest(s.dispatcher, protocol.SettingsGet, s.settingsGet)
	onRequest(s.dispatcher, protocol.PolicyGet, s.policyGet)
}

// checkKind gives an absent kind its default.
func checkKind(kind protocol.Kind) (settings.Kind, error) {
	switch kind {
	case "", protocol.Terminal:
		return settings.KindTerminal, nil
	case protocol.Tool:
		return settings.KindTool, nil
	}
	return "", invalidParams("kind", `expected "terminal" or "tool", found %q`, kind)
}

func (s *Server) settingsGet(_ context.Context, params protocol.SettingsGetParams) (protocol.SettingsGetResult, error) {
	if params.ProjectDir != "" {
		if err := absolute("projectDir", params.ProjectDir); err != nil {
			return protocol.SettingsGetResult{}, err
		}
	}
	if _, err := checkKind(params.Kind); err != nil {
		return protocol.SettingsGetResult{}, err
	}
	snapshot := s.store.Snapshot(params.ProjectDir)
	merged, err := json.Marshal(snapshot.Merged())
	if err != nil {
		return protocol.SettingsGetResult{}, fmt.Errorf("write settings: %w", err)
	}
	return protocol.SettingsGetResult{
		Settings: merged, Origins: snapshot.Origins(), Diagnostics: wireFileDiagnostics(snapshot.Diagnostics()),
	}, nil
}

func (s *Server) policyGet(_ context.Context, params protocol.PolicyGetParams) (protocol.PolicyGetResult, error) {
	if err := absolute("projectDir", params.ProjectDir); err != nil {
		return protocol.PolicyGetResult{}, err
	}
	kind, err := checkKind(params.Kind)
	if err != nil {
		return protocol.PolicyGetResult{}, err
	}
	snapshot := s.store.Snapshot(params.ProjectDir)
	compiled := snapshot.Compile(kind)
	s.publish(snapshot, compiled)
	return PolicyResult(compiled), nil
}

// PolicyResult is a compiled policy as policy/get answers it.
func PolicyResult(compiled settings.Compiled) protocol.PolicyGetResult {
	p := &compiled.Policy
	out := protocol.Policy{
		Restricted: p.Restricted, Project: p.Project, Rules: []protocol.PolicyRule{}, PrivateRuntimeDir: p.PrivateRuntimeDir, PrivateTerminals: p.PrivateTerminals,
		AllowNetwork: p.Network.Allowed, UnixSockets: []string{}, AllowedEnvVars: orEmpty(p.Environment.Allowed), ProtectedPaths: []string{},
		RequireProtected: p.RequireProtected, OnUnavailable: string(p.OnUnavailable), OnDenied: string(p.OnDenied), Diagnostics: wireFileDiagnostics(compiled.Diagnostics),
	}
	for _, rule := range p.Rules {
		out.Rules = append(out.Rules, protocol.PolicyRule{
			Path: rule.Path, Access: rule.Access.Names(), Guarded: rule.Guarded.Names(), Setting: rule.Origin.Key, File: rule.Origin.File, Line: rule.Origin.Line,
		})
	}
	for _, socket := range p.UnixSockets {
		name := socket.Path
		if name == "" {
			name = "abstract:" + socket.Abstract
		}
		out.UnixSockets = append(out.UnixSockets, name)
	}
	for _, protected := range p.Protected {
		out.ProtectedPaths = append(out.ProtectedPaths, protected.Path)
	}
	return protocol.PolicyGetResult{PolicyID: p.ID(), Policy: out}
}

func wireDiagnostics(list []settings.Diagnostic) []protocol.Diagnostic {
	out := []protocol.Diagnostic{}
	for _, d := range list {
		out = append(out, protocol.Diagnostic{
			Line: d.Line, Column: d.Column, Severity: protocol.Severity(d.Severity), Key: d.Key, Message: d.Message,
		})
	}
	return out
}

func wireFileDiagnostics(list []settings.FileDiagnostic) []protocol.FileDiagnostic {
	out := []protocol.FileDiagnostic{}
	for _, d := range list {
		out = append(out, protocol.FileDiagnostic{File: d.File, Diagnostic: wireDiagnostics([]settings.Diagnostic{d.Diagnostic})[0]})
	}
	return out
}

// published remembers what the editor was last told about each file, so that it is told changes only, and told when a list has
// become empty.
type published struct {
	mu    sync.Mutex // guards files, and held while sending, so that the last word sent is the newest
	files map[string][]settings.Diagnostic
}

// publish tells the editor about the diagnostics of a snapshot's files where they differ from what it knows.
func (s *Server) publish(snapshot *settings.Snapshot, compiled settings.Compiled) {
	lists := map[string][]settings.Diagnostic{}
	for _, file := range snapshot.Files() {
		lists[file] = nil
	}
	for _, d := range compiled.Diagnostics {
		lists[d.File] = append(lists[d.File], d.Diagnostic)
	}
	s.published.mu.Lock()
	defer s.published.mu.Unlock()
	if s.published.files == nil {
		s.published.files = map[string][]settings.Diagnostic{}
	}
	for _, file := range slices.Sorted(maps.Keys(lists)) {
		if list := lists[file]; !slices.Equal(list, s.published.files[file]) {
			s.published.files[file] = list
			notify(s, protocol.SettingsDiagnostics, protocol.DiagnosticsParams{File: file, Diagnostics: wireDiagnostics(list)})
		}
	}
}

// publishFolders tells what there is to say about workspace folders before anything is started in them.
func (s *Server) publishFolders(folders []protocol.WorkspaceFolder) {
	dirs := []string{""}
	for _, folder := range folders {
		dirs = append(dirs, folder.Path)
	}
	for _, dir := range dirs {
		snapshot := s.store.Snapshot(dir)
		s.publish(snapshot, snapshot.Compile(settings.KindTerminal))
	}
}

// settingsChanged is called by the store after a change.
func (s *Server) settingsChanged(change settings.Change) {
	s.mu.Lock()
	store := s.store
	projects := map[string]bool{"": true}
	for _, folder := range s.folders {
		projects[folder.Path] = true
	}
	s.mu.Unlock()
	if store == nil {
		return // the change came before initialize was answered, and is in what follows
	}
	params := protocol.SettingsChangedParams{Files: change.Files, Diagnostics: []protocol.FileDiagnostic{}, StaleSessions: []protocol.StaleSession{}}
	current := s.currentPolicies()
	for _, e := range s.sessions.all() {
		projects[e.projectDir] = true
		if id := current(e); e.running() && id != e.policyID {
			params.StaleSessions = append(params.StaleSessions, protocol.StaleSession{SessionID: e.id, PolicyID: e.policyID, CurrentPolicyID: id})
		}
	}
	for dir := range projects {
		snapshot := store.Snapshot(dir)
		compiled := snapshot.Compile(settings.KindTerminal)
		s.publish(snapshot, compiled)
		for _, d := range wireFileDiagnostics(compiled.Diagnostics) {
			if slices.Contains(change.Files, d.File) && !slices.Contains(params.Diagnostics, d) {
				params.Diagnostics = append(params.Diagnostics, d)
			}
		}
	}
	notify(s, protocol.SettingsChanged, params)
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
