package presentation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Prober tries what a session with a policy would get; see
// spawn.Spawner.ProbePolicy.
type Prober func(ctx context.Context, p policy.Policy) (spawn.Outcome, error)

// Policy is a compiled policy as policy/get answers it. What the machine enforces
// of it is tried by a prober, if anybody wrote what a machine may not enforce; nil
// tries nothing.
func Policy(ctx context.Context, compiled compile.Result, probe Prober) protocol.PolicyGetResult {
	p := &compiled.Policy
	out := protocol.Policy{
		Restricted: p.Restricted, Project: p.Project, Rules: []protocol.PolicyRule{},
		PrivateRuntimeDir: p.PrivateRuntimeDir, PrivateTerminals: p.PrivateTerminals,
		TemporaryDirs: []string{}, HiddenPaths: []string{}, PrivateCaches: []string{},
		AllowNetwork: p.Network.Allowed, UnixSockets: []string{}, SigningKeys: []string{},
		AllowedHosts: []string{}, DeniedHosts: []string{},
		AllowedEnvVars: orEmpty(p.Environment.Allowed), ProtectedPaths: []string{},
		RequireProtected: p.RequireProtected, OnUnavailable: string(p.OnUnavailable), OnDenied: string(p.OnDenied),
		Diagnostics: FileDiagnostics(compiled.Diagnostics),
	}
	for _, rule := range p.Rules {
		out.Rules = append(out.Rules, protocol.PolicyRule{
			Path: rule.Path, Access: rule.Access.Names(), Guarded: rule.Guarded.Names(),
			Setting: rule.Origin.Key, Written: rule.Origin.Written, File: rule.Origin.File, Line: rule.Origin.Line,
			Entry: rule.Origin.Entry, Reason: rule.Origin.Reason,
		})
	}
	for _, c := range p.Copies {
		out.Rules = append(out.Rules, protocol.PolicyRule{
			Path: c.Path, Access: policy.Read.Names(), Guarded: []string{}, Setting: c.Origin.Key,
			Written: c.Origin.Written, File: c.Origin.File, Line: c.Origin.Line, Entry: c.Origin.Entry,
			Reason: "a part of it, without what may be a secret",
		})
	}
	for _, temporary := range p.Temporary {
		out.TemporaryDirs = append(out.TemporaryDirs, temporary.Path)
	}
	for _, cache := range p.Caches {
		out.PrivateCaches = append(out.PrivateCaches, cache.Path)
	}
	for _, s := range compiled.Switches {
		out.Origins = append(out.Origins, protocol.PolicyOrigin{
			Key: s.Key, Written: s.Origin.Written, Value: s.Value, File: s.Origin.File, Line: s.Origin.Line,
			Entry: s.Origin.Entry,
		})
	}
	for _, v := range compiled.Variables {
		from := v.Origin
		out.Origins = append(out.Origins, protocol.PolicyOrigin{
			Key: "allowed_env_vars", Written: from.Written, Value: v.Pattern, File: from.File, Line: from.Line,
			Entry: from.Entry, Reason: from.Reason,
		})
	}
	for _, socket := range p.UnixSockets {
		name := socket.Path
		if name == "" {
			name = "abstract:" + socket.Abstract
		}
		out.UnixSockets = append(out.UnixSockets, name)
		out.Origins = append(out.Origins, protocol.PolicyOrigin{
			Key: "allowed_unix_sockets", Written: socket.Origin.Written, Value: name,
			File: socket.Origin.File, Line: socket.Origin.Line, Entry: socket.Origin.Entry,
			Reason: socket.Origin.Reason,
		})
	}
	for _, key := range p.SigningKeys {
		out.SigningKeys = append(out.SigningKeys, key.String())
		out.Origins = append(out.Origins, protocol.PolicyOrigin{
			Key: "signing_keys", Written: key.Origin.Written, Value: key.String(),
			File: key.Origin.File, Line: key.Origin.Line, Entry: key.Origin.Entry,
		})
	}
	for _, c := range p.Credentials {
		at := "no host"
		if len(c.Hosts) > 0 {
			at = strings.Join(c.Hosts, ", ")
		}
		out.Origins = append(out.Origins, protocol.PolicyOrigin{
			Key: "credentials", Written: c.Origin.Written, Value: c.Name + " at " + at, File: c.Origin.File,
			Line: c.Origin.Line,
		})
	}
	for _, list := range []struct {
		key  string // also of the hosts of toolchains
		from []policy.Host
		to   *[]string
	}{
		{"allowed_hosts", p.Network.AllowedHosts, &out.AllowedHosts},
		{"denied_hosts", p.Network.DeniedHosts, &out.DeniedHosts},
	} {
		for _, host := range list.from {
			*list.to = append(*list.to, host.Pattern)
			out.Origins = append(out.Origins, protocol.PolicyOrigin{
				Key: list.key, Value: host.Pattern, File: host.Origin.File, Line: host.Origin.Line,
				Written: host.Origin.Written, Entry: host.Origin.Entry, Reason: host.Origin.Reason,
			})
		}
	}
	for _, hidden := range p.Hidden {
		out.HiddenPaths = append(out.HiddenPaths, hidden.Path)
		out.Origins = append(out.Origins, protocol.PolicyOrigin{
			Key: hidden.Origin.Key, Value: hidden.Path, File: hidden.Origin.File, Line: hidden.Origin.Line,
			Written: hidden.Origin.Written, Reason: hidden.Origin.Reason,
		})
	}
	for _, protected := range p.Protected {
		out.ProtectedPaths = append(out.ProtectedPaths, protected.Path)
		out.Origins = append(out.Origins, protocol.PolicyOrigin{
			Key: protected.Origin.Key, Written: protected.Origin.Written, Value: protected.Path,
			File: protected.Origin.File, Line: protected.Origin.Line,
		})
	}
	return protocol.PolicyGetResult{PolicyID: p.ID(), Policy: out, Warnings: orEmpty(tryPolicy(ctx, compiled, probe))}
}

