package compile

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// Snapshot is the settings at one moment, for one project directory or for
// none. It is immutable and may be used from several goroutines.
//
// What it compiles to also depends on the file system. The first question to a
// snapshot evaluates it; the snapshot keeps the result and answers all later
// questions from it.
type Snapshot struct {
	Input
	memory   *Memory    // nil: each snapshot is evaluated
	complete Completion // nil: nothing is added

	actors actors
	once   [2]sync.Once   // guards kept
	kept   [2]*evaluation // for tools, and for terminals if they differ
}

// Completion returns a policy with what each session of a kind has for itself. It
// leaves p as it is, and gives the same answer until the machine changes.
type Completion func(p policy.Policy, kind document.Kind) policy.Policy

// New returns the snapshot of an input. memory keeps evaluations from one snapshot
// to the next, complete adds to their policies; both may be nil.
func New(in Input, memory *Memory, complete Completion) *Snapshot {
	return &Snapshot{Input: in, memory: memory, complete: complete}
}

// Compile returns what a session of that kind may do. It fills in the policy
// even if the kind is not restricted.
func (s *Snapshot) Compile(kind document.Kind) Result {
	e := s.evaluation(kind)
	compiled := Result{
		proxies:    proxyPasswords(s.Host.Env, e.policy.Environment),
		registries: secretRegistries(s.Host.Env, e.policy.Environment),
		Policy:     s.policyFor(e, kind), Diagnostics: s.Diagnostics(), Warnings: s.warnings(e, kind),
		Risks: e.risks(kind), unreached: e.unreached, unsearched: e.unsearched,
		toolchains: e.toolchainNames(),
		Variables:  slices.Clone(e.variables),
		Switches:   e.switches(kind), Written: e.written(), Doubt: s.doubt(e, kind), Shell: s.shell(e, kind),
		bounds: e.bounds, adding: e.addingVariables(), AgentGap: e.agentGap(),
	}
	if compiled.Policy.Restricted {
		compiled.NoAnswer, compiled.Redirect, compiled.Overfull = e.noAnswer, e.redirect, e.overfull
		if s.ProjectState != nil && s.ProjectState.NoAnswer && s.ProjectState.Good == nil {
			compiled.NoAnswer = cmp.Or(compiled.NoAnswer, s.ProjectState.File)
		}
		compiled.create, compiled.exposed = e.create, e.exposed
	}
	return compiled
}

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
		doubt.Named = state.Refuses(document.KindTerminal) != nil
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

// Memory keeps evaluations with what each asked the machine. The next snapshot
// of the same settings takes one that would be made again exactly as it is. It
// may be used from several goroutines.
type Memory struct {
	mu   sync.Mutex
	kept map[remembered]memo
}

// NewMemory returns one that has nothing yet.
func NewMemory() *Memory { return &Memory{kept: map[remembered]memo{}} }

// remembered is what there is one evaluation of.
type remembered struct {
	projectDir string
	kind       document.Kind
	granted    bool // with what was granted until the sidecar ends
}

type memo struct {
	of         *Input
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
	key := remembered{s.ProjectDir, kind, len(s.Granted) > 0}
	s.memory.mu.Lock()
	known, found := s.memory.kept[key]
	s.memory.mu.Unlock()
	if found && s.sameSettings(known.of) && known.transcript.Holds() {
		return known.result
	}
	recorded, transcript := s.recorded()
	now := memo{&s.Input, transcript, recorded.evaluate(kind)}
	transcript.Close()
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if len(s.memory.kept) >= maxRemembered {
		clear(s.memory.kept)
	}
	s.memory.kept[key] = now
	return now.result
}

// With returns the same settings with entries beside their lists. Nobody has
// asked it yet.
func (s *Snapshot) With(granted []Addition) *Snapshot {
	with := &Snapshot{Input: s.Input, memory: s.memory, complete: s.complete}
	with.Granted = granted
	return with
}

// Secrets returns a function that says which keys or passwords a grant of a real
// path would open to sessions, an agent's sign-in among them; "" if none are
// known. It describes the file system of this moment.
func (s *Snapshot) Secrets() func(path string) string {
	view := s.view()
	known := view.sensitive.With(view.actingNames(git.Repository{}))
	return func(path string) string {
		if what := known.Holds(path); what != "" {
			return what
		}
		if actor, _ := known.ActorAt(path); actor.Agent != "" {
			return "the sign-in of " + actor.Agent
		}
		return ""
	}
}

