package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Wish is what a front door wants of a session, whatever the settings say.
type Wish struct {
	Kind settings.Kind
	// Confined refuses a start without a sandbox.
	Confined bool
	// Certain refuses a start while any settings file is in doubt. Without it the
	// user's own terminals start, in which the file can be fixed.
	Certain bool
	// Reported has everything reported that is refused.
	Reported bool
	// Agreed is the id of the policy to which the user has agreed. The session
	// starts under no other, and only with every protection. "" asks for nothing.
	Agreed string
	// Dir is the working directory, absolute; "" if it is not known.
	Dir string
	// Facts are about this session alone, not about all of its kind.
	Facts Facts
}

// Plan is a session that may not be allowed to start. Every front door goes
// this way: New, Plan.Admit, Start. It is used by one goroutine.
type Plan struct {
	// Result has the whole policy. What it says may be shown before Admit.
	compile.Result
	store    *settings.Store
	snapshot *compile.Snapshot
	wish     Wish
	common   func() string // id without Facts
	id       func() string
}

// New compiles the settings for a session. It decides and changes nothing.
func New(store *settings.Store, snapshot *compile.Snapshot, wish Wish) *Plan {
	p := &Plan{Result: snapshot.Compile(wish.Kind), store: store, snapshot: snapshot, wish: wish}
	if wish.Confined {
		p.RefuseUnconfined()
	}
	if wish.Reported {
		p.Policy.OnDenied = policy.Report
	}
	common := p.Policy
	p.common = sync.OnceValue(common.ID)
	p.id = p.common
	if !wish.Facts.empty() {
		p.Add(func(q policy.Policy) policy.Policy { return Complete(q, wish.Facts) })
		p.id = sync.OnceValue(p.Policy.ID)
	}
	return p
}

func (f Facts) empty() bool {
	return len(f.Rules) == 0 && len(f.Replaced) == 0 && len(f.Programs) == 0 && len(f.Variables) == 0
}

// PolicyID is the id of the policy that all sessions of the kind have, without
// the facts of this one. It takes long to compute, once.
func (p *Plan) PolicyID() string { return p.common() }

// Shareable reports whether sessions under the policy can share a sandbox that
// another process than theirs has made. Questions are asked by the session's own.
func (p *Plan) Shareable() bool { return p.Policy.Restricted && p.Policy.OnDenied != policy.Ask }

// Shared is what sessions with these variables must have in common to share a
// sandbox, as texts: the policy's id, the audit trail, and what is around the
// policy; see spawn.Request.Around. It takes as long as PolicyID.
func (p *Plan) Shared(env []string) (policyID, trail, around string) {
	request := spawn.Request{Policy: p.Policy, Env: env}
	return p.PolicyID(), fmt.Sprintf("%+v", p.Policy.Audit), request.Around()
}

// SessionsWrite reports whether sessions under the policy write a directory, given
// its real path, or did so under another one, as far as that was noted. That the
// policy protects it does not matter: one that ran before it was there writes it.
func (p *Plan) SessionsWrite(dir string) bool {
	writes := func(rule policy.Rule) bool {
		return rule.Access.Has(policy.Write) && policy.Contains(rule.Path, dir)
	}
	return p.Policy.Project != "" && policy.Contains(p.Policy.Project, dir) ||
		slices.ContainsFunc(p.Policy.Rules, writes) || p.store.SessionsWrote(dir)
}

var (
	// ErrOff means that the settings would not confine a session that has to be.
	ErrOff = errors.New("not started: the settings leave the sandbox off; see sandbox-sidecar policy")
	// ErrPolicyChanged means that the policy is not the one to which the user has
	// agreed.
	ErrPolicyChanged = errors.New("not started: the settings have changed since the user agreed to them; ask again")
)

// DoubtError means that it is unclear what the settings ask for. Front doors name
// the file in their own ways.
type DoubtError struct{ Doubt *compile.Doubt }

// Error names no file, because its name is the user's text.
func (e *DoubtError) Error() string { return "not started: a settings file must be fixed first" }

// Admitted is a session that may start.
type Admitted struct {
	*Plan
	// Unmade says which directories of toolchains could not be made.
	Unmade []string
	// Told are the notes that are shown now, for the first time.
	Told []string
}

// Admit decides whether the session may start, makes the directories that it
// needs, counts its notes as told, and notes what later starts must not do
// without. The error is a [*DoubtError], [ErrOff], [ErrPolicyChanged], or a
// [*spawn.Error] about the project.
func (p *Plan) Admit() (*Admitted, error) {
	if err := p.refusal(); err != nil {
		return nil, err
	}
	a := &Admitted{Plan: p}
	if err := p.MakeDirs(); err != nil {
		a.Unmade = []string{err.Error()}
	}
	notes := p.Notes()
	if p.Policy.Restricted {
		p.store.Confines(p.snapshot.ProjectDir, &p.Policy)
		notes = append(notes, p.snapshot.Nested(p.wish.Dir)...)
	}
	for _, note := range notes {
		if p.store.FirstTime(note.Name) {
			a.Told = append(a.Told, note.Text)
		}
	}
	return a, nil
}

// refusal is why the session does not start; nil if it does.
func (p *Plan) refusal() error {
	switch {
	case p.Doubt != nil && (p.Doubt.Refused || p.wish.Certain):
		return &DoubtError{p.Doubt}
	case p.wish.Confined && !p.Policy.Restricted:
		return ErrOff
	case p.AgentGap != "":
		return fmt.Errorf("not started: %s", p.AgentGap)
	case p.wish.Agreed != "" && p.wish.Agreed != p.PolicyID():
		return ErrPolicyChanged
	}
	path, cause := p.Unready()
	if cause == nil {
		return nil
	}
	failed := &spawn.Error{
		Attempt: "check the project", Path: path, Cause: cause,
		Hint: "try again once the file system answers; sessions elsewhere can be started",
	}
	if own := (interface{ Hint() string })(nil); errors.As(cause, &own) {
		failed.Hint = own.Hint()
	}
	return failed
}

// Start starts the session by a function, which gets the request with all that
// the plan knows. If the sandbox refused to execute the program, the error names
// the setting that would allow it.
func Start[S any](a *Admitted, request spawn.Request, start func(spawn.Request) (S, error)) (S, error) {
	if request.ID == "" {
		request.ID = spawn.NewID()
	}
	request.Policy, request.PolicyID = a.Policy, a.id
	request.Full = a.wish.Agreed != ""
	request.Tool = request.Tool || a.wish.Kind == settings.KindTool
	started, err := start(request)
	return started, nameSetting(err, a.snapshot, a.wish.Kind, request.Dir)
}

// nameSetting adds the setting that would allow a program to the error of a
// start, if the sandbox refused to execute it. dir is the session's directory.
func nameSetting(err error, snapshot *compile.Snapshot, kind settings.Kind, dir string) error {
	var failed *spawn.Error
	if !errors.As(err, &failed) || !failed.Refused {
		return err
	}
	path := failed.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	suggestion, unknown := explain.Suggest(snapshot, kind, string(explain.Execute), path, "")
	if unknown != nil || suggestion.Allowed {
		return err // what refuses is not the path itself
	}
	named := *failed
	named.Hint = suggestion.Hint
	if suggestion.Key != "" {
		named.Hint = suggestion.InstructionInFull()
	}
	return &named
}
