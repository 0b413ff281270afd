package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// proof is an attack that doctor tries twice: in a process without a sandbox,
// which is the control, and in a session.
type proof struct {
	protection string // that must stop it
	attack     string // what is tried, for people
	act        string // of attempts
	on         func(*scenery) string
	// effect looks whether the attack has had its effect; nil: what the attempt
	// says counts.
	effect func(*scenery) bool
	// told looks for the denial that a session must tell of; nil where it is
	// enough that the attack is refused. A session that tells nothing has had
	// its way, also where the protection is reported as degraded: what is
	// missed then is other than this.
	told func(*scenery, spawn.Denial) bool
}

var proofs = []proof{
	{protection: platform.Filesystem, attack: "read a file that is not granted", act: "read", on: (*scenery).secret},
	{protection: platform.Filesystem, attack: "make a file in a directory that is not granted", act: "write",
		on: func(s *scenery) string {
			return s.path("outside", "new")
		}},
	{protection: platform.Execute, attack: "run a file that may only be read", act: "execute",
		on: func(s *scenery) string {
			return s.path("readable", "file")
		}},
	{protection: platform.Network, attack: "connect to a server outside by TCP", act: "tcp",
		on: func(s *scenery) string { return s.server }},
	{protection: platform.UnixSockets, attack: "connect to the socket of a process outside by its path", act: "socket",
		on: func(s *scenery) string { return s.socket }},
	{protection: platform.Signals, attack: "end a process outside", act: "terminate",
		on: func(s *scenery) string { return s.target }},
	{protection: platform.ProtectedPaths, attack: "write to a protected path of the project", act: "write",
		on: func(s *scenery) string {
			return s.path("project", "protected", "new")
		}},
	{
		protection: platform.ProcessTracking, attack: "leave a process behind", act: "stay", on: func(s *scenery) string {
			return s.path("project", "lock")
		},
		effect: func(s *scenery) bool {
			held, err := lockHeld(s.path("project", "lock"))
			return held || err != nil
		},
	},
}

// finding is what came of a proof.
type finding struct {
	proof
	control, session string // what the attempt said; "works" where it had its effect
	status           platform.Status
}

const attemptWorks = "works"

// verdict sums a finding up.
type verdict string

const (
	// verdictUntried: the attack does not work without a sandbox either, so
	// that its refusal in a session would prove nothing.
	verdictUntried verdict = "untried"
	// verdictHeld: the session could not do it.
	verdictHeld verdict = "held"
	// verdictOpen: the session could do it, and nobody has claimed that it
	// could not.
	verdictOpen verdict = "open"
	// verdictBroken: the session could do it, although the protection is
	// reported as enforced.
	verdictBroken verdict = "broken"
)

func (f finding) verdict() verdict {
	switch {
	case f.control != attemptWorks:
		return verdictUntried
	case f.session != attemptWorks:
		return verdictHeld
	case f.status == platform.Absent, f.status != platform.Enforced && f.told == nil:
		return verdictOpen
	default:
		return verdictBroken
	}
}

// prove tries every attack in a session that is thrown away: a sandboxed one,
// or, where this machine has no sandbox, one that goes without, as the user's
// would. An error means that it could not be tried.
func prove(ctx context.Context, spawner *spawn.Spawner, claimed spawn.Protections) ([]finding, error) {
	all := slices.Concat(proofs, systemProofs)
	plain, err := newScenery()
	if err != nil {
		return nil, err
	}
	defer plain.clear()
	control, err := plain.attemptPlainly(ctx, all)
	if err != nil {
		return nil, err
	}
	guarded, err := newScenery()
	if err != nil {
		return nil, err
	}
	defer guarded.clear()
	p := guarded.policy()
	if claimed[platform.Filesystem].Status == platform.Absent {
		// A session that must not have the network never goes without a
		// sandbox.
		p.OnUnavailable, p.Network.Allowed = policy.Warn, true
	}
	inside, outcome, err := guarded.attemptInSession(ctx, spawner, p, all)
	if err != nil {
		return nil, err
	}
	protections := claimed
	if outcome.Confined {
		protections = outcome.Protections()
	}
	findings := make([]finding, len(all))
	for i, p := range all {
		findings[i] = finding{proof: p, control: control[i], session: inside[i], status: protections[p.protection].Status}
	}
	return findings, nil
}

