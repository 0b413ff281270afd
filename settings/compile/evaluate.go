package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
)

// evaluation is what a snapshot means for a kind of session, or for both if the
// settings do not distinguish them: the policy, and what the parts of it came
// from. Nothing changes it after evaluate has returned.
// docs/design/settings-pipeline.md says how it is made.
type evaluation struct {
	fsView
	layers
	grantSet

	projectDir string // as it was named
	git        git.Repository
	policy     policy.Policy
	restricted document.Kinds
	toolchains []chosen
	hosts      hostLists  // those of the policy
	sockets    []socket   // what the policy's sockets were made of
	variables  []Variable // the variables that sessions get
	unreached  []Note     // about those whose sockets no session may use
	unsearched []Note     // about grants that are too large to search
	// ungranted are entries of protected_paths that no grant holds.
	ungranted []policy.Protected

	merged      document.Sandbox
	origins     map[string]string
	diagnostics []document.FileDiagnostic
	refusals    []string // built-in grants that do not count
	// unclear is an entry of protected_paths or denied_hosts that could not be
	// understood; nil if there is none.
	unclear *document.FileDiagnostic
	// noAnswer is a path of the project whose file system does not answer, so
	// that nobody knows what to protect; "" if all answer.
	noAnswer string

	// redirect is a symlink on the way to the project that cannot be relied on;
	// nil if there is none.
	redirect *Redirect
	// overfull is a directory in which the oldest working trees are unknown; nil if
	// there is none.
	overfull *Overfull
	// planted says that a session could have made the program of the agent that
	// the command line names; "" if not.
	planted string

	bounds bounds // what the organisation has taken away

	// The rest is set by judge and evaluate.
	trusted      bool        // the project's file counts as it is written
	alone        *evaluation // without the project's file; nil if there is none
	exposure     string      // why no project can be trusted; "" if one can
	asks         []Ask       // what the project's file asks for beyond the user's policy
	projectRisks []string    // warnings of a project directory that holds too much
	exposed      []exposure  // see Result.Exposures
}

// fsView is what one evaluation sees of the machine. All parts of it see the
// same.
type fsView struct {
	*resolve.View
	forget    func() // ends the evaluation, see resolve.Once
	host      resolve.Host
	git       *repositories
	private   *privateFiles
	guarded   []string // what no session may write
	own       []ownPlace
	hostsGap  func() string
	forbidden []forbiddenPlace
	sensitive *sensitive.Paths
	listed    map[string][]string // see names
	searches  *searches
	startup   *sourcedFiles
	moving    *moving // of one evaluation, see resolveGrants
}

func (s *Input) view() fsView {
	files, forget := resolve.Once(s.FS)
	view := resolve.NewView(files)
	return fsView{
		View: view, forget: forget, host: s.Host, private: &privateFiles{},
		git:     &repositories{ask: s.AskGit, askParent: s.AskParent},
		guarded: s.guarded(view), own: s.ownPlaces(view), hostsGap: s.HostsGap, forbidden: s.forbidden(view),
		sensitive: sensitive.Find(view, s.Host.Homes(), s.Host.Root, s.Host.Getenv), listed: map[string][]string{},
		startup: &sourcedFiles{}, moving: &moving{},
	}
}

// treatment is how a project's file counts.
type treatment int

const (
	asIgnored treatment = iota
	asTightening
	asTrusted
)

// evaluate makes the evaluation. With an untrusted project's file its policy is
// contained in the policy without the file. Whatever a trusted file opens beyond
// that is in asks.
func (s *Input) evaluate(kind document.Kind) *evaluation {
	view := s.view()
	defer view.forget() // the evaluation may be kept for long
	everywhere := s.run(view, "", asIgnored, kind, nil)
	result := *everywhere
	result.diagnostics = document.Sort(slices.Concat(everywhere.diagnostics, everywhere.secretDiagnostics(),
		s.untrusted(view.View)))
	if s.ProjectDir != "" {
		shared := result.diagnostics
		result = *s.run(view, s.ProjectDir, asIgnored, kind, nil)
		if s.ProjectState != nil {
			result = s.judge(view, &result)
		}
		result.diagnostics = s.attribute(result.diagnostics, shared)
	}
	result.projectRisks, result.exposed = result.findProjectRisks(), s.findExposed(&result)
	return &result
}

