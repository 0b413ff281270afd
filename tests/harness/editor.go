package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Timeout bounds every wait; see deadline.Deadline. It is only reached if a test
// fails.
const Timeout = 90 * time.Second

// Editor is a running sidecar with a connection to it.
type Editor struct {
	*client.Client
	t     testing.TB
	World *World
	Hello protocol.InitializeResult
	// Log is what the sidecar writes to stderr.
	Log *Buffer

	sessions *sessions
}

// sessions are those of a sidecar, by their ids.
type sessions struct {
	mu  sync.Mutex // guards all
	all map[string]*Session
}

// For is the same editor for another test, which its methods then fail.
func (e *Editor) For(t testing.TB) *Editor {
	other := *e
	other.t = t
	return &other
}

// Options of an editor. The zero value is an editor with settings
// Settings(nil).
type Options struct {
	// Settings is the user's settings file; "" is Settings(nil).
	Settings string
	// Env is added to the sidecar's environment.
	Env []string
	// Initialize changes the parameters of initialize.
	Initialize func(*protocol.InitializeParams)
	// Wrap changes the command that starts the sidecar.
	Wrap func(*exec.Cmd)
}

// Start starts a sidecar in the world and initializes it. It is shut down with
// the test.
func Start(t testing.TB, w *World, options Options) *Editor {
	t.Helper()
	if options.Settings == "" {
		options.Settings = Settings(nil)
	}
	Write(t, w.UserSettings(), options.Settings)
	command := exec.Command(Binary(t), "serve", "--log-level", "debug")
	command.Env = append(Environ(w), options.Env...)
	log := &Buffer{}
	command.Stderr = log
	if options.Wrap != nil {
		options.Wrap(command)
	}
	connection, err := client.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	e := &Editor{Client: connection, t: t, World: w, Log: log, sessions: &sessions{all: map[string]*Session{}}}
	client.On(connection, protocol.Output, func(p protocol.OutputParams) {
		s := e.session(p.SessionID)
		if p.Stream == protocol.StreamStderr {
			s.stderr.Write(p.Data)
			return
		}
		s.output.Write(p.Data)
	})
	client.On(connection, protocol.Exited, func(p protocol.ExitedParams) {
		s := e.session(p.SessionID)
		s.exit = p
		close(s.exited)
	})
	t.Cleanup(func() {
		// A test may have ended it already.
		_ = connection.HangUp()
		if t.Failed() {
			t.Logf("log of the sidecar:\n%s", log)
		}
	})
	params := protocol.InitializeParams{ClientInfo: &protocol.ClientInfo{Name: "test"}}
	if options.Initialize != nil {
		options.Initialize(&params)
	}
	e.Hello = Call(e, protocol.Initialize, params)
	_ = client.Notify(connection, protocol.Initialized, protocol.Empty{})
	return e
}

// Environ is a small environment with the world's home.
func Environ(w *World) []string {
	env := []string{
		"HOME=" + w.Home, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "SHELL=/bin/bash",
		"LANG=C.UTF-8", "USER=tester",
	}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return env
}

// Call sends a request that must succeed.
func Call[P, R any](e *Editor, method protocol.Request[P, R], params P) R {
	e.t.Helper()
	result, err := Try(e, method, params)
	if err != nil {
		e.t.Fatalf("%s: %v", method.Method, err)
	}
	return result
}

// Try sends a request that may be refused, with a *client.Error.
func Try[P, R any](e *Editor, method protocol.Request[P, R], params P) (R, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		if !deadline.New(Timeout).Wait(ctx.Done()) {
			cancel(fmt.Errorf("no answer after %v", Timeout))
		}
	}()
	result, err := client.Call(ctx, e.Client, method, params)
	if late := context.Cause(ctx); err != nil && late != nil {
		err = late
	}
	return result, err
}

// Notify sends a notification.
func Notify[P any](e *Editor, method protocol.Notification[P], params P) {
	e.t.Helper()
	if err := client.Notify(e.Client, method, params); err != nil {
		e.t.Fatalf("%s: %v", method.Method, err)
	}
}