// orders are the arguments of a process that tries all.
func (s *scenery) orders(all []proof) []string {
	list := []string{"attempt"}
	for _, p := range all {
		list = append(list, p.act+"="+p.on(s))
	}
	return list
}

// answers reads what such a process printed, and looks for effects.
func (s *scenery) answers(all []proof, output string) ([]string, error) {
	var list []string
	for line := range strings.Lines(output) {
		name, answer, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || len(list) == len(all) || name != all[len(list)].act {
			return nil, fmt.Errorf("try attacks: unexpected answer %q", line)
		}
		if effect := all[len(list)].effect; effect != nil && answer == attemptWorks && !effect(s) {
			answer = "no effect"
		}
		list = append(list, answer)
	}
	if len(list) < len(all) {
		return nil, fmt.Errorf("try attacks: only %d of %d were answered", len(list), len(all))
	}
	return list, nil
}

func (s *scenery) attemptPlainly(ctx context.Context, all []proof) ([]string, error) {
	command := exec.CommandContext(ctx, s.program, s.orders(all)...)
	command.Dir = s.path("project")
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("try attacks without a sandbox: %w", err)
	}
	return s.answers(all, string(output))
}

func (s *scenery) attemptInSession(ctx context.Context, spawner *spawn.Spawner, p policy.Policy,
	all []proof) ([]string, spawn.Outcome, error) {
	session, err := spawner.Start(ctx, spawn.Request{
		ID: uuid.NewString(), Policy: p, Program: s.program, Argv: append([]string{s.program}, s.orders(all)...),
		Dir: s.path("project"),
	})
	if err != nil {
		return nil, spawn.Outcome{}, err
	}
	told := &listener{ended: make(chan struct{})}
	session.Begin(told, nil)
	select {
	case <-told.ended:
	case <-ctx.Done():
		_, closeErr := session.Close(context.WithoutCancel(ctx), 0)
		return nil, spawn.Outcome{}, errors.Join(ctx.Err(), closeErr)
	}
	list, err := s.answers(all, told.output.String())
	if err != nil {
		return nil, spawn.Outcome{}, err
	}
	for i, p := range all {
		if p.told == nil {
			continue
		}
		list[i] = attemptWorks
		if slices.ContainsFunc(told.denials, func(d spawn.Denial) bool { return p.told(s, d) }) {
			list[i] = "told"
		}
	}
	return list, session.Outcome(), nil
}

// libraries are where the loader is, and what this program loads where it was
// built with a C compiler.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/System", "/usr/local/lib"}

// policy is that of the session: it asks for every protection that can be
// tried.
func (s *scenery) policy() policy.Policy {
	grant := func(path string, access policy.Access) policy.Rule {
		return policy.Rule{Path: path, Access: access, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: "doctor"}}
	}
	rules := []policy.Rule{
		grant(s.path("project"), policy.ReadWrite), grant(s.path("readable"), policy.Read), grant(s.program,
			policy.Read|policy.Execute),
		grant(os.DevNull, policy.Read|policy.Write),
	}
	for _, dir := range libraries {
		rules = append(rules, grant(dir, policy.Read|policy.Execute))
	}
	slices.SortFunc(rules, func(a, b policy.Rule) int { return strings.Compare(a.Path, b.Path) })
	return policy.Policy{
		Restricted: true, Project: s.path("project"), PrivateTerminals: true,
		Rules:         rules,
		Protected:     []policy.Protected{{Path: s.path("project", "protected")}},
		OnUnavailable: policy.Refuse, OnDenied: policy.Report,
	}
}

// listener gathers what a session says.
type listener struct {
	output  strings.Builder
	denials []spawn.Denial
	ended   chan struct{} // closed at the end, after which the others are anybody's to read
}

func (l *listener) Output(data []byte) { l.output.Write(data) }

// Alarm is for editors: whether the path was written the attempt itself says.
func (l *listener) Alarm(spawn.Alarm) {}

func (l *listener) Denied(d spawn.Denial) { l.denials = append(l.denials, d) }

func (l *listener) Exited(spawn.Exit) { close(l.ended) }

func (s *scenery) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *scenery) secret() string { return s.path("outside", "secret") }
