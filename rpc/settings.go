package rpc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
)

func (s *Server) registerSettings() {
	onRequest(s.dispatcher, protocol.SettingsGet, s.settingsGet)
	onRequest(s.dispatcher, protocol.PolicyGet, s.policyGet)
	onRequest(s.dispatcher, protocol.PolicyExplain, s.policyExplain)
	onRequest(s.dispatcher, protocol.SettingsAllow, s.settingsAllow)
	onRequest(s.dispatcher, protocol.ProjectStatus, s.projectStatus)
	onRequest(s.dispatcher, protocol.ProjectTrust, s.projectTrust)
	onRequest(s.dispatcher, protocol.ProjectUntrust, s.projectUntrust)
}

// checkKind checks a kind. An absent one becomes the default.
func checkKind(kind protocol.Kind) (settings.Kind, error) {
	switch kind {
	case "", protocol.Terminal:
		return settings.KindTerminal, nil
	case protocol.Tool:
		return settings.KindTool, nil
	}
	return "", invalidParams("kind", `expected "terminal" or "tool", found %s`, display.Quote(string(kind)))
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
		Settings: merged, Origins: snapshot.Origins(),
		Diagnostics: presentation.FileDiagnostics(snapshot.Diagnostics()),
	}, nil
}

func (s *Server) policyGet(ctx context.Context, params protocol.PolicyGetParams) (protocol.PolicyGetResult, error) {
	if err := absolute("projectDir", params.ProjectDir); err != nil {
		return protocol.PolicyGetResult{}, err
	}
	kind, err := checkKind(params.Kind)
	if err != nil {
		return protocol.PolicyGetResult{}, err
	}
	snapshot := s.store.InWindow(params.ProjectDir)
	plan := s.plan(snapshot, protocol.Kind(kind), "", "")
	s.publish(snapshot, plan.Diagnostics)
	return presentation.Policy(ctx, plan.Result, s.options.Spawner.ProbePolicy), nil
}

func (s *Server) policyExplain(_ context.Context, params protocol.PolicyExplainParams) (protocol.PolicyExplainResult,
	error,
) {
	if err := absolute("projectDir", params.ProjectDir); err != nil {
		return protocol.PolicyExplainResult{}, err
	}
	kind, err := checkKind(params.Kind)
	if err != nil {
		return protocol.PolicyExplainResult{}, err
	}
	attempt, err := explain.ParseAttempt(string(params.Access))
	if err != nil {
		return protocol.PolicyExplainResult{}, invalidParams("access", "%v", err)
	}
	target, err := explain.ParseTarget(attempt, params.Target)
	if err != nil {
		return protocol.PolicyExplainResult{}, invalidParams("target", "%v", err)
	}
	x, err := explain.Why(s.store.InWindow(params.ProjectDir), kind, attempt, target)
	if err != nil {
		return protocol.PolicyExplainResult{}, invalidParams("target", "%v", err)
	}
	return presentation.Explanation(x), nil
}

func (s *Server) settingsAllow(_ context.Context, params protocol.SettingsAllowParams) (protocol.SettingsAllowResult,
	error,
) {
	if err := absolute("projectDir", params.ProjectDir); err != nil {
		return protocol.SettingsAllowResult{}, err
	}
	scope := settings.Scope(params.Scope)
	switch scope {
	case settings.ScopeUser, settings.ScopeProject, settings.ScopeWindow:
	default:
		return protocol.SettingsAllowResult{}, invalidParams("scope",
			`expected "user", "project" or "window", found %s`, display.Quote(string(params.Scope)))
	}
	suggestion := explain.Suggestion{Key: params.Suggestion.Setting}
	snapshot := s.store.Snapshot(params.ProjectDir)
	if err := settings.Allowable(snapshot, scope, suggestion); err != nil {
		return protocol.SettingsAllowResult{}, invalidParams("suggestion.setting", "%v", err)
	}
	if err := json.Unmarshal(params.Suggestion.Value, &suggestion.Value); err != nil || suggestion.Value == "" {
		return protocol.SettingsAllowResult{}, invalidParams("suggestion.value", "expected an entry of %s, found %s",
			display.Quote(suggestion.Key), display.Quote(string(params.Suggestion.Value)))
	}
	if scope == settings.ScopeWindow {
		if err := s.store.Grant(params.ProjectDir, suggestion); err != nil {
			return protocol.SettingsAllowResult{}, err
		}
		s.settingsChanged(settings.Change{Files: []string{}}) // no file has, but what new sessions get
		return protocol.SettingsAllowResult{}, nil
	}
	file := settings.WrittenTo(snapshot, scope, suggestion)
	if err := s.store.Allow(scope, params.ProjectDir, suggestion); err != nil {
		return protocol.SettingsAllowResult{}, err
	}
	return protocol.SettingsAllowResult{File: file}, nil
}
