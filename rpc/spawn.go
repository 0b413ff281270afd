package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// spawn starts a session. The returned function lets the session's output flow,
// and is called after the answer was sent.
func (s *Server) spawn(ctx context.Context, params protocol.SpawnParams) (protocol.SpawnResult, func(), error) {
	fail := func(err error) (protocol.SpawnResult, func(), error) { return protocol.SpawnResult{}, nil, err }
	request, err := s.request(&params)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &entry{
		id: request.ID, cwd: params.Cwd, projectDir: params.ProjectDir, kind: params.Kind, group: groupOf(params),
		cancel: cancel, room: newRoom(), started: make(chan struct{}), answered: make(chan struct{}),
	}
	request.Ask, request.AtPrompt = s.asker(e), s.atPrompt(e, params)
	switch err := s.sessions.add(e); {
	case errors.Is(err, errTaken):
		return fail(invalidParams("sessionId", "%s is taken", e.id))
	case err != nil:
		return fail(&wireError{code: protocol.CodeInvalidRequest, message: fmt.Sprintf("terminal/spawn: %v", err)})
	}
	defer close(e.started)
	started, admitted, err := s.startSession(ctx, &request, params)
	if err != nil {
		s.sessions.removeFailed(e)
		return fail(err)
	}
	e.policyID = admitted.PolicyID()
	compiled, outcome := admitted.Result, started.Outcome()
	warnings := slices.Concat(compiled.Warnings, admitted.Unmade, admitted.Told,
		compiled.Exposures(presentation.ProtectsExistingPaths(outcome)),
		presentation.SandboxWarnings(compiled, outcome, s.options.Guarded))
	result := protocol.SpawnResult{
		SessionID: e.id, PID: started.PID(), Argv: request.Argv, PolicyID: e.policyID,
		Sandbox:     presentation.Sandbox(compiled.Policy.Restricted, outcome, warnings),
		Tracking:    presentation.Tracking(outcome),
		Environment: protocol.EnvironmentLog{Dropped: append([]string{}, outcome.Dropped...)},
	}
	if params.Command != "" {
		e.argv, e.hasToolchain, e.passVariable = request.Argv, compiled.HasToolchain, compiled.PassVariable
	}
	e.begin(started)
	first := append(presentation.UnsandboxedLine(outcome), presentation.DoubtLine(outcome.Confined, compiled.Doubt)...)
	switch {
	case params.Pipe:
		first = nil // it is read by a program; the answer has warnings
	case params.Kind == protocol.Terminal && len(first) == 0:
		first = presentation.OffLine(compiled)
	}
	return result, func() {
		close(e.answered)
		started.Begin(&sink{server: s, entry: e}, first)
	}, nil
}

// atPrompt returns what a shell says before its next prompt about a denial; nil if
// the editor does not want that.
func (s *Server) atPrompt(e *entry, params protocol.SpawnParams) func(spawn.Denial) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.capabilities.PromptLines || params.Kind != protocol.Terminal || params.Command != "" || params.Pipe {
		return nil
	}
	return func(denial spawn.Denial) string {
		if denial.Number == 0 { // which must not wait for the settings
			return presentation.PromptLine(denial, "")
		}
		step := ""
		suggestion, err := presentation.Suggest(s.store.Latest(e.projectDir), settings.Kind(e.kind), denial)
		if err == nil && suggestion.Key != "" {
			step = "to allow it: " + suggestion.Instruction()
		}
		return presentation.PromptLine(denial, step)
	}
}

// plan plans a session. dir is its working directory, agreed a policy's id; both
// may be "".
func (s *Server) plan(snapshot *compile.Snapshot, kind protocol.Kind, dir, agreed string) *session.Plan {
	return session.New(s.store, snapshot, session.Wish{
		Kind: settings.Kind(kind), Confined: s.options.Sandbox, Certain: s.options.Sandbox, Agreed: agreed, Dir: dir,
	})
}

// startSession starts the session of a request. It chooses the shell.
func (s *Server) startSession(ctx context.Context, request *spawn.Request, params protocol.SpawnParams) (*spawn.Session,
	*session.Admitted, error,
) {
	snapshot := s.store.InWindow(params.ProjectDir)
	plan := s.plan(snapshot, params.Kind, params.Cwd, params.PolicyID)
	s.publish(snapshot, plan.Diagnostics)
	admitted, err := plan.Admit()
	if err != nil {
		return nil, nil, err
	}
	switch {
	case params.Command != "" && params.Args == nil:
		shell := plan.Shell
		if shell == nil {
			shell = []string{spawn.CommandShell(&plan.Policy)}
		}
		request.Program, request.Argv = shell[0], slices.Concat(shell, []string{"-c", params.Command})
	case params.Command == "" && params.Shell == nil && plan.Shell != nil:
		request.Program, request.Argv = plan.Shell[0], plan.Shell
	}
	started, err := session.Start(admitted, *request, func(r spawn.Request) (*spawn.Session, error) {
		if name := groupOf(params); name != "" {
			r.Group = name
			return s.startInGroup(ctx, groupKey{
				name: name, projectDir: projectOf(params.ProjectDir), kind: params.Kind, around: r.Around(),
				policyID: admitted.PolicyID(),
			}, r)
		}
		return s.options.Spawner.Start(ctx, r)
	})
	if err != nil {
		request.Pipes.Close()
	}
	return started, admitted, err
}

