//go:build unix

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

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// proof is an attack that doctor tries twice: in a process without a sandbox,
// which is the control, and in a session.
type proof struct {
	protection string // that must prevent the attack
	attack     string // for people
	act        string // the name of an attempt
	on         func(*targets) string
	// effect reports whether the attack succeeded; if it is nil, the result of
	// the attempt counts.
	effect func(*targets) bool
	// reported recognises the denial that must be reported; it is nil if it is
	// enough that the attack is refused. Without a report the attack has
	// succeeded, even if the protection is degraded: only other denials may be
	// missing then.
	reported func(*targets, spawn.Denial) bool
}

var proofs = []proof{
	{protection: platform.Filesystem, attack: "read a file that is not granted", act: "read", on: (*targets).secret},
	{
		protection: platform.Filesystem, attack: "make a file in a directory that is not granted", act: "write",
		on: func(s *targets) string {
			return s.path("outside", "new")
		},
	},
	{
		protection: platform.TemporaryFiles, attack: "read a temporary file of a program outside", act: "read",
		on: func(s *targets) string { return s.path("temporary", "file") },
	},
	{
		protection: platform.HiddenPaths, attack: "read a hidden file in a granted directory", act: "read",
		on: func(s *targets) string { return s.path("readable", "hidden") },
	},
	{
		protection: platform.Execute, attack: "run a file that may only be read", act: "execute",
		on: func(s *targets) string {
			return s.path("readable", "file")
		},
	},
	{
		protection: platform.Network, attack: "connect to a server outside by TCP", act: "tcp",
		on: func(s *targets) string { return s.server },
	},
	{
		protection: platform.UnixSockets, attack: "connect to the socket of a process outside by its path",
		act: "socket", on: func(s *targets) string { return s.socket },
	},
	{
		protection: platform.Signals, attack: "end a process outside", act: "terminate",
		on: func(s *targets) string { return s.target },
	},
	{
		protection: platform.ProtectedPaths, attack: "write to a protected path of the project", act: "write",
		on: func(s *targets) string {
			return s.path("project", "protected", "new")
		},
	},
	{
		protection: platform.ProcessTracking, attack: "leave a process behind", act: "stay",
		on: func(s *targets) string {
			return s.path("project", "lock")
		},
		effect: func(s *targets) bool {
			held, err := lockHeld(s.path("project", "lock"))
			return held || err != nil
		},
	},
}

// finding is the result of a proof.
type finding struct {
	proof
	control, session string // the attempt's error, or "works"
	status           platform.Status
}

const attemptWorks = "works"

// verdict summarises a finding.
type verdict string

const (
	// verdictUntried: the attack does not work without a sandbox either. Its
	// refusal in a session would prove nothing.
	verdictUntried verdict = "untried"
	// verdictHeld: the session could not do it.
	verdictHeld verdict = "held"
	// verdictOpen: the session could do it, as the protection is not reported
	// as enforced.
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
	case f.status == platform.Absent, f.status != platform.Enforced && f.reported == nil:
		return verdictOpen
	default:
		return verdictBroken
	}
}

// prove tries every attack in a temporary session. If this machine has no
// sandbox, the session has none either, as the user's sessions. An error means
// that the attacks could not be tried.
func prove(ctx context.Context, spawner *spawn.Spawner, claimed spawn.Protections) ([]finding, error) {
	all := slices.Concat(proofs, systemProofs)
	outside, err := newTargets()
	if err != nil {
		return nil, err
	}
	defer outside.clear()
	control, err := outside.attemptUnsandboxed(ctx, all)
	if err != nil {
		return nil, err
	}
	sandboxed, err := newTargets()
	if err != nil {
		return nil, err
	}
	defer sandboxed.clear()
	p := sandboxed.policy()
	if claimed[platform.Filesystem].Status == platform.Absent {
		// A session without the network never starts without a sandbox.
		p.OnUnavailable, p.Network.Allowed = policy.Warn, true
	}
	inside, outcome, err := sandboxed.attemptInSession(ctx, spawner, p, all)
	if err != nil {
		return nil, err
	}
	protections := claimed
	if outcome.Confined {
		protections = outcome.Protections()
	}
	findings := make([]finding, len(all))
	for i, p := range all {
		findings[i] = finding{
			proof: p, control: control[i], session: inside[i], status: protections[p.protection].Status,
		}
	}
	return findings, nil
}

// arguments are the arguments of a process that tries all.
func (s *targets) arguments(all []proof) []string {
	list := []string{"attempt"}
	for _, p := range all {
		list = append(list, p.act+"="+p.on(s))
	}
	return list
}