// Session is one spawned session with everything it has printed.
type Session struct {
	protocol.SpawnResult
	e      *Editor
	output Buffer
	stderr Buffer // if it is apart
	exit   protocol.ExitedParams
	exited chan struct{}
}

func (e *Editor) session(id string) *Session {
	e.sessions.mu.Lock()
	defer e.sessions.mu.Unlock()
	if e.sessions.all[id] == nil {
		e.sessions.all[id] = &Session{e: e, exited: make(chan struct{})}
	}
	return e.sessions.all[id]
}

// Spawn starts a session that must start. An empty cwd is the project.
func (e *Editor) Spawn(params protocol.SpawnParams) *Session {
	e.t.Helper()
	if params.Cwd == "" {
		params.Cwd = e.World.Project
	}
	return e.Session(Call(e, protocol.Spawn, params))
}

// Session is the session of an answer to a spawn request.
func (e *Editor) Session(result protocol.SpawnResult) *Session {
	s := e.session(result.SessionID)
	s.SpawnResult, s.e = result, e
	return s
}

// Shell starts a plain /bin/sh as the user's terminal, with a prompt that is
// easy to wait for.
func (e *Editor) Shell() *Session {
	e.t.Helper()
	return e.Spawn(protocol.SpawnParams{
		Shell: &protocol.Shell{Program: "/bin/sh"}, Env: map[string]string{"PS1": "$ "},
	})
}

// Run runs a tool to its end, and returns its session and its exit status; -1
// if a signal ended it. An empty cwd is the project.
func (e *Editor) Run(params protocol.SpawnParams) (s *Session, status int) {
	e.t.Helper()
	params.Kind = protocol.Tool
	s = e.Spawn(params)
	if exit := s.Exit(); exit.ExitCode != nil {
		return s, *exit.ExitCode
	}
	return s, -1
}

// Tool runs a command line as a tool to its end, and returns what it printed,
// with Unix line ends, and its exit status; -1 if a signal ended it.
func (e *Editor) Tool(line string) (output string, status int) {
	e.t.Helper()
	s, status := e.Run(protocol.SpawnParams{Command: line})
	return s.Output(), status
}

// Type sends input.
func (s *Session) Type(text string) {
	s.e.t.Helper()
	Notify(s.e, protocol.Input, protocol.InputParams{SessionID: s.SessionID, Data: []byte(text)})
}

// Output is what the session has printed so far, with Unix line ends.
func (s *Session) Output() string { return strings.ReplaceAll(s.output.String(), "\r\n", "\n") }

// Stderr is what a session that has its standard error apart has printed there so
// far.
func (s *Session) Stderr() string { return s.stderr.String() }

// Raw is what the session has printed so far, byte for byte.
func (s *Session) Raw() []byte { return []byte(s.output.String()) }

// Await waits until the output matches and returns the first match's groups.
func (s *Session) Await(pattern string) []string {
	s.e.t.Helper()
	return s.output.Await(s.e.t, pattern)
}

// Exit waits for terminal/exited.
func (s *Session) Exit() protocol.ExitedParams {
	s.e.t.Helper()
	if !deadline.New(Timeout).Wait(s.exited) {
		s.e.t.Fatalf("session %s has not ended; it printed:\n%s", s.SessionID, s.Output())
	}
	return s.exit
}

// Close ends the session.
func (s *Session) Close(graceMs int) protocol.CloseResult {
	s.e.t.Helper()
	return Call(s.e, protocol.Close, protocol.CloseParams{SessionID: s.SessionID, GraceMs: &graceMs})
}

// Eventually waits for a condition to come true, and fails the test if it does
// not.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !Within(condition) {
		t.Fatalf("waited in vain: %s", what)
	}
}

// Within reports whether a condition comes true before the timeout ends.
func Within(condition func() bool) bool { return deadline.Until(Timeout, condition) }
