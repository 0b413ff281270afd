package compile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
)

// Result is the policy for one kind of session, with the diagnostics on it.
type Result struct {
	Policy policy.Policy
	// Diagnostics are those of Snapshot.Diagnostics.
	Diagnostics []document.FileDiagnostic
	// Warnings are shown when a session starts.
	Warnings []string
	// Risks are the warnings that are in no diagnostic.
	Risks []string
	// Switches are the keys of a single value that decide about the policy,
	// each with the value that counts.
	Switches []Switch
	// Written are the keys that somebody wrote and that count, each with its origin,
	// in the order of the reference. A mode writes the keys that it sets.
	Written []policy.Origin
	// Variables are the entries of Policy.Environment.Allowed, each with its
	// origin.
	Variables []Variable
	// Shell is the program with its arguments that terminals start and that gets
	// command lines; nil: the user's own, and bash.
	Shell []string
	// Doubt is why it is unclear what the settings ask for; nil if it is clear.
	Doubt *Doubt
	// NoAnswer is a path of the project on a file system that does not answer,
	// so that nobody knows what to protect there; "" if all answer. No
	// sandboxed session may start then.
	NoAnswer string
	// Redirect is a symlink on the way to the project that a session could have
	// made; nil if there is none. No sandboxed session may start then.
	Redirect *Redirect
	// Overfull is a directory of git working trees with more names than can be
	// compared; nil if there is none. No sandboxed session may start then.
	Overfull *Overfull
	// AgentGap is why the agent of the command line does not count; "" if it
	// does, or if there is none. Its session does not start then.
	AgentGap string

	create  []string   // see MakeDirs
	unmade  []string   // of them, what MakeDirs could not make
	exposed []exposure // see Exposures
	proxies []string   // see Notes
	// registries are variables that do not pass, as the address of a registry in
	// them may hold a secret; see Notes.
	registries []string
	// unreached are notes on variables that do not arrive.
	unreached []Note
	// unsearched are notes on grants that are too large to search.
	unsearched []Note
	cut        []Note   // on what Add left out
	toolchains []string // see HasToolchain
	bounds     bounds   // see Add
	adding     adding   // see PassVariable
}

// HasToolchain reports whether sessions have the set of a name.
func (c *Result) HasToolchain(name string) bool { return slices.Contains(c.toolchains, name) }

// Undecided reports whether no settings file says if the sandbox is on, so that
// the user may not know that it is off.
func (c *Result) Undecided() bool {
	return !c.Policy.Restricted && slices.ContainsFunc(c.Switches, func(s Switch) bool {
		return s.Key == enabledKey && s.Origin.File == policy.OriginBuiltIn
	})
}

// RefuseUnconfined has no session start that this machine cannot confine,
// whatever on_unavailable says.
func (c *Result) RefuseUnconfined() { c.Policy.OnUnavailable = policy.Refuse }

// MakeDirs makes the caches of toolchains that do not exist. A session could
// not make them, because only what exists at its start can be granted. So it does
// with directories of the sidecar's own that grants open, which can be protected
// only then. Call it
// right before a restricted session starts. It continues after an error.
func (c *Result) MakeDirs() error {
	var problems []error
	for _, dir := range c.create {
		err := fsguard.MkdirAll(dir, 0o700)
		if err != nil {
			c.unmade = append(c.unmade, dir)
		}
		if err != nil && !fsguard.NotMade(err) { // the state directory is not made either, which is said
			problems = append(problems, fmt.Errorf("make a directory that sessions need: %w", err))
		}
	}
	return errors.Join(problems...)
}

// Note is worth telling a user once.
type Note struct {
	// Name tells notes apart, for whoever remembers which were told.
	Name string
	Text string
}

// Notes tell what sessions get, or do not get, that users may not expect.
func (c *Result) Notes() []Note {
	if !c.Policy.Restricted {
		return nil
	}
	var notes []Note
	if len(c.registries) > 0 {
		notes = append(notes, Note{
			Name: "registries",
			Text: fmt.Sprintf("%s may hold a secret: it is not passed, so packages come from elsewhere; add %s to %q",
				strings.Join(c.registries, ", "), strconv.Quote(document.AddingMark+c.registries[0]), variablesKey),
		})
	}
	if len(c.proxies) > 0 {
		notes = append(notes, Note{
			Name: "proxy-password",
			Text: "sandboxed sessions get the password of your proxy, in " + strings.Join(c.proxies, ", "),
		})
	}
	return slices.Concat(notes, c.unreached, c.unsearched, c.cut)
}

// Exposures are the warnings of files that decide about sessions and that a
// session could change. The files are protected paths. kept says that the
// machine protects them; then only files that do not exist yet are left. The
// same machine gives projects a /tmp of their own.
func (c *Result) Exposures(kept bool) []string {
	var list []string
	for _, x := range c.exposed {
		if !kept || (!x.there || slices.Contains(c.unmade, x.made)) && !x.own {
			list = append(list, x.warning)
		}
	}
	return list
}

// Doubt is why it is unclear what the settings ask for: a file could not be
// read, or has a mistake. Tools do not start then.
type Doubt struct {
	document.FileDiagnostic
	// Refused says that sessions of the compiled kind do not start.
	Refused bool
	// Named says that nothing starts: the user named this file, or it is the
	// organisation's.
	Named bool
}

// Managed reports whether the doubt is about the organisation's settings.
func (d *Doubt) Managed() bool { return managed.Holds(d.File) }