// answers parses the output of such a process, and checks for effects.
func (s *targets) answers(all []proof, output string) ([]string, error) {
	var list []string
	for line := range strings.Lines(output) {
		name, answer, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || len(list) == len(all) || name != all[len(list)].act {
			return nil, fmt.Errorf("try attacks: unexpected output %q", line)
		}
		if effect := all[len(list)].effect; effect != nil && answer == attemptWorks && !effect(s) {
			answer = "no effect"
		}
		list = append(list, answer)
	}
	if len(list) < len(all) {
		return nil, fmt.Errorf("try attacks: only %d of %d results", len(list), len(all))
	}
	return list, nil
}

func (s *targets) attemptUnsandboxed(ctx context.Context, all []proof) ([]string, error) {
	command := exec.CommandContext(ctx, s.program, s.arguments(all)...)
	command.Dir = s.path("project")
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("try attacks without a sandbox: %w", err)
	}
	return s.answers(all, string(output))
}

func (s *targets) attemptInSession(ctx context.Context, spawner *spawn.Spawner, p policy.Policy,
	all []proof,
) ([]string, spawn.Outcome, error) {
	session, err := spawner.Start(ctx, spawn.Request{
		ID: spawn.NewID(), Policy: p, Program: s.program, Argv: append([]string{s.program}, s.arguments(all)...),
		Dir: s.path("project"),
	})
	if err != nil {
		return nil, spawn.Outcome{}, err
	}
	events := &recorder{ended: make(chan struct{})}
	session.Begin(events, nil)
	select {
	case <-events.ended:
	case <-ctx.Done():
		_, closeErr := session.Close(context.WithoutCancel(ctx), 0)
		return nil, spawn.Outcome{}, errors.Join(ctx.Err(), closeErr)
	}
	list, err := s.answers(all, events.output.String())
	if err != nil {
		return nil, spawn.Outcome{}, err
	}
	for i, p := range all {
		if p.reported == nil {
			continue
		}
		list[i] = attemptWorks
		if slices.ContainsFunc(events.denials, func(d spawn.Denial) bool { return p.reported(s, d) }) {
			list[i] = "reported"
		}
	}
	return list, session.Outcome(), nil
}

// libraries are the directories of the loader and of the libraries that this
// program loads if it was built with a C compiler.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store", "/System", "/usr/local/lib"}

// byDoctor is the origin of what the session is granted.
var byDoctor = policy.Origin{File: policy.OriginBuiltIn, Key: "doctor"}

// policy is the policy of the session. It asks for every protection that can be
// tried.
func (s *targets) policy() policy.Policy {
	grant := func(path string, access policy.Access) policy.Rule {
		return policy.Rule{Path: path, Access: access, Origin: byDoctor}
	}
	rules := []policy.Rule{
		grant(s.path("project"), policy.ReadWrite), grant(s.path("readable"), policy.Read),
		grant(s.path("temporary"), policy.ReadWrite),
		grant(s.program, policy.Read|policy.Execute), grant(os.DevNull, policy.Read|policy.Write),
	}
	for _, dir := range libraries {
		rules = append(rules, grant(dir, policy.Read|policy.Execute))
	}
	slices.SortFunc(rules, func(a, b policy.Rule) int { return strings.Compare(a.Path, b.Path) })
	p := policy.Policy{
		Restricted: true, Project: s.path("project"), PrivateTerminals: true,
		Rules:         rules,
		Protected:     []policy.Protected{{Path: s.path("project", "protected")}},
		Network:       policy.Network{AllowedHosts: []policy.Host{{Pattern: "doctor.invalid"}}},
		Temporary:     []policy.Temporary{{Path: s.path("temporary")}},
		Hidden:        []policy.Hidden{{Path: s.path("readable", "hidden")}},
		OnUnavailable: policy.Refuse, OnDenied: policy.Report,
	}
	s.system(&p)
	return p
}

// recorder records the events of a session.
type recorder struct {
	output  strings.Builder
	denials []spawn.Denial
	ended   chan struct{} // closed at the end; then the other fields may be read
}

func (l *recorder) Output(data []byte) { l.output.Write(data) }

// Stderr does nothing: standard error is not apart.
func (l *recorder) Stderr([]byte) {}

// Alarm does nothing: the attempt itself reports whether it wrote.
func (l *recorder) Alarm(spawn.Alarm) {}

func (l *recorder) Denied(d spawn.Denial) { l.denials = append(l.denials, d) }

// Reached does nothing: the attempt itself reports what it was refused.
func (l *recorder) Reached(spawn.Reached) {}

func (l *recorder) Exited(spawn.Exit) { close(l.ended) }

// Reviewed does nothing: the attempt itself looks at what it wrote.
func (l *recorder) Reviewed([]spawn.Finding) {}

func (s *targets) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *targets) secret() string { return s.path("outside", "secret") }
