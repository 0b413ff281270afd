//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// watch shows the notifications that an editor gets while settings files are
// edited: diagnostics, which sessions are stale, and what a new session may do.
func watch(ctx context.Context, conn *client.Client, cwd string) error {
	v := &viewer{ctx: ctx, conn: conn, cwd: cwd, changes: make(chan protocol.SettingsChangedParams, 16)}
	client.On(conn, protocol.SettingsDiagnostics, v.diagnostics)
	client.On(conn, protocol.SettingsChanged, func(p protocol.SettingsChangedParams) { v.changes <- p })
	session, err := client.Call(ctx, conn, protocol.Spawn,
		protocol.SpawnParams{Kind: protocol.Tool, Cwd: cwd, Command: "sleep 1000000"})
	if err != nil {
		return err
	}
	if v.rules, err = v.granted(); err != nil {
		return err
	}
	v.print("session %s runs under policy %s", short(session.SessionID), short(session.PolicyID))
	for {
		select {
		case change := <-v.changes:
			if err := v.changed(change); err != nil {
				return err
			}
		case <-conn.Gone():
			return errors.New("the sidecar has ended")
		}
	}
}

type viewer struct {
	ctx     context.Context
	conn    *client.Client
	cwd     string
	changes chan protocol.SettingsChangedParams
	rules   map[string]string // what a new session may do with each path

	mu sync.Mutex // guards the output
}

func (v *viewer) print(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fmt.Printf(format+"\n", args...)
}

func (v *viewer) diagnostics(p protocol.DiagnosticsParams) {
	if len(p.Diagnostics) == 0 {
		v.print("%s: no diagnostics", p.File)
	}
	for _, d := range p.Diagnostics {
		v.print("%s:%d:%d: %s: %s", p.File, d.Line, d.Column, d.Severity, d.Message)
	}
}

func (v *viewer) changed(p protocol.SettingsChangedParams) error {
	v.print("changed: %s", strings.Join(p.Files, " "))
	for _, stale := range p.StaleSessions {
		v.print("session %s is stale: policy %s then, %s now", short(stale.SessionID), short(stale.PolicyID),
			short(stale.CurrentPolicyID))
	}
	for _, project := range p.Projects {
		for _, ask := range project.Asks {
			v.print("project asks for %s %q: %s", ask.Key, ask.Value, ask.Opens)
		}
	}
	now, err := v.granted()
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if v.rules[path] != now[path] {
			v.print("a new session may %s %s", now[path], path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(v.rules)) {
		if now[path] == "" {
			v.print("a new session may not use %s", path)
		}
	}
	v.rules = now
	return nil
}

// granted returns what a session that starts now may do with each path.
func (v *viewer) granted() (map[string]string, error) {
	result, err := client.Call(v.ctx, v.conn, protocol.PolicyGet,
		protocol.PolicyGetParams{ProjectDir: v.cwd, Kind: protocol.Tool})
	if err != nil {
		return nil, err
	}
	rules := map[string]string{}
	for _, rule := range result.Policy.Rules {
		rules[rule.Path] = strings.Join(rule.Access, ",")
	}
	return rules, nil
}

func short(id string) string { return id[:min(8, len(id))] }
