//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

// offer is what allow would do about a denial.
type offer struct {
	suggestion explain.Suggestion
	proposal   *settings.Proposal // nil if nothing can be written
	why        string             // nothing can be written; "" if the suggestion says so
	unhelpful  bool               // a setting was tried, and would not allow it
	gone       bool               // what was refused does not exist any more
}

// wish is a denial of which somebody wants to know what would allow it.
type wish struct {
	scope   settings.Scope // whose file would be written
	kind    settings.Kind
	denial  spawn.Denial
	line    refusals.Under // of the session
	pattern string         // to allow instead of the host of the denial; or ""
}

// offerFor finds a setting and tries it: with it the same access must be allowed to
// a session under the same command line.
func offerFor(store *settings.Store, snapshot *compile.Snapshot, w wish) offer {
	kind, denial, line := w.kind, w.denial, w.line
	suggestion, err := presentation.Suggest(snapshot, kind, denial)
	if w.pattern != "" && suggestion.Setting() == "allowed_hosts" {
		suggestion.Value = w.pattern
	}
	o := offer{suggestion: suggestion}
	switch {
	case err != nil:
		o.why = err.Error()
		return o
	case suggestion.Allowed && denial.Lacking != "":
		o.why = suggestion.Hint
		return o
	case suggestion.Key == "" && suggestion.List != "" && byCommandLine(snapshot, kind, suggestion):
		return offer{why: leaveOut(line, suggestion), unhelpful: true}
	case suggestion.Key == "":
		return o
	case strings.HasPrefix(suggestion.Setting(), "additional_") && isGone(denial):
		// The setting would be of the directory, and open more than was refused.
		o.gone, o.why = true, "it does not exist now: make it first, or allow its directory"
		return o
	}
	proposal, err := store.Propose(w.scope, snapshot.ProjectDir, suggestion)
	if err != nil {
		o.why = err.Error()
		return o
	}
	denial.Lacking = ""
	with := store.With(proposal) // evaluates the settings anew
	tried, err := presentation.Suggest(with, kind, denial)
	switch {
	case err == nil && tried.Allowed:
		o.proposal = proposal
	default:
		o = offer{why: countsMore(with, kind, denial, suggestion, line), unhelpful: true}
	}
	return o
}

// byCommandLine reports whether the command line decides about the setting that a
// suggestion is about.
func byCommandLine(snapshot *compile.Snapshot, kind settings.Kind, suggestion explain.Suggestion) bool {
	about := cmp.Or(suggestion.Setting(), suggestion.List)
	return snapshot.Reasons(kind).SetBy(about).File == policy.OriginCommand
}

// leaveOut says which flag decides, and no settings file.
func leaveOut(line refusals.Under, suggestion explain.Suggestion) string {
	switch {
	case line.Mode != "" && cmp.Or(suggestion.Setting(), suggestion.List) == "allowed_hosts":
		return fmt.Sprintf(`--mode %s reaches no host: with "mode": %q in a settings file, `+
			`"allowed_hosts" opens single ones`, line.Mode, line.Mode)
	case line.Mode != "":
		return fmt.Sprintf("--mode %s decides, not the settings: leave it out, or run it outside the sandbox",
			line.Mode)
	}
	return "the command line decides, not the settings"
}

// countsMore says what keeps an access refused although an entry would allow it.
func countsMore(
	tried *compile.Snapshot, kind settings.Kind, denial spawn.Denial, suggestion explain.Suggestion,
	line refusals.Under,
) string {
	if byCommandLine(tried, kind, suggestion) {
		return leaveOut(line, suggestion)
	}
	const why = "no entry there would allow it"
	if by, bound := explain.BoundBy(tried, suggestion.Key); bound {
		return why + ": " + by.String() +
			" counts more, as the project is not trusted; see `sandbox-sidecar trust --show`"
	}
	attempt, target := explain.Attempt(denial.Access), denial.Target
	if denial.Access == platform.RefusedCreate || denial.Access == platform.RefusedRemove {
		attempt, target = explain.Write, filepath.Dir(target)
	}
	x, err := explain.Why(tried, kind, attempt, target)
	if err != nil || x.Allowed {
		return why
	}
	return why + ": " + x.Reason
}

// isGone reports whether the path of a denial does not exist.
func isGone(denial spawn.Denial) bool {
	if !filepath.IsAbs(denial.Target) || denial.Access == platform.RefusedCreate {
		return false
	}
	_, err := fsguard.Lstat(denial.Target)
	return errors.Is(err, fs.ErrNotExist)
}

// lines say what would allow it, or why nothing should.
func (o offer) lines() []string {
	if o.suggestion.Key != "" && !o.gone {
		return append([]string{"to allow it: " + o.suggestion.InstructionInFull()}, o.notes()...)
	}
	return o.notes()
}

// notes say why nothing is written, and what to be careful about.
func (o offer) notes() []string {
	notes := []string{}
	switch {
	case o.why != "":
		notes = append(notes, o.why)
	case o.suggestion.Protected && o.suggestion.Hint == "":
		notes = append(notes, "if you trust the command, run it outside the sandbox")
	}
	if o.suggestion.Hint != "" && o.suggestion.Hint != o.why {
		notes = append(notes, note(o.suggestion.Hint))
	}
	return notes
}