// tryPolicy are the warnings of UnheldKeys about sessions that start now.
func tryPolicy(ctx context.Context, compiled compile.Result, probe Prober) []string {
	asks := func(from policy.Origin) bool { return holdings[from.Key].asks() }
	if probe == nil || !compiled.Policy.Restricted || !slices.ContainsFunc(compiled.Written, asks) {
		return nil
	}
	outcome, err := probe(ctx, compiled.Policy)
	if err != nil {
		return display.Lines([]string{fmt.Sprintf("what this machine enforces is not known: %v", err)})
	}
	var warnings []string
	if cause := outcome.Unconfinable; cause != nil {
		warnings = append(warnings, fmt.Sprintf("this machine cannot sandbox: %v", cause))
	}
	return display.Lines(append(warnings, UnheldWarnings(compiled.Written, true, outcome)...))
}

// Explanation is an explanation as policy/explain answers it.
func Explanation(x explain.Answer) protocol.PolicyExplainResult {
	result := protocol.PolicyExplainResult{
		Allowed: x.Allowed, Target: x.Target, Reason: display.Line(x.Reason),
		Setting: x.Key, Value: x.Value, Hint: display.Line(x.Hint),
		Message: explanationMessage(x), Careful: x.Careful(),
	}
	if !x.Allowed && x.Key != "" {
		result.Instruction = explain.Suggestion{Key: x.Key, Value: x.Value}.InstructionInFull()
	}
	if x.Rule != nil {
		from := x.Rule.Origin
		result.Rule = &protocol.PolicyRule{
			Path: x.Rule.Path, Access: x.Rule.Access.Names(), Setting: from.Key, Written: from.Written,
			File: from.File, Line: from.Line,
			Entry: from.Entry, Reason: from.Reason,
		}
	}
	return result
}

// explanationMessage says whether an access is allowed, and why.
func explanationMessage(x explain.Answer) string {
	verdict := "Refused"
	if x.Allowed {
		verdict = "Allowed"
	}
	return verdict + ": " + display.Line(x.Reason) + "."
}

// orEmpty makes a nil slice [] in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