// judge evaluates with the project's file. alone is the evaluation without it.
func (s *Input) judge(view fsView, without *evaluation) evaluation {
	if !s.ProjectState.Exists && s.ProjectState.Good == nil && s.ProjectState.Problem == nil {
		return s.judgeNoFile(view, without)
	}
	return s.judgeFile(view, without)
}

// judgeNoFile is judgeFile for a project without a settings file, which most
// are: nothing is asked for, and nothing is tightened.
func (s *Input) judgeNoFile(view fsView, without *evaluation) evaluation {
	alone := *without
	result := alone
	result.layers = s.layers(asTightening, alone.kind)
	result.alone, result.exposure = &alone, s.trustExposedToAny(view, &alone)
	return result
}

func (s *Input) judgeFile(view fsView, without *evaluation) evaluation {
	alone := *without
	trusting := s.run(view, s.ProjectDir, asTrusted, alone.kind, &alone)
	asks, exposure := trusting.beyond(&alone), s.trustExposedToAny(view, &alone)
	listed := s.trusts(alone.policy.Project)
	result := *trusting
	if !listed || exposure != "" {
		result = *s.run(view, s.ProjectDir, asTightening, alone.kind, nil)
		r := result.reporter()
		result.diagnoseAsks(r, asks)
		if listed {
			r.add(result.projectFile, document.Position{Line: 1, Column: 1}, document.SeverityWarning, "",
				"the project is not trusted: %s", exposure)
		}
		result.diagnostics = slices.Concat(result.diagnostics, r.list)
	}
	result.trusted, result.alone, result.exposure, result.asks = listed && exposure == "", &alone, exposure, asks
	return result
}

// attribute marks the diagnostics that hold for this project alone and adds
// those that hold everywhere. A client that shows several projects can tell
// them apart.
func (s *Input) attribute(here, everywhere []document.FileDiagnostic) []document.FileDiagnostic {
	known := map[document.FileDiagnostic]bool{}
	for _, d := range everywhere {
		known[d] = true
	}
	list := slices.Clone(everywhere)
	for _, d := range here {
		if !known[d] {
			d.Project = s.ProjectDir
			list = append(list, d)
		}
	}
	return document.Sort(list)
}

