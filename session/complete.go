// Package session is the way of every session from the settings to its start.
//
// [New] plans a session, [Plan.Admit] decides whether it may start, and [Start]
// starts it. [Complete] adds the history of shells and the sidecar's own program,
// so that the policy, its id and every explanation know all that the session can
// do. [Machine] looks up what Complete needs. See docs/design/session.md.
package session

import (
	"cmp"
	"slices"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/history"
)

// Facts are what sessions of one kind have for themselves. They hold no name
// that differs from session to session: policies that enforce the same have the
// same id.
type Facts struct {
	// Rules and Replaced are those of the project's history of shells.
	Rules    []policy.Rule
	Replaced []policy.Replaced
	// Programs are real paths that a session may read and execute: the sidecar's
	// own program, which is the init of shared sandboxes, and to which the links
	// lead that are shells.
	Programs []string
	// Variables are passed, whatever the settings list.
	Variables []string
}

// Complete returns a policy with what its session has for itself. It asks the
// machine nothing, and leaves p as it is. A policy that restricts nothing stays.
//
// The runtime directory, the directories for temporary files and the agents'
// filters are in the policy already, as wishes: PrivateRuntimeDir, Temporary,
// UnixSocket.Agent. Their names are chosen when a session starts.
func Complete(p policy.Policy, f Facts) policy.Policy {
	if !p.Restricted {
		return p
	}
	p.Rules = slices.Concat(p.Rules, f.Rules)
	p.Replaced = slices.Concat(p.Replaced, f.Replaced)
	const access = policy.Read | policy.Execute
	for _, path := range f.Programs {
		// A session has a /tmp of its own: what is granted as a part of that is
		// not there.
		if _, own := p.TemporaryAt(path); own || !p.At(path).Has(access) {
			p.Rules = append(p.Rules, policy.Rule{
				Path: path, Access: access, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: "sidecar"},
			})
		}
	}
	slices.SortStableFunc(p.Rules, func(a, b policy.Rule) int { return cmp.Compare(a.Path, b.Path) })
	if len(f.Variables) > 0 {
		allowed := slices.Concat(p.Environment.Allowed, f.Variables)
		slices.Sort(allowed)
		p.Environment.Allowed = slices.Compact(allowed)
	}
	return p
}

// Machine is where sessions start.
type Machine struct {
	// Env holds "NAME=value" entries, before the policy's filter.
	Env []string
	// Program is the real path of the sidecar's program; "" if it is unknown.
	Program string
	// Memory keeps answers; nil: each question is a new one.
	Memory *Memory
}

// Memory is what a machine has answered last. It answers while a file system is
// silent: a policy, and so its id, must not change because a home directory is
// slow. What was never known is as it is written. A Memory is for one Machine, and
// may be used from several goroutines. The zero value knows nothing.
type Memory struct {
	mu     sync.Mutex // guards places
	places *history.Places
}

// Complete is the function Complete with what is found on the machine. typed says
// that a user types into the session: only that has a history.
func (m Machine) Complete(p policy.Policy, typed bool) policy.Policy {
	return Complete(p, m.find(&p, typed))
}

// find looks up what a session under a policy has for itself. What it names may
// not exist yet.
func (m Machine) find(p *policy.Policy, typed bool) Facts {
	var f Facts
	if !p.Restricted {
		return f
	}
	memory := m.Memory
	if memory == nil {
		memory = &Memory{}
	}
	if typed && p.Project != "" {
		// Without one there is no history. The log says why when a session starts.
		places := memory.historyAt(history.Look(m.Env))
		if found, err := places.Find(history.Request{Project: p.Project, Policy: p}); err == nil {
			f.Rules, f.Replaced = found.Rules, found.Replaced
		}
	}
	// Every kind of session may run in a shared sandbox, or be one that a link has
	// started, and sessions of one kind have one policy.
	if m.Program != "" {
		f.Programs = []string{m.Program}
	}
	return f
}

// historyAt is where histories are, by what the machine says now.
func (m *Memory) historyAt(now history.Places, silent error) history.Places {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case silent == nil:
		m.places = &now
	case m.places != nil:
		return *m.places
	}
	return now
}
