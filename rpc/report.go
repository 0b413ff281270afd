package rpc

import (
	"fmt"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// sandboxReport is what the editor learns of a session's sandbox: what the
// stage reported, never what was asked for.
func sandboxReport(restricted bool, outcome spawn.Outcome, warnings []string) protocol.SandboxReport {
	report := protocol.SandboxReport{
		Applied: outcome.Confined, Status: protocol.SandboxOff, Protections: wireProtections(
			outcome.Protections()), Warnings: orEmpty(display.Lines(warnings)),
	}
	switch {
	case !restricted:
	case !outcome.Confined:
		report.Status = protocol.SandboxNone
	case outcome.Full():
		report.Status = protocol.SandboxFull
	default:
		report.Status = protocol.SandboxDegraded
	}
	return report
}

func wireTracking(outcome spawn.Outcome) protocol.Tracking {
	return protocol.Tracking{Mechanism: outcome.Tracking.Mechanism, Guarantee: outcome.Tracking.Guarantee}
}

// sandboxWarnings are what a user must know of one session beside what the
// settings say.
func (s *Server) sandboxWarnings(compiled settings.Compiled, outcome spawn.Outcome) []string {
	var warnings []string
	if outcome.Unconfinable != nil {
		warnings = append(warnings, fmt.Sprintf("this session is not sandboxed: %v", outcome.Unconfinable))
	}
	warnings = append(warnings, outcome.Enforcement.Warnings...)
	if outcome.Confined {
		for _, path := range s.options.Guarded {
			if rule, writable := compiled.Policy.Writable(path); writable {
				warnings = append(warnings, fmt.Sprintf("%s can be written from inside: granted by %s", display.Quote(path),
					rule.Origin))
			}
		}
	}
	if outcome.Tracking.Warning != "" {
		warnings = append(warnings, outcome.Tracking.Warning)
	}
	if !outcome.Tracking.Guarantee {
		warning := "processes may outlive this session: " + outcome.Tracking.Detail
		if outcome.Tracking.Fix != "" {
			warning += "; to mend it: " + outcome.Tracking.Fix
		}
		warnings = append(warnings, warning)
	}
	return warnings
}

// ProtectsExistingPaths reports whether the protected paths that exist stay as they
// are in a session, even if those that do not exist yet, which lower the
// status, can be made.
func ProtectsExistingPaths(outcome spawn.Outcome) bool {
	p := wireProtections(outcome.Protections())["protected_paths"]
	return p.Status == protocol.Enforced || p.Status == protocol.Degraded &&
		strings.HasPrefix(p.Mechanism, "mount namespace")
}

// unsandboxedLine is what a terminal shows before anything else where its sandbox is
// missing; nil where it is not.
func unsandboxedLine(outcome spawn.Outcome) []byte {
	if outcome.Unconfinable == nil {
		return nil
	}
	return fmt.Appendf(nil, "\x1b[33mwarning: this terminal is not sandboxed: %s\x1b[0m\r\n",
		display.Line(outcome.Unconfinable.Error()))
}

// doubtLine is what a terminal shows first if nobody knows what sandbox was
// asked for; nil if it is known.
func doubtLine(confined bool, doubt *settings.Doubt) []byte {
	if doubt == nil {
		return nil
	}
	state := "this terminal is not sandboxed"
	if confined {
		state = "the sandbox may not be as you meant it"
	}
	where := display.Shorten(display.Escape(fmt.Sprintf("%s:%d", doubt.File, doubt.Line)), doubtPathLimit)
	return fmt.Appendf(nil, "\x1b[33mwarning: %s: %s is wrong\x1b[0m\r\n", state, where)
}

// doubtPathLimit is what a line of 100 characters has for a place in a file.
const doubtPathLimit = 42

func wireFindings(list []spawn.Finding) []protocol.Finding {
	out := []protocol.Finding{}
	for _, f := range list {
		out = append(out, protocol.Finding{Path: f.Path, Change: string(f.How), Why: f.Why, Message: FindingMessage(f)})
	}
	return out
}

// orEmpty makes a nil slice [] on the wire.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