// run evaluates once: layers, requests, grants, policy. alone is the evaluation
// without the project's file if that is trusted: what may be written without the
// file counts when symlinks are judged, because sessions of other projects can
// move them.
func (s *Input) run(
	view fsView, projectDir string, how treatment, kind document.Kind, alone *evaluation,
) *evaluation {
	l := s.layers(how, kind)
	r := newReporter(l)
	r.list = s.readDiagnostics(l)
	limits := l.tightenScalars()
	view.searches = searchesOf(l)
	view.moving = s.moving(view, projectDir)

	project := projectOf(view, projectDir, l.projectFile)
	view.sensitive = view.sensitive.With(view.actingNames(project.git))
	toolchains := chooseToolchains(l, r)
	variables, environment := chooseVariables(l, toolchains, r)
	grants := resolveGrants(view, l, &project, toolchains, environment, alone, r)
	restricted := restrict(l)
	sockets := chooseSockets(view, l, project, toolchains, grants.writable, r)
	keys := chooseSigningKeys(l, r)
	sockets = filtered(view, sockets, keys)
	unreached := markUnreached(view, environment, variables, sockets)
	caches := cachesOf(view, l, grants.granted, r)
	grants.lasting = withoutShared(grants.lasting, caches)
	roots := rootsOf(view, project, grants.lasting)
	paths := choosePaths(view, l, project, grants, roots, r)
	reachable := chooseHosts(l, toolchains, r)
	credentials, unclearCredentials := chooseCredentials(view, l, project, r)
	guarded, create := guardCaches(view, grants.cover)
	grants.create = append(grants.create, create...)
	auditing := auditOf(l, view)
	guardedAudit, create := guardAudit(view, auditing, grants.cover)
	guarded, grants.create = append(guarded, guardedAudit...), append(grants.create, create...)
	own := guard(view, grants.cover)
	guarded, grants.create = append(guarded, own.protected...), append(grants.create, own.create...)
	guardedGit := guardGit(view, l, project, grants, paths.without)
	for path := range pathsOf(guardedGit) {
		delete(paths.outside, path)
	}
	p := policy.Policy{
		Project: project.path, Rules: grants.rules, Roots: roots.list, GitDirs: paths.gitDirs,
		Protected:        sortProtected(slices.Concat(paths.list, guarded, guardedGit)),
		PrivateTerminals: grants.privateTerminals, PrivateRuntimeDir: grants.privateRuntimeDir,
		Caches: caches, Temporary: grants.temporary, Hidden: grants.hidden, Copies: grants.copies,
		Network: reachable.addTo(l.network()), Environment: environment,
		UnixSockets: socketRules(sockets), SigningKeys: keys, Limits: limits, Audit: auditing,
		Credentials: credentials,
		Reviewed:    paths.reviewed, Unlinked: paths.unlinked,
	}
	if view.host.Platform == "darwin" {
		// Sockets in /tmp and in the user's temporary directory belong to other
		// programs, too. The session's own need a directory that is its alone.
		p.PrivateRuntimeDir = true
	}

	e := &evaluation{
		fsView: view, layers: l, grantSet: grants, projectDir: projectDir, git: project.git, policy: p,
		restricted: restricted, toolchains: toolchains, hosts: reachable, sockets: sockets,
		variables: variables, unreached: unreached, unsearched: paths.unsearched,
		ungranted: paths.ungranted, merged: l.values(), origins: originsOf(l.user, *l.tightened),
		refusals: slices.Concat(project.refusals, grants.refusals, view.crowded(), roots.refusals, paths.refusals,
			roots.risks(grants.cover)),
		unclear: cmp.Or(paths.unclear,
			grants.unclear, reachable.unclear, unclearCredentials),
		noAnswer: cmp.Or(project.noAnswer, unanswered(view, p.Protected)),
		overfull: overfullOf(view, project, roots.dirs),
	}
	if projectDir != "" {
		e.redirect = redirected(view, projectDir, s.Others, grants.writable)
	}
	if l.agent != nil {
		lasts := outsideOf(grants.lasting, grants.temporary, grants.hidden)
		e.planted = view.plantedProgram(l.agent, s.Others, lasts, &p)
	}
	e.require(project, r)
	e.hideCredentials(r)
	e.reopen(own.reopened, paths.outside)
	e.policy.Present = presentIn(view, &e.policy)
	e.refusals = append(e.refusals, view.unfound()...)
	e.applyScalars()
	e.applyLocalhost()
	e.diagnose(r)
	e.diagnostics = document.Sort(r.list)
	return e
}

// presentIn are the paths of a policy's rules and sockets that are there. A session
// that does not get one of them says so.
func presentIn(view fsView, p *policy.Policy) map[string]bool {
	present := map[string]bool{}
	add := func(path string) {
		if path != "" && view.Resolve(path).Exists {
			present[path] = true
		}
	}
	for _, rule := range p.Rules {
		add(rule.Path)
	}
	for _, socket := range p.UnixSockets {
		add(socket.Path)
	}
	return present
}

// unanswered is the first protected path whose file system does not answer, or
// "". A session's stage would have to inspect it, too, to protect it.
func unanswered(view fsView, protected []policy.Protected) string {
	for _, p := range protected {
		if p.Pattern {
			continue // its directory has been read
		}
		if errors.Is(view.Resolve(p.Path).Err, fsguard.ErrNoAnswer) {
			return p.Path
		}
	}
	return ""
}

