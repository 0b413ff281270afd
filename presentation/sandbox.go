package presentation

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Sandbox says what confines a session: what the stage reported from inside,
// never what was asked for.
func Sandbox(restricted bool, outcome spawn.Outcome, warnings []string) protocol.SandboxReport {
	report := protocol.SandboxReport{
		Applied: outcome.Confined, Status: protocol.SandboxOff, Protections: Protections(outcome.Protections()),
		Warnings: orEmpty(display.Lines(warnings)),
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

// Protections say how far each protection holds.
func Protections(protections spawn.Protections) protocol.Protections {
	out := protocol.Protections{}
	for name, p := range protections {
		out[name] = protocol.Protection{
			Status: protocol.ProtectionStatus(p.Status), Mechanism: display.Line(p.Mechanism),
			Detail: display.Line(p.Detail), Fix: display.Line(p.Fix),
		}
	}
	return out
}

// Tracking says how a session's processes are held together.
func Tracking(outcome spawn.Outcome) protocol.Tracking {
	return protocol.Tracking{Mechanism: outcome.Tracking.Mechanism, Guarantee: outcome.Tracking.Guarantee}
}

// SandboxWarnings are what the user must know about one session, apart from
// what the settings say. The guarded paths are those that no session should be
// able to write: the sidecar's program and its state.
func SandboxWarnings(compiled compile.Result, outcome spawn.Outcome, guarded []string) []string {
	var warnings []string
	if outcome.Unconfinable != nil {
		warnings = append(warnings, fmt.Sprintf("this session is not sandboxed: %v", outcome.Unconfinable))
	}
	warnings = append(warnings, outcome.Enforcement.Warnings...)
	warnings = append(warnings, LostGrants(outcome)...)
	warnings = append(warnings, UnheldWarnings(compiled.Written, compiled.Policy.Restricted, outcome)...)
	if outcome.Confined {
		for _, path := range guarded {
			_, protected := compiled.Policy.ProtectedAt(path)
			if _, err := fsguard.Lstat(path); err == nil && protected && ProtectsExistingPaths(outcome) {
				continue
			}
			if rule, writable := compiled.Policy.Writable(path); writable {
				warnings = append(warnings, fmt.Sprintf("%s can be written from inside: granted by %s",
					display.Quote(path), rule.Origin))
			}
		}
	}
	if outcome.Tracking.Warning != "" {
		warnings = append(warnings, outcome.Tracking.Warning)
	}
	if !outcome.Tracking.Guarantee {
		warning := "processes that detach themselves may outlive this session"
		if outcome.Tracking.Fix != "" {
			warning += "; fix: " + outcome.Tracking.Fix
		}
		warnings = append(warnings, warning+"; "+outcome.Tracking.Detail)
	}
	return warnings
}

// LostGrants are warnings of the grants that a session does not have, although their
// paths were there when its policy was made.
func LostGrants(outcome spawn.Outcome) []string {
	var warnings []string
	for _, lost := range outcome.Lost {
		warnings = append(warnings,
			fmt.Sprintf("the grant of %s, from %s, is lost: %s; fix that, and start a new session",
				display.Quote(lost.Path), lost.Origin, lost.Reason))
	}
	return warnings
}

// ProtectsExistingPaths reports whether a session cannot change the protected
// paths that exist. Those that do not exist yet may still be created, which
// only lowers the status.
func ProtectsExistingPaths(outcome spawn.Outcome) bool {
	p := outcome.Protections()["protected_paths"]
	return protocol.ProtectionStatus(p.Status) == protocol.Enforced || p.PreventsChanges
}

// OffLine is the first line of a terminal if nobody has turned the sandbox on.
func OffLine(compiled compile.Result) []byte {
	if !compiled.Undecided() {
		return nil
	}
	return []byte("\x1b[33mnot sandboxed: no settings file turns the sandbox on. Run: sandbox-sidecar init\x1b[0m\r\n")
}

// UnsandboxedLine is the first line of a terminal that should be sandboxed and
// is not; nil for any other terminal.
func UnsandboxedLine(outcome spawn.Outcome) []byte {
	if outcome.Unconfinable == nil {
		return nil
	}
	return fmt.Appendf(nil, "\x1b[33mwarning: this terminal is not sandboxed: %s\x1b[0m\r\n",
		display.Line(outcome.Unconfinable.Error()))
}

// DoubtLine is the first line of a terminal if a settings file is wrong, so
// that it is unclear which sandbox the user wants; nil if doubt is nil.
func DoubtLine(confined bool, doubt *compile.Doubt) []byte {
	if doubt == nil {
		return nil
	}
	state := "this terminal is not sandboxed"
	if confined {
		state = "the sandbox may not be as you meant it"
	}
	where := display.Shorten(display.Escape(fmt.Sprintf("%s:%d", doubt.File, doubt.Line)), maxDoubtPath)
	return fmt.Appendf(nil, "\x1b[33mwarning: %s: %s is wrong\x1b[0m\r\n", state, where)
}

// maxDoubtPath is what a line of 100 characters has left for a file and a line.
const maxDoubtPath = 42
