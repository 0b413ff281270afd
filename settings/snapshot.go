package settings

import (
	"cmp"
	"slices"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// Snapshot is the settings at one moment, for one project directory or for
// none. It is immutable and may be used from several goroutines.
//
// What it compiles to also depends on the file system. The first question to a
// snapshot evaluates it; the snapshot keeps the result and answers all later
// questions from it.
type Snapshot struct {
	host       resolve.Host
	files      resolve.FS
	askGit     askGit         // nil: git is not asked
	user       []source.State // lowest first; the editor's is last
	project    *source.State  // nil without a project
	command    *source.State  // of the command line; nil if there is none
	granted    []Suggestion   // until the sidecar ends, beside what any list holds
	projectDir string         // clean
	trust      *trust.List    // nil: nothing is trusted
	others     []string       // directories of projects that the store was asked about
	ownPaths   []string       // see Options.Guarded
	hostsGap   func() string  // see Options.HostsGap
	memory     *memory        // nil: each snapshot is evaluated
	complete   Completion     // nil: nothing is added

	once [2]sync.Once   // guards kept
	kept [2]*evaluation // for tools, and for terminals if they differ
}

// Compiled is the policy for one kind of session, with the diagnostics on it.
type Compiled struct {
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

	create  []string   // see MakeDirs
	exposed []exposure // see Exposures
	proxies []string   // see Notes
	// unreached are notes on variables that do not arrive.
	unreached []Note
	ssh       bool   // see HasSSH
	bounds    bounds // see Add
}

// HasSSH reports whether sessions have what ssh needs: the set of that name.
func (c *Compiled) HasSSH() bool { return c.ssh }

// Compile returns what a session of that kind may do. It fills in the policy
// even if the kind is not restricted.
func (s *Snapshot) Compile(kind document.Kind) Compiled {
	e := s.evaluation(kind)
	compiled := Compiled{
		proxies: proxyPasswords(s.host.Env, e.policy.Environment),
		Policy:  s.policyFor(e, kind), Diagnostics: s.Diagnostics(), Warnings: s.warnings(e, kind),
		Risks: e.risks(kind), unreached: e.unreached, ssh: hasToolchain(e.toolchains, toolchain.SSH),
		Variables: slices.Clone(e.variables),
		Switches:  e.switches(kind), Doubt: s.doubt(e, kind), Shell: s.shell(e, kind),
		bounds: e.bounds,
	}
	if compiled.Policy.Restricted {
		compiled.NoAnswer, compiled.Redirect = e.noAnswer, e.redirect
		if s.project != nil && s.project.NoAnswer && s.project.Good == nil {
			compiled.NoAnswer = cmp.Or(compiled.NoAnswer, s.project.File)
		}
		compiled.create, compiled.exposed = e.create, e.exposed
	}
	return compiled
}

// RefuseUnconfined has no session start that this machine cannot confine,
// whatever on_unavailable says.
func (c *Compiled) RefuseUnconfined() { c.Policy.OnUnavailable = policy.Refuse }

// policyFor is the policy of a kind of session, with what the session has for
// itself.
func (s *Snapshot) policyFor(e *evaluation, kind document.Kind) policy.Policy {
	p := e.policyFor(kind)
	if s.complete != nil {
		p = e.bounds.within(p, s.complete(p, kind))
	}
	return p
}

// policyFor completes the policy with what depends on the kind.
func (e *evaluation) policyFor(kind document.Kind) policy.Policy {
	p := e.policy
	// The evaluation is kept; its lists must not become the caller's.
	p.Rules, p.Protected = slices.Clone(p.Rules), slices.Clone(p.Protected)
	p.Caches, p.Temporary, p.Hidden = slices.Clone(p.Caches), slices.Clone(p.Temporary), slices.Clone(p.Hidden)
	p.UnixSockets, p.Environment.Allowed = slices.Clone(p.UnixSockets), slices.Clone(p.Environment.Allowed)
	p.SigningKeys = slices.Clone(p.SigningKeys)
	p.Restricted = e.restricted.Has(kind)
	p.OnUnavailable = e.onUnavailable(kind)
	p.RequireProtected = e.requireProtected()
	return p
}

// Merged is the "terminal.sandbox" block that holds, defaults included. It
// expresses what an untrusted project tightens as well as settings can; the
// policy of Compile is exact. The caller owns the result.
func (s *Snapshot) Merged() document.Sandbox {
	if !s.byKind() {
		return s.evaluation(document.KindTool).merged.Clone()
	}
	return s.mergedByKind()
}

// MergedFor is the block as it counts for one kind of session.
func (s *Snapshot) MergedFor(kind document.Kind) document.Sandbox {
	return s.evaluation(kind).merged.Clone()
}

// Origins maps every key, such as "system_paths.executable", to the file of its
// value, or to policy.OriginBuiltIn or policy.OriginEditor.
func (s *Snapshot) Origins() map[string]string {
	origins := map[string]string{}
	for _, l := range document.Keys() {
		origins[l.Name] = policy.OriginBuiltIn
	}
	for _, e := range s.evaluations() {
		for key, file := range e.origins {
			from := e.user.from[key]
			if bound, is := e.bounds.from[key]; is {
				from = bound
			} else if e.project != nil && file == e.projectFile {
				from = e.project.from[key]
			}
			origins[inBlock(from, key)] = file
		}
	}
	return origins
}

// Diagnostics are about all files, sorted by file and position.
func (s *Snapshot) Diagnostics() []document.FileDiagnostic {
	var list []document.FileDiagnostic
	for _, e := range s.evaluations() {
		list = append(list, e.diagnostics...)
	}
	return document.Sort(list)
}

// ProjectDir is the project's directory as it was named, clean; "" if there is
// none.
func (s *Snapshot) ProjectDir() string { return s.projectDir }

// Files are the settings files that count, lowest first, whether they exist or
// not. The editor's layer is policy.OriginEditor.
func (s *Snapshot) Files() []string {
	var list []string
	for _, state := range s.states() {
		list = append(list, state.File)
	}
	return list
}

// DiagnosticsOf are about one file.
func (s *Snapshot) DiagnosticsOf(file string) []document.Diagnostic {
	var list []document.Diagnostic
	for _, d := range s.Diagnostics() {
		if d.File == file {
			list = append(list, d.Diagnostic)
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
	// Lost says that the user's settings were elsewhere, and are gone.
	Lost bool
}

// Managed reports whether the doubt is about the organisation's settings.
func (d *Doubt) Managed() bool { return managed.Holds(d.File) }

// doubt is the first doubt for a kind of session; nil if there is none.
func (s *Snapshot) doubt(e *evaluation, kind document.Kind) *Doubt {
	var first *Doubt
	for _, state := range s.states() {
		d := state.Doubt()
		if d == nil {
			continue
		}
		doubt := &Doubt{FileDiagnostic: document.FileDiagnostic{File: state.File, Diagnostic: *d}}
		doubt.Refused = state.Refuses(kind) != nil
		doubt.Named, doubt.Lost = state.Refuses(document.KindTerminal) != nil, state.Lost
		if first == nil || doubt.Refused && !first.Refused || doubt.Named && !first.Named {
			first = doubt
		}
	}
	if d := e.bounds.unclear; d != nil && (first == nil || !first.Named) {
		return &Doubt{FileDiagnostic: *d, Refused: true, Named: true}
	}
	if first == nil && e.unclear != nil {
		first = &Doubt{FileDiagnostic: *e.unclear, Refused: kind == document.KindTool}
	}
	return first
}

func (s *Snapshot) states() []source.State {
	states := slices.Clone(s.user)
	if s.project != nil {
		states = append(states, *s.project)
	}
	return states
}

// evaluation is what the settings mean for a kind of session, on the file system
// as it was when the snapshot was first asked.
func (s *Snapshot) evaluation(kind document.Kind) *evaluation {
	i := 0
	if kind == document.KindTerminal && s.byKind() {
		i = 1
	} else {
		kind = document.KindTool
	}
	s.once[i].Do(func() { s.kept[i] = s.recall(kind) })
	return s.kept[i]
}

// askGit asks git about its configuration in a project.
type askGit func(host resolve.Host, project string) git.Answer

// memory keeps evaluations with what each asked the machine. The next snapshot
// of the same settings takes one that would be made again exactly as it is.
type memory struct {
	mu   sync.Mutex
	kept map[remembered]memo
}

// remembered is what there is one evaluation of.
type remembered struct {
	projectDir string
	kind       document.Kind
	granted    bool // with what was granted until the sidecar ends
}

type memo struct {
	of         *Snapshot
	transcript *resolve.Transcript
	result     *evaluation
}

// maxRemembered bounds the evaluations that are kept.
const maxRemembered = 16

// recall returns a kept evaluation if it still holds, or makes one.
func (s *Snapshot) recall(kind document.Kind) *evaluation {
	if s.memory == nil {
		return s.evaluate(kind)
	}
	key := remembered{s.projectDir, kind, len(s.granted) > 0}
	s.memory.mu.Lock()
	known, found := s.memory.kept[key]
	s.memory.mu.Unlock()
	if found && s.sameSettings(known.of) && known.transcript.Holds() {
		return known.result
	}
	recorded, transcript := s.recorded()
	now := memo{s, transcript, recorded.evaluate(kind)}
	transcript.Close()
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if len(s.memory.kept) >= maxRemembered {
		clear(s.memory.kept)
	}
	s.memory.kept[key] = now
	return now.result
}

// sameSettings reports whether two snapshots of a store mean the same, as long
// as the machine gives the same answers.
func (s *Snapshot) sameSettings(other *Snapshot) bool {
	sameProject := s.project == nil && other.project == nil ||
		s.project != nil && other.project != nil && *s.project == *other.project
	return sameProject && s.projectDir == other.projectDir && slices.Equal(s.user, other.user) &&
		slices.Equal(s.granted, other.granted) && slices.Equal(s.others, other.others) &&
		s.trust.Equal(other.trust)
}

// recorded returns a snapshot that notes all that its evaluation asks.
func (s *Snapshot) recorded() (*Snapshot, *resolve.Transcript) {
	files, transcript := resolve.Record(s.files)
	copied := s.with(s.granted)
	copied.files = files
	if s.askGit != nil {
		copied.askGit = func(host resolve.Host, project string) git.Answer {
			answer := s.askGit(host, project)
			transcript.Also(func() bool { return slices.Equal(s.askGit(host, project), answer) })
			return answer
		}
	}
	if s.hostsGap != nil {
		copied.hostsGap = func() string {
			gap := s.hostsGap()
			transcript.Also(func() bool { return s.hostsGap() == gap })
			return gap
		}
	}
	return copied, transcript
}

// with returns the same settings with entries beside their lists. Nobody has
// asked it yet.
func (s *Snapshot) with(granted []Suggestion) *Snapshot {
	return &Snapshot{
		host: s.host, files: s.files, askGit: s.askGit, user: s.user, project: s.project, command: s.command,
		granted: granted, projectDir: s.projectDir, trust: s.trust, ownPaths: s.ownPaths, hostsGap: s.hostsGap,
		memory: s.memory, others: s.others, complete: s.complete,
	}
}

// Secrets returns a function that says which keys or passwords a grant of a real
// path would open to sessions, an agent's sign-in among them; "" if none are
// known. It describes the file system of this moment.
func (s *Snapshot) Secrets() func(path string) string {
	view := s.view()
	known, home := view.sensitive, view.Resolve(s.host.Home).Path
	return func(path string) string {
		if what := known.Holds(path); what != "" {
			return what
		}
		if actor, _ := sensitive.ActorAt(home, path); actor.Agent != "" {
			return "the sign-in of " + actor.Agent
		}
		return ""
	}
}

// Undecided reports whether no settings file says if the sandbox is on, so that
// the user may not know that it is off.
func (c *Compiled) Undecided() bool {
	return !c.Policy.Restricted && slices.ContainsFunc(c.Switches, func(s Switch) bool {
		return s.Key == enabledKey && s.Origin.File == policy.OriginBuiltIn
	})
}