// project is the directory of an evaluation; the zero value if there is none.
type project struct {
	dir  string // as it was named
	path string // real
	file string // the project's settings file if its relative paths count
	git  git.Repository
	// parent is the repository above the project; nil if none counts.
	parent *parent
	// grants are those of the project and of both repositories.
	grants   []grant
	refusals []string
	noAnswer string // see evaluation
}

// repositories keeps what git runs in a project, for all evaluations of a
// snapshot.
type repositories struct {
	ask       AskGit    // nil: git is not asked
	askParent AskParent // nil: no parent counts
	project   string
	found     *git.Repository
	answer    git.Answer
	others    map[string]git.Repository // see of
	parents   map[string]keptParent     // by project
}

// of is what git runs in another directory than the project. git is not asked:
// what it says of the user's files, it says in the project, too.
func (r *repositories) of(view fsView, dir string) git.Repository {
	found, known := r.others[dir]
	if !known {
		found = git.Find(view.View, view.host, dir, nil)
		if r.others == nil {
			r.others = map[string]git.Repository{}
		}
		r.others[dir] = found
	}
	return found
}

func (r *repositories) find(view fsView, project string) git.Repository {
	if r.found == nil || r.project != project {
		var answer git.Answer
		if r.ask != nil {
			answer = r.ask(view.host, project)
		}
		found := git.Find(view.View, view.host, project, answer)
		r.project, r.found, r.answer = project, &found, answer
	}
	return *r.found
}

func projectOf(view fsView, dir, file string) project {
	if dir == "" {
		return project{}
	}
	target := view.Resolve(dir)
	p := project{dir: dir, path: target.Path, file: file}
	if errors.Is(target.Err, fsguard.ErrNoAnswer) {
		p.noAnswer = p.path
	}
	// Symlinks on the way to the project are judged by redirected.
	own, refusal := projectGrant(view, p.path)
	p.grants = append(p.grants, own)
	if refusal != "" {
		p.refusals = append(p.refusals, refusal)
	}
	p.git = view.git.find(view, p.path)
	p.noAnswer = cmp.Or(p.noAnswer, p.git.NoAnswer)
	for _, path := range p.git.Skipped {
		p.refusals = append(p.refusals, fmt.Sprintf(
			"%s does not answer: what it makes git run from the project is not protected", display.Quote(path)))
	}
	if p.git.Uncounted {
		p.refusals = append(p.refusals, "too many git repositories in the project: some of them are not protected")
	}
	if p.git.Loose {
		p.refusals = append(p.refusals, "too many git worktrees or submodules: "+
			"the .git files of some are not protected; prune some")
	}
	if p.git.Crowded {
		p.refusals = append(p.refusals, "too many git submodules or worktrees: "+
			".git/modules and .git/worktrees are read-only; prune some")
	}
	for _, outside := range p.git.Outside {
		p.grants = append(p.grants, grant{path: outside, request: request{
			access: policy.Read,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: "the project's git repository"},
		}})
	}
	return p
}

// writable reports whether sessions may write the project as a whole.
func (p project) writable() bool {
	return p.path != "" && slices.ContainsFunc(p.grants, func(g grant) bool {
		return g.path == p.path && g.access.Has(policy.Write)
	})
}

// base is what relative paths of a file start from; "" if they do not count.
func (p project) base(file string) string {
	if file != "" && file == p.file {
		return p.path
	}
	return ""
}

// originsOf maps the keys that are set to their files.
func originsOf(user, tightened settings) map[string]string {
	origins := map[string]string{}
	for _, from := range []map[string]origin{user.from, tightened.from} {
		for key, where := range from {
			origins[key] = where.file
		}
	}
	return origins
}

// written are the origins of the keys that somebody wrote.
func (e *evaluation) written() []policy.Origin {
	var list []policy.Origin
	for _, key := range document.Keys() {
		if from := e.originOf(key.Name); from.File != policy.OriginBuiltIn {
			list = append(list, from)
		}
	}
	return list
}

// originOf is the origin of the value of a key as a whole.
func (e *evaluation) originOf(key string) policy.Origin {
	if from, bound := e.bounds.from[key]; bound {
		return from.policy(key, from.At)
	}
	return e.layers.originOf(key)
}
