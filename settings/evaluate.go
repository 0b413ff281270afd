package settings

import (
	"errors"
	"fmt"
	"maps"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// evaluation is what a snapshot means on the file system as it is now:
// everything of a policy that does not depend on the kind.
type evaluation struct {
	host       resolve.Host
	resolver   *resolve.View
	projectDir string
	// user are the layers that count as they are written, a trusted project's
	// file included.
	user    settings
	project *settings // an untrusted project's file, which may only tighten; nil where there is none
	// projectFile is the file whose relative paths start at the project; ""
	// where there is none.
	projectFile string
	guarded     []string // what no session may write
	sensitive   *sensitive.Paths

	policy     policy.Policy
	git        git.Repository
	restricted document.Kinds
	writable   cover // all grants for writing, refused ones included
	rules      cover
	granted    []grant  // what the rules were made of
	asked      []grant  // what an untrusted project's file grants, for its own part
	sockets    []socket // what the policy's sockets were made of

	toolchains    []chosen
	create        []string   // directories that a session needs and cannot make
	variablesFrom []Variable // the variables that arrive, by what lets them

	merged      document.Sandbox
	origins     map[string]string
	diagnostics []document.FileDiagnostic
	refusals    []string // built-in grants that do not count
	// projectRisks are warnings of a project directory that holds too much.
	projectRisks []string
	exposed      []exposure // see Compiled.Exposures
	forbidden    []place
	rejected     []rejectedGrant
	// unclear is an entry of which nobody knows what it would have protected;
	// nil where there is none.
	unclear *document.FileDiagnostic
	// stale are the files of which an older content counts: remarks on it would
	// stand at the wrong lines.
	stale map[string]bool

	// silent is what of the project's does not answer, so that nobody can say
	// what is to be protected; "" where all of it does.
	silent string

	trusted  bool        // the project's file counts as it is written
	alone    *evaluation // without the project's file; nil where there is none
	exposure string      // why no project can be trusted; "" where one can
	asks     []Ask       // what the project's file asks for beyond the user's policy
}

// treatment is how a project's file is taken.
type treatment int

const (
	asIgnored treatment = iota
	asTightening
	asTrusted
)

// evaluate resolves, layers and restricts. Its invariants: with an untrusted
// project's file the policy is contained in the one without, and whatever a
// trusted one opens beyond that is in asks.
func (s *Snapshot) evaluate() *evaluation {
	e := s.judgeAll()
	e.projectRisks, e.exposed = e.findProjectRisks(), s.findExposed(e)
	return e
}

func (s *Snapshot) judgeAll() *evaluation {
	g := s.view()
	everywhere := s.run(g, "", asIgnored, nil)
	everywhere.remarkSecrets()
	if s.projectDir == "" {
		everywhere.diagnostics = document.Sort(everywhere.diagnostics)
		return everywhere
	}
	e := s.run(g, s.projectDir, asIgnored, nil)
	if s.project != nil {
		e = s.judge(g, e)
	}
	e.diagnostics = s.attribute(e.diagnostics, everywhere.diagnostics)
	return e
}

// judge evaluates with the project's file; alone is the evaluation without it.
func (s *Snapshot) judge(g *fsView, alone *evaluation) *evaluation {
	trusting := s.run(g, s.projectDir, asTrusted, alone)
	asks, exposure, listed := trusting.beyond(alone), s.trustExposed(alone), s.trusts(alone.policy.Project)
	e := trusting
	if !listed || exposure != "" {
		e = s.run(g, s.projectDir, asTightening, nil)
		e.reportAsks(asks)
		if listed {
			e.report(e.projectFile, document.Position{Line: 1, Column: 1}, document.SeverityWarning, "", "the project is not trusted: %s", exposure)
		}
	}
	e.trusted, e.alone, e.exposure, e.asks = listed && exposure == "", alone, exposure, asks
	return e
}

// fsView is what one evaluation sees of the file system, so that its parts see
// the same.
type fsView struct {
	*resolve.View
	guarded   []string
	forbidden []place
	sensitive *sensitive.Paths
}

func (s *Snapshot) view() *fsView {
	r := resolve.NewView(s.files)
	return &fsView{View: r, guarded: s.guarded(r), forbidden: s.forbidden(r), sensitive: sensitive.Find(r, s.host.Home)}
}

// attribute marks the remarks that hold for this project alone, so that whoever
// shows them for several projects can tell them apart, and adds those that hold
// everywhere.
func (s *Snapshot) attribute(here, everywhere []document.FileDiagnostic) []document.FileDiagnostic {
	known := map[document.FileDiagnostic]bool{}
	for _, d := range everywhere {
		known[d] = true
	}
	list := everywhere
	for _, d := range here {
		if known[d] {
			continue
		}
		d.Project = s.projectDir
		list = append(list, d)
	}
	return document.Sort(list)
}

// run evaluates once. alone is the evaluation without the project's file, where
// that is trusted: what may be written without it counts for the judgement of
// symlinks all the same, because sessions of other projects can move them.
func (s *Snapshot) run(g *fsView, projectDir string, how treatment, alone *evaluation) *evaluation {
	e := &evaluation{
		host: s.host, resolver: g.View, guarded: g.guarded, sensitive: g.sensitive, projectDir: projectDir, writable: cover{}, rules: cover{}, origins: map[string]string{}, stale: map[string]bool{},
	}
	states := s.user
	if s.project != nil && how != asIgnored {
		e.projectFile = s.project.File
		states = s.states()
	}
	if how == asTightening {
		project := mergeUser(states[len(s.user):])
		e.project = &project
		e.user = mergeUser(s.user)
	} else {
		e.user = mergeUser(states)
	}
	if alone != nil {
		maps.Copy(e.writable, alone.writable)
	}
	e.forbidden = g.forbidden
	e.reportFiles(states)
	if s.trust != nil && s.trust.Problem != "" {
		e.report(s.trust.Path, document.Position{Line: 1, Column: 1}, document.SeverityError, "", "%s: no project is trusted", s.trust.Problem)
	}
	e.merged = e.user.withDefaults()
	for key, from := range e.user.from {
		e.origins[key] = from.file
	}
	e.chooseToolchains()
	e.paths()
	e.kinds()
	e.network()
	e.variables()
	e.unixSockets()
	e.protection()
	e.rest()
	e.policy.Protected = sortProtected(append(e.policy.Protected, e.guard()...))
	for _, p := range e.policy.Protected {
		// To protect it, a session's stage would have to look at it, too.
		if e.silent == "" && errors.Is(e.resolver.Resolve(p.Path).Err, fsguard.ErrNoAnswer) {
			e.silent = p.Path
		}
	}
	e.remark()
	e.diagnostics = document.Sort(e.diagnostics)
	return e
}

// reportFiles repeats what was found while the files were read.
func (e *evaluation) reportFiles(states []source.State) {
	for _, state := range states {
		if state.Problem != nil {
			e.diagnostics = append(e.diagnostics, document.FileDiagnostic{File: state.File, Diagnostic: *state.Problem})
			e.stale[state.File] = true
		} else if state.Good != nil {
			if state.Good.Empty && state.Exists {
				e.report(state.File, document.Position{Line: 1, Column: 1}, document.SeverityWarning, "", "%s", document.EmptyText)
			}
			for _, d := range state.Good.Problems {
				e.diagnostics = append(e.diagnostics, document.FileDiagnostic{File: state.File, Diagnostic: d})
			}
		}
	}
}

func (e *evaluation) report(file string, at document.Position, severity document.Severity, key, format string, args ...any) {
	if e.stale[file] {
		return
	}
	e.diagnostics = append(e.diagnostics, document.FileDiagnostic{File: file, Diagnostic: document.Diagnostic{
		Line: at.Line, Column: at.Column, Severity: severity, Key: key, Message: display.Line(fmt.Sprintf(format, args...)),
	}})
}

// base is what relative paths of a file are relative to; "" where they do not
// count.
func (e *evaluation) base(file string) string {
	if file != "" && file == e.projectFile {
		return e.policy.Project
	}
	return ""
}

// fromProject notes that the project's file decides about a key.
func (e *evaluation) fromProject(key string) { e.origins[key] = e.project.from[key].file }

// projectSets reports whether an untrusted project's file says anything about a
// key.
func (e *evaluation) projectSets(key string) bool {
	if e.project == nil {
		return false
	}
	_, ok := e.project.from[key]
	return ok
}
