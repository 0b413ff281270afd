//go:build unix

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// timeout bounds every wait; it only matters if a test fails.
const timeout = 90 * time.Second

// fixture is a server over pipes in memory, with real processes under it.
type fixture struct {
	t        *testing.T
	dir      string // a project
	settings string // path of the user's settings
	in       io.WriteCloser
	out      io.Reader
	cancel   context.CancelFunc
	ended    chan struct{} // closed when Serve has returned err
	err      error
	editor   chan struct{} // closing it is the end of the editor's process
}

// start starts a server without an editor. The test reads and writes frames
// itself, or calls connect.
func start(t *testing.T, backend platform.Backend, block string) *fixture {
	t.Helper()
	return startWith(t, backend, block, func(*Options) {})
}

// startWith is start with other options.
func startWith(t *testing.T, backend platform.Backend, block string, change func(*Options)) *fixture {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		t: t, dir: filepath.Join(home, "project"), settings: filepath.Join(home, "settings.json"),
		ended: make(chan struct{}), editor: make(chan struct{}),
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.settings, []byte(`{"terminal": {"sandbox": `+block+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=/bin/sh"}
	state, err := lifecycle.StateDir(env)
	if err != nil {
		t.Fatal(err)
	}
	tracker := lifecycle.Open(lifecycle.Options{StateDir: state})
	options := Options{
		Version: "test", Spawner: &spawn.Spawner{
			Backend: backend, Tracker: tracker,
			Logger: slog.New(slog.DiscardHandler),
		}, Env: env,
		UserSettingsPath: f.settings, Logger: slog.New(slog.DiscardHandler),
		WatchProcess: func(context.Context, int) (<-chan struct{}, error) { return f.editor, nil },
	}
	change(&options)
	server := New(options)
	fromEditor, in := io.Pipe()
	out, toEditor := io.Pipe()
	f.in, f.out = in, out
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	go func() {
		defer close(f.ended)
		f.err = server.Serve(ctx, fromEditor, toEditor)
		toEditor.Close()
	}()
	t.Cleanup(func() {
		in.Close()
		f.wait()
		cancel()
		if err := tracker.Close(); err != nil {
			t.Errorf("close tracker: %v", err)
		}
	})
	return f
}

// wait waits for Serve.
func (f *fixture) wait() {
	f.t.Helper()
	select {
	case <-f.ended:
	case <-deadline.After(timeout):
		f.t.Fatal("Serve does not return")
	}
}

// editor is a well-behaved client of a fixture's server.
type editor struct {
	*client.Client
	f *fixture

	mu      sync.Mutex // guards the fields below
	changed chan struct{}
	outputs map[string]*strings.Builder // by the session's id and the stream
	exits   map[string]protocol.ExitedParams
}

func (f *fixture) connect() *editor {
	f.t.Helper()
	e := &editor{
		Client: client.New(io.NopCloser(f.out), f.in), f: f,
		changed: make(chan struct{}), outputs: map[string]*strings.Builder{}, exits: map[string]protocol.ExitedParams{},
	}
	client.On(e.Client, protocol.Output, func(p protocol.OutputParams) {
		e.update(func() {
			if e.outputs[p.SessionID+p.Stream] == nil {
				e.outputs[p.SessionID+p.Stream] = &strings.Builder{}
			}
			e.outputs[p.SessionID+p.Stream].Write(p.Data)
		})
	})
	client.On(e.Client, protocol.Exited, func(p protocol.ExitedParams) {
		e.update(func() { e.exits[p.SessionID] = p })
	})
	pid := 1
	call(e, protocol.Initialize, protocol.InitializeParams{ProcessID: &pid})
	return e
}

func (e *editor) update(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
	close(e.changed)
	e.changed = make(chan struct{})
}

// printed is what a session has printed so far.
func (e *editor) printed(id string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.outputs[id] == nil {
		return ""
	}
	return e.outputs[id].String()
}

// until waits for a condition on the guarded fields.
func (e *editor) until(what string, condition func() bool) {
	e.f.t.Helper()
	timeout := deadline.After(timeout)
	for {
		e.mu.Lock()
		met, changed := condition(), e.changed
		e.mu.Unlock()
		if met {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			e.f.t.Fatalf("timeout: %s", what)
		}
	}
}

// output waits for text in a session's output.
func (e *editor) output(id, text string) {
	e.f.t.Helper()
	e.until(text, func() bool { return e.outputs[id] != nil && strings.Contains(e.outputs[id].String(), text) })
}

// exit waits for a session's end and returns its exit code; -1 if a signal
// ended it.
func (e *editor) exit(id string) int {
	e.f.t.Helper()
	code := -1
	e.until("terminal/exited", func() bool {
		exit, ended := e.exits[id]
		if ended && exit.ExitCode != nil {
			code = *exit.ExitCode
		}
		return ended
	})
	return code
}

func try[P, R any](e *editor, method protocol.Request[P, R], params P) (R, error) {
	ctx, cancel := deadline.Context(context.Background(), timeout)
	defer cancel()
	return client.Call(ctx, e.Client, method, params)
}

func call[P, R any](e *editor, method protocol.Request[P, R], params P) R {
	e.f.t.Helper()
	result, err := try(e, method, params)
	if err != nil {
		e.f.t.Fatalf("%s: %v", method.Method, err)
	}
	return result
}

func (e *editor) notify(method string, params any) {
	e.f.t.Helper()
	raw, err := json.Marshal(params)
	if err == nil {
		err = client.Notify(e.Client, protocol.Notification[json.RawMessage]{Method: method}, raw)
	}
	if err != nil {
		e.f.t.Fatalf("%s: %v", method, err)
	}
}

func (e *editor) typeText(id, text string) {
	e.f.t.Helper()
	e.notify(protocol.Input.Method, protocol.InputParams{SessionID: id, Data: []byte(text)})
}

// refused fails the test unless err is an answer with this error code.
func refused(t *testing.T, err error, want protocol.Code) *client.Error {
	t.Helper()
	var answer *client.Error
	if !errors.As(err, &answer) || answer.Code != want {
		t.Fatalf("got %v, want an error %d", err, want)
	}
	return answer
}
