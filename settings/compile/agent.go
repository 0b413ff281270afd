package compile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/agents"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// Agent is the set that a command line names, for that command alone. It counts
// as an entry of the user's "toolchains" would, and also if that list is empty.
type Agent struct {
	toolchain.Toolchain
	// File is the user's own file that says so; "" if the table does.
	File string
	// Hosts are reached beside Registries.
	Hosts []toolchain.Registry
	// Programs may be read and executed.
	Programs []agents.Part
	// Program is what is executed, and Ways are the paths that led there and to its
	// interpreter. Named: the command line names the program.
	Program string
	Ways    []string
	Named   bool
}

// agentWritten is how the origin of what the set opens is written.
const agentWritten = "agent"

// hosts are those from which the tools download, and those of an agent.
func (c chosen) hosts() []toolchain.Registry {
	if c.agent == nil {
		return c.Registries()
	}
	return slices.Concat(c.Registries(), c.agent.Hosts)
}

// withAgent adds the agent of the command line to the sets of the user. It
// replaces one of the same name, which opens less.
func (l layers) withAgent(list []chosen) []chosen {
	if l.agent == nil {
		return list
	}
	list = slices.DeleteFunc(list, func(c chosen) bool { return c.Name == l.agent.Name })
	file := cmp.Or(l.agent.File, policy.OriginCommand)
	return append(list, chosen{Toolchain: l.agent.Toolchain, agent: l.agent, origin: policy.Origin{
		File: file, Key: toolchainsKey, Written: agentWritten, Entry: l.agent.Name,
	}})
}

// agentGap says who leaves the agent of the command line out; "" if it counts.
func (e *evaluation) agentGap() string {
	if e.agent == nil {
		return ""
	}
	if hasToolchain(e.toolchains, e.agent.Name) {
		return cmp.Or(e.placeGap(), e.planted)
	}
	who := "the project's file " + display.Quote(e.projectFile)
	for i := range e.layers.bounds {
		if bound := &e.layers.bounds[i]; bound.sets(toolchainsKey) &&
			!hasToolchain(toolchainsOf(bound, &reporter{}), e.agent.Name) {
			who = "your organisation's file " + display.Quote(bound.file)
		}
	}
	return fmt.Sprintf("%s does not have %q in %q", who, e.agent.Name, toolchainsKey)
}

// placeGap says which place of a user's own file for an agent does not count; ""
// if all do.
func (e *evaluation) placeGap() string {
	for _, p := range e.agent.Places {
		if why := e.refusesPlace(p); p.Line > 0 && why != "" {
			return fmt.Sprintf("%s: %s is not granted: %s",
				display.Quote(fmt.Sprintf("%s:%d", e.agent.File, p.Line)), display.Quote(p.At), why)
		}
	}
	return ""
}

// refusesPlace says why a place that a user's own file names is not granted; "" if
// it is. Those of the table are known to be what they should be.
func (v fsView) refusesPlace(p toolchain.Place) string {
	path, err := v.host.Expand(p.At, "")
	if err != nil {
		return err.Error()
	}
	target := v.Resolve(path)
	if what := v.sensitive.Holds(target.Path); what != "" {
		return "that is " + what
	}
	if actor, _ := v.sensitive.ActorAt(target.Path); actor.Agent != "" {
		return "that is the sign-in of " + actor.Agent
	}
	if !p.Access.Has(policy.Write) {
		return ""
	}
	if !target.Exists && v.isFileOfSettings(path) {
		return "it would be made as a directory, and programs outside read a file of that name"
	}
	return v.undoes(target.Path)
}

// isFileOfSettings reports whether a path is that of a start-up file of a shell, or
// of a program's settings, whether it exists or not.
func (v fsView) isFileOfSettings(path string) bool {
	for _, home := range v.host.Homes() {
		for _, name := range slices.Concat(sensitive.StartupFiles, risks.Naming) {
			if filepath.Join(home, strings.TrimPrefix(name, "~/")) == filepath.Clean(path) {
				return true
			}
		}
	}
	return false
}

// holds reports whether a real path lies in a place of the set itself.
func (v fsView) holds(c chosen, path string) bool {
	return slices.ContainsFunc(c.Places, func(p toolchain.Place) bool {
		dir, err := v.host.Expand(p.At, "")
		return err == nil && policy.Contains(v.Resolve(dir).Path, path)
	})
}

// plantedProgram says which program of an agent a session could have put there:
// PATH may lead into a project, and the agent's keys would be that program's. ""
// if there is none. What the command line names is meant.
func (v fsView) plantedProgram(a *Agent, others []string, lasts outside, p *policy.Policy) string {
	for _, way := range a.Ways {
		if a.Named && way == a.Program {
			continue
		}
		target := v.Resolve(way)
		at := []string{target.Path}
		for _, link := range target.Links {
			at = append(at, link.Dir)
		}
		for _, path := range at {
			if v.plantable(path, others, lasts, p) {
				return fmt.Sprintf("PATH leads to %s, which sessions can write: name the program with --program",
					display.Quote(way))
			}
		}
	}
	return ""
}

// plantable reports whether a session may have written a real path for programs
// outside.
func (v fsView) plantable(path string, others []string, lasts outside, p *policy.Policy) bool {
	for _, other := range others {
		if policy.Contains(v.Resolve(other).Path, path) {
			return true
		}
	}
	cached := slices.ContainsFunc(p.Caches, func(c policy.Cache) bool { return policy.Contains(c.Path, path) })
	_, protected := p.ProtectedAt(path)
	return !cached && !protected && lasts.at(path).Has(policy.Write)
}

// programGrants opens the programs of an agent, and what they need beside them. A
// variable such as PATH leads there, so what is secret stays closed, and nothing
// counts that a session could have put there.
func (v fsView) programGrants(c chosen, r *reporter) []grant {
	var list []grant
	first := v.Resolve(c.agent.Program).Path
	for _, part := range c.agent.Programs {
		program := v.Resolve(part.Path)
		for i, path := range slices.Concat([]string{part.Path}, part.Beside) {
			target := v.Resolve(path)
			if program.Err != nil || target.Err != nil || !target.Exists {
				continue
			}
			if i == 0 && !target.Mode.IsRegular() {
				break
			}
			what := v.sensitive.Holds(target.Path)
			actor, _ := v.sensitive.ActorAt(target.Path)
			if what == "" && actor.Agent != "" && !v.holds(c, target.Path) {
				what = "the sign-in of " + actor.Agent
			}
			if what != "" {
				r.add(c.origin.File, c.at, document.SeverityWarning, toolchainsKey,
					"%s: %s is not granted, because that is %s", display.Quote(c.Name),
					display.Quote(target.Path), what)
				continue
			}
			origin := c.origin
			origin.Reason = "the program"
			g := grant{
				path: target.Path, links: slices.Concat(program.Links, target.Links),
				request: request{text: c.Name, access: readExecute, origin: origin, at: c.at},
			}
			if i > 0 {
				g.origin.Reason, g.namedBy = "what the program needs beside it", []string{program.Path}
			}
			if program.Path != first {
				g.namedBy = append(g.namedBy, first) // whose first line names the interpreter
			}
			list = append(list, g)
		}
	}
	return list
}