// evaluations are those of both kinds: one if the settings do not distinguish
// them.
func (s *Snapshot) evaluations() []*evaluation {
	list := []*evaluation{s.evaluation(document.KindTool)}
	if s.byKind() {
		list = append(list, s.evaluation(document.KindTerminal))
	}
	return list
}

// allAsks are the asks for both kinds, each once.
func (s *Snapshot) allAsks() []Ask {
	var list []Ask
	for _, e := range s.evaluations() {
		for _, a := range e.asks {
			if !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// Exposure is why no project can be trusted; "" if one can.
func (s *Snapshot) Exposure() string { return s.evaluation(document.KindTool).exposure }

// KeyFor is a key as it has to be written to count for a kind of session: with
// the block for the kind, if that decides about it.
func (s *Snapshot) KeyFor(kind document.Kind, key string) string {
	return s.evaluation(kind).writtenKey(key)
}

// KindOf is a kind of session that a key decides for, and its name in a block.
// A key of the whole block decides for the kind that has no value of its own.
func (s *Snapshot) KindOf(key string) (document.Kind, string) {
	kind, name := document.SplitKey(key)
	if kind != "" {
		return kind, name
	}
	if s.KeyFor(document.KindTool, name) != name {
		return document.KindTerminal, name
	}
	return document.KindTool, name
}

// SetIn is the file whose entries count for a list; "" if none sets it.
func (s *Snapshot) SetIn(key string) string {
	kind, name := s.KindOf(key)
	return s.evaluation(kind).user.from[name].file
}

// mergedByKind is the block that holds. The blocks for the kinds have the keys
// that are different for them, and those that stand in such blocks.
func (s *Snapshot) mergedByKind() document.Sandbox {
	tool, terminal := s.evaluation(document.KindTool), s.evaluation(document.KindTerminal)
	merged := s.wholeBlock()
	for _, l := range document.Keys() {
		if document.OnlyWhole(l.Name) {
			continue
		}
		a, ok := l.Get(&tool.merged)
		b, too := l.Get(&terminal.merged)
		equal := ok == too && (!ok || reflect.DeepEqual(a.Interface(), b.Interface()))
		if equal && ok {
			l.Set(&merged, a)
		}
		for _, e := range []*evaluation{tool, terminal} {
			if v, set := l.Get(&e.merged); set && (!equal || e.writtenKey(l.Name) != l.Name) {
				l.Of(e.kind).Set(&merged, v)
			}
		}
	}
	for _, e := range []*evaluation{tool, terminal} {
		restricted := e.restricted.Has(e.kind)
		if document.RestrictedKinds(*merged.Enabled, *merged.ApplyTo).Has(e.kind) != restricted {
			document.KeyNamed("enabled").Of(e.kind).Set(&merged, reflect.ValueOf(&restricted))
		}
	}
	return merged.Clone()
}

// wholeBlock are the user's settings without the blocks for the kinds.
func (s *Snapshot) wholeBlock() document.Sandbox {
	states := s.UserStates
	if s.evaluation(document.KindTool).trusted {
		states = s.states()
	}
	merged := mergeStates(states, "")
	return merged.withDefaults()
}

// Audit is where events are noted that belong to no session: wherever one of
// the kinds of session is.
func (s *Snapshot) Audit() policy.Audit {
	return s.evaluation(document.KindTool).policy.Audit.With(s.evaluation(document.KindTerminal).policy.Audit)
}

// AuditDirs are the directories in which trails may be.
func (s *Snapshot) AuditDirs() []string { return auditDirs(resolve.NewView(s.FS), s.Host) }

// warnings lists what to show when a session of that kind starts.
func (s *Snapshot) warnings(e *evaluation, kind document.Kind) []string {
	return append(s.fileWarnings(s.Diagnostics()), e.risks(kind)...)
}

// Guarded lists, sorted, the files that no session may ever write, whatever is
// granted. These are the user's settings files, by their real paths and by the
// names under which they are found; the list of trusted projects; and those of
// Zed's files that say what it runs. The directories of ours are guarded as a
// whole, too (see shutPlaces). A missing file is listed if creating it would add
// settings or trust. The running program is listed as well, which the next start
// runs, with the links to it and those beside it that it runs. So are the
// directories of links that are shells.
func (s *Snapshot) Guarded() []string { return s.guarded(resolve.NewView(s.FS)) }
