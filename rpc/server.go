package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Options are what a server needs. All fields but UserSettingsPath and Guarded
// are required.
type Options struct {
	// Version of the program.
	Version string
	// Spawner starts sessions.
	Spawner *spawn.Spawner
	// Env is the sidecar's own environment, from which sessions get theirs.
	Env []string
	// UserSettingsPath replaces the user's settings files; an editor that names
	// one too wins.
	UserSettingsPath string
	// Guarded are paths that no session may be able to write, beside the
	// settings files: the program itself, its state.
	Guarded []string
	// WatchProcess tells when the editor's process has ended.
	WatchProcess func(ctx context.Context, pid int) (<-chan struct{}, error)
	// Logger takes what people may want to read later. It must not write to the
	// connection.
	Logger *slog.Logger
}

// Server serves one editor. It is used once.
type Server struct {
	options     Options
	log         *slog.Logger
	dispatcher  *dispatcher
	stream      *stream
	conn        *conn
	ctx         context.Context // ends with the connection
	sessions    *sessions
	published   published
	memory      *memoryRelease
	policyCache policyCache

	mu           sync.Mutex // guards the fields below
	phase        phase
	store        *settings.Store // set from phase serving on
	capabilities protocol.ClientCapabilities
	folders      []protocol.WorkspaceFolder

	background sync.WaitGroup // goroutines that belong to no request
	exited     chan struct{}  // closed by the exit notification
	exitOnce   sync.Once
	editorGone chan struct{} // closed when the editor's process has ended
	goneOnce   sync.Once
}

// phase is where a conversation stands.
type phase int

const (
	phaseCreated phase = iota
	phaseServing
	phaseShutdown
)

// New makes a server.
func New(options Options) *Server {
	s := &Server{
		options: options, log: options.Logger, dispatcher: newDispatcher(), sessions: newSessions(), memory: newMemoryRelease(),
		exited: make(chan struct{}), editorGone: make(chan struct{}),
	}
	s.dispatcher.admit = s.admit
	s.dispatcher.ignored = func(method string, err error) {
		s.log.Warn("notification ignored", "method", method, "error", err)
		var wire *wireError
		if errors.As(err, &wire) && wire.code == protocol.CodeSessionNotFound {
			return // keys typed while a session was ending; nobody is at fault
		}
		// A notification has no answer, so the editor's log is the one place
		// where its author may find out.
		s.conn.logLine(protocol.LogWarning, fmt.Sprintf("%s ignored: %v", display.Text(method), err))
	}
	s.dispatcher.handled = s.memory.after
	s.registerLifecycle()
	s.registerTerminals()
	s.registerSettings()
	return s
}

const (
	// writeTimeout bounds the wait for an editor to take the last frames, and
	// lastTimeout that for what is queued by then.
	writeTimeout = 2 * time.Second
	lastTimeout  = 100 * time.Millisecond
	// stalledTimeout is how long one that takes nothing at all is waited for.
	stalledTimeout = time.Second
	// shutdownTimeout bounds the wait for killed processes to be gone.
	shutdownTimeout = 15 * time.Second
)

// Serve talks to the editor until the conversation ends: by exit, by the end of
// in, by the editor's death, by a broken frame or by ctx. No session is left
// alive then. It returns nil where the editor said shutdown before.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ctx = ctx
	frames := newStream(in, out)
	s.stream, s.conn = frames, newConn(frames)
	defer s.memory.stop()
	read := make(chan error, 1)
	go func() {
		read <- s.conn.read(func(message incoming) error { return s.dispatcher.Handle(ctx, s.conn, message) })
	}()

	var reason error
	select {
	case <-s.exited:
	case <-s.editorGone:
		reason = errors.New("the editor's process has ended")
	case reason = <-read:
	case <-frames.out.broken:
		reason = errClosed
	case <-ctx.Done():
		reason = context.Cause(ctx)
	}
	s.mu.Lock()
	orderly := s.phase == phaseShutdown
	s.phase = phaseShutdown
	store := s.store
	s.mu.Unlock()
	if orderly && reason != nil && !errors.Is(reason, io.EOF) {
		s.log.Warn("connection ends between shutdown and exit", "reason", reason)
	}
	fsguard.Hurry() // this process ends, whatever it has asked
	// Sessions tell their ends, and requests that came before are answered, and
	// wait until the editor takes that; one that has stopped reading must not
	// keep the rest from ending.
	deadline := time.Now().Add(writeTimeout)
	defer frames.out.abandonStalled(stalledTimeout, writeTimeout)()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	err := s.sessions.closeAll(end, func(*entry) time.Duration { return 0 })
	answered := s.dispatcher.end()
	select {
	case <-answered:
	case <-frames.out.abandoned:
	case <-time.After(time.Until(deadline)):
	}
	if store != nil {
		err = errors.Join(err, store.Close())
	}
	frames.out.close(max(lastTimeout, time.Until(deadline)))
	cancel()
	s.conn.close()
	_ = frames.Close()
	<-answered
	s.background.Wait()
	if err != nil {
		return err
	}
	if !orderly {
		return fmt.Errorf("connection ended without shutdown: %w", orEOF(reason))
	}
	return nil
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// admit holds the order of a conversation: initialize first and once, nothing
// after shutdown but exit.
func (s *Server) admit(method string, isRequest bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == protocol.Exit.Method {
		return nil
	}
	initialize := method == protocol.Initialize.Method && isRequest
	switch {
	case s.phase == phaseCreated && !initialize:
		return &wireError{code: protocol.CodeNotInitialized, message: fmt.Sprintf("%.100s: initialize comes first", method)}
	case s.phase == phaseServing && initialize:
		return &wireError{code: protocol.CodeInvalidRequest, message: "initialize: a second time"}
	case s.phase == phaseShutdown:
		return &wireError{code: protocol.CodeInvalidRequest,
			message: fmt.Sprintf("%.100s: after shutdown only exit may come", method)}
	}
	if method == protocol.Shutdown.Method && isRequest {
		s.phase = phaseShutdown // here and not in the handler, so that nothing behind it slips through
	}
	return nil
}

// notify sends a notification. An editor that is gone is noticed elsewhere.
func notify[P any](s *Server, method protocol.Notification[P], params P) {
	_ = s.conn.Notify(s.ctx, method.Method, params)
}

// logMessage writes one line into the editor's log, and waits for the editor.
func (s *Server) logMessage(kind int, format string, args ...any) {
	notify(s, protocol.LogMessage, protocol.LogMessageParams{Type: kind,
		Message: display.Line(fmt.Sprintf(format, args...))})
}