// request checks params, fills in their defaults, and converts them to a
// request without a policy.
func (s *Server) request(params *protocol.SpawnParams) (spawn.Request, error) {
	if err := s.fillIn(params); err != nil {
		return spawn.Request{}, err
	}
	env := slices.Clone(s.options.Env)
	for name, value := range params.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return spawn.Request{}, invalidParams("env",
				"invalid variable %s: the name must not be empty or contain \"=\", and no part may contain a NUL byte",
				display.Quote(name))
		}
		env = append(env, name+"="+value)
	}
	s.mu.Lock()
	flowControl := s.capabilities.FlowControl
	s.mu.Unlock()
	request := spawn.Request{
		ID: params.SessionID, Env: env, Dir: filepath.Clean(params.Cwd), Size: spawn.Size{
			Cols: params.Cols,
			Rows: params.Rows,
		},
		NoInput: params.Kind == protocol.Tool, Pipe: params.Pipe, Tool: params.Pipe || params.Kind == protocol.Tool,
		FlowControl: flowControl, OutputCap: int64(params.OutputBytesCap),
		TimeLimit: time.Duration(params.TimeoutMs) * time.Millisecond,
	}
	if params.Stdin || params.Stderr {
		request.Pipes = &spawn.Pipes{Stdin: params.Stdin, Stderr: params.Stderr}
	}
	switch {
	case params.Command != "" && params.Args == nil: // startSession chooses the shell
	case params.Command != "":
		request.Program, request.Argv = params.Command, append([]string{params.Command}, params.Args...)
	case params.Shell != nil:
		request.Program = params.Shell.Program
		request.Argv = append([]string{params.Shell.Program}, params.Shell.Args...)
	default:
		request.Program, request.Argv = spawn.LoginShell(env)
	}
	return request, nil
}

// fillIn checks the fields of params, and sets the absent ones to their
// defaults.
func (s *Server) fillIn(params *protocol.SpawnParams) error {
	switch params.Kind {
	case "":
		params.Kind = protocol.Terminal
	case protocol.Terminal, protocol.Tool:
	default:
		return invalidParams("kind", `expected "terminal" or "tool", found %s`, display.Quote(string(params.Kind)))
	}
	if params.Cwd == "" {
		return invalidParams("cwd", "required: an absolute path")
	}
	if err := absolute("cwd", params.Cwd); err != nil {
		return err
	}
	if params.ProjectDir == "" {
		params.ProjectDir = params.Cwd
		if folder, ok := s.folderOf(params.Cwd); ok {
			params.ProjectDir = folder
		}
	} else if err := absolute("projectDir", params.ProjectDir); err != nil {
		return err
	}
	// If it is the working directory, that is checked instead: the editor may not
	// have named a project.
	if params.ProjectDir != params.Cwd {
		if err := checkProject(params.ProjectDir); err != nil {
			return err
		}
	}
	if params.SessionID == "" {
		params.SessionID = spawn.NewID()
	} else if !spawn.IsID(params.SessionID) {
		return invalidParams("sessionId", "expected a UUID, found %s", display.Quote(params.SessionID))
	}
	switch {
	case params.Shell != nil && params.Shell.Program == "":
		return invalidParams("shell.program", "required: a path, or a name in PATH")
	case params.Command == "" && params.Pipe:
		return invalidParams("command", "required for a pipe")
	case params.Command == "" && params.Args != nil:
		return invalidParams("command", "required if args are given")
	case params.Command == "" && params.Shell == nil && params.Kind == protocol.Tool:
		return invalidParams("command", "required for a tool")
	}
	if err := checkStreams(params); err != nil {
		return err
	}
	if err := checkTexts(params); err != nil {
		return err
	}
	if err := s.checkGroup(params.Group); err != nil {
		return err
	}
	return checkSize(cmp.Or(params.Cols, 80), cmp.Or(params.Rows, 24))
}

// checkProject refuses a project directory that does not exist.
func checkProject(dir string) error {
	info, err := fsguard.Stat(dir)
	if errors.Is(err, fsguard.ErrNoAnswer) {
		return noAnswer("use project directory", dir)
	}
	reason := "not a directory"
	if err != nil {
		reason = errors.Unwrap(err).Error()
	} else if info.IsDir() {
		return nil
	}
	return &wireError{
		code: protocol.CodeSpawnFailed, message: fmt.Sprintf("use project directory: %s: %s",
			display.Quote(dir), reason),
		data: &protocol.ErrorData{Reason: reason, Path: dir},
	}
}

// noAnswer is the error of an attempt whose file system does not answer.
func noAnswer(attempt, path string) error {
	return &spawn.Error{
		Attempt: attempt, Path: path, Cause: fsguard.ErrNoAnswer,
		Hint: "try again once the file system answers; sessions elsewhere can be started",
	}
}

// absolute refuses a path that is relative or contains a NUL byte.
func absolute(field, path string) error {
	switch {
	case strings.ContainsRune(path, 0):
		return invalidParams(field, "holds a NUL byte: %s", display.Quote(path))
	case !filepath.IsAbs(path):
		return invalidParams(field, "expected an absolute path, found %s", display.Quote(path))
	}
	return nil
}
