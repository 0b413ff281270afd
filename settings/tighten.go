package settings

import (
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// kinds combines enabled and apply_to.
func (e *evaluation) kinds() {
	alone := strictestKinds(e.merged, nil)
	e.restricted = alone
	if e.project == nil {
		return
	}
	e.restricted = strictestKinds(e.merged, &e.project.values)
	if e.restricted == alone {
		return
	}
	e.merged.Enabled, e.merged.ApplyTo = new(true), new(e.restricted.ApplyTo())
	for _, key := range []string{"enabled", "apply_to"} {
		if e.projectSets(key) {
			e.fromProject(key)
		}
	}
}

func (e *evaluation) network() {
	const key = "allow_network"
	e.policy.Network = policy.Network{Allowed: *e.merged.AllowNetwork, Origin: e.user.originOf(key)}
	if !e.projectSets(key) {
		return
	}
	if !*e.project.values.AllowNetwork && e.policy.Network.Allowed {
		e.merged.AllowNetwork = new(false)
		e.policy.Network = policy.Network{Allowed: false, Origin: e.project.originOf(key)}
		e.fromProject(key)
	}
}

func (e *evaluation) variables() {
	const key = "allowed_env_vars"
	allowed := e.patternsOf(&e.user)
	if allowed == nil {
		allowed = slices.Sorted(slices.Values(document.DefaultEnvVars))
	}
	from := e.user.originOf(key)
	if e.projectSets(key) {
		asked := e.patternsOf(e.project)
		both := meetPatterns(allowed, asked)
		if !slices.Equal(both, allowed) {
			from = e.project.originOf(key)
			e.fromProject(key)
			e.merged.AllowedEnvVars = both
		}
		allowed = both
	}
	for _, pattern := range allowed {
		origin := from
		// The line of the entry itself, where the list is a file's and not the
		// outcome of two.
		if source := e.user.from[key]; !e.projectSets(key) && source.file != "" {
			origin = source.policy(key, source.element(slices.Index(e.user.values.AllowedEnvVars, pattern)))
		}
		e.variablesFrom = append(e.variablesFrom, Variable{Pattern: pattern, Origin: origin})
	}
	for _, v := range e.toolchainVariables() {
		if !slices.Contains(allowed, v.Pattern) {
			allowed = append(allowed, v.Pattern)
			e.variablesFrom = append(e.variablesFrom, v)
		}
	}
	slices.Sort(allowed)
	slices.SortStableFunc(e.variablesFrom, func(a, b Variable) int { return strings.Compare(a.Pattern, b.Pattern) })
	e.policy.Environment = policy.Environment{Allowed: append([]string{}, allowed...), Origin: from}
}

func (e *evaluation) unixSockets() {
	list := e.socketsOf(&e.user)
	if e.projectSets(socketsKey) {
		list = meetSockets(list, e.socketsOf(e.project))
		e.merged.AllowedUnixSockets = []string{}
		for _, s := range list {
			e.merged.AllowedUnixSockets = append(e.merged.AllowedUnixSockets, s.text)
		}
		e.fromProject(socketsKey)
	}
	e.sockets = list
	e.policy.UnixSockets = socketRules(list)
}

// protection unites the protected paths of the user and of the project.
func (e *evaluation) protection() {
	list := e.protectedOf(&e.user)
	if _, ok := e.user.from[protectedKey]; !ok {
		list = e.builtInProtected()
	}
	if e.projectSets(protectedKey) {
		more := e.protectedOf(e.project)
		if len(more) > 0 {
			if e.merged.ProtectedPaths == nil {
				e.merged.ProtectedPaths = slices.Clone(protectedByDefault)
			}
			e.merged.ProtectedPaths = slices.Concat(e.merged.ProtectedPaths, e.project.values.ProtectedPaths)
			e.fromProject(protectedKey)
		}
		list = append(list, more...)
	}
	for _, path := range e.git.OutsideProtected {
		list = append(list, builtIn(path)) // whatever the settings say: it is what the grant of the repository rests on
	}
	e.policy.Protected = sortProtected(append([]policy.Protected{}, list...))
}

// rest is what needs no resolution, or what a project may not decide.
func (e *evaluation) rest() {
	e.policy.OnDenied = map[document.OnDenied]policy.OnDenied{
		document.OnDeniedReport: policy.Report, document.OnDeniedAsk: policy.Ask, document.OnDeniedIgnore: policy.Ignore,
	}[*e.merged.OnDenied]
	if e.host.Platform == "darwin" {
		e.policy.TrackBySandbox = *e.merged.ProcessTracking == document.ProcessTrackingSeatbelt
		// Sockets in /tmp and in the user's temporary directory are other
		// programs' too; the session's own need a place that is its alone.
		e.policy.PrivateRuntimeDir = true
	}
	if e.projectSets("on_unavailable") && *e.project.values.OnUnavailable == document.OnUnavailableRefuse {
		if was := e.merged.OnUnavailable; was == nil || *was != document.OnUnavailableRefuse {
			e.merged.OnUnavailable = new(document.OnUnavailableRefuse)
			e.fromProject("on_unavailable")
		}
	}
	e.merged = e.merged.Clone()
}

// requireProtected reports whether a machine that cannot keep the protected
// paths is to start nothing: only somebody who has said so wants that. What can
// be kept without is much, and the default for tools would leave them without
// any sandbox in most containers.
func (e *evaluation) requireProtected() bool {
	asked := e.merged.OnUnavailable
	return asked != nil && *asked == document.OnUnavailableRefuse && len(e.policy.Protected) > 0
}

// onUnavailable is the stricter of what the user and the project say for the
// kind.
func (e *evaluation) onUnavailable(kind document.Kind) policy.OnUnavailable {
	strictest := document.DefaultOnUnavailable(kind)
	if e.merged.OnUnavailable != nil {
		strictest = *e.merged.OnUnavailable
	}
	if strictest == document.OnUnavailableWarn {
		return policy.Warn
	}
	return policy.Refuse
}
