package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/window"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Options configure a server. All fields except UserSettingsPath, Command,
// Sandbox, Guarded, HostsGap and Recorder are required.
type Options struct {
	// Version of the program.
	Version string
	// Spawner starts sessions.
	Spawner *spawn.Spawner
	// Env is the sidecar's own environment, which sessions inherit, filtered.
	Env []string
	// UserSettingsPath replaces the user's settings files. A path that the editor
	// names takes precedence.
	UserSettingsPath string
	// Command is a layer of settings over all others: what the command line says.
	Command []byte
	// Sandbox refuses every session that would not be confined, and every one
	// while a settings file is wrong.
	Sandbox bool
	// Guarded are paths that no session should be able to write, in addition to
	// the settings files: the program itself and its state.
	Guarded []string
	// HostsGap is for settings.Options.
	HostsGap func() string
	// Complete is for settings.Options; nil adds nothing.
	Complete compile.Completion
	// Window opens the socket on which shells report.
	Window func() (*window.Listener, error)
	// Recorder is for settings.Options.
	Recorder audit.Recorder
	// WatchProcess returns a channel that is closed when the process has ended.
	WatchProcess func(ctx context.Context, pid int) (<-chan struct{}, error)
	// Logger must not write to the connection.
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
	groups      *groups
	shells      *shells
	published   published
	memory      *memoryRelease
	policyCache policyCache

	mu           sync.Mutex // guards the fields below
	phase        phase
	store        *settings.Store // set from phase serving on
	capabilities protocol.ClientCapabilities
	folders      []protocol.WorkspaceFolder
	client       string           // the editor's name, as it says
	window       *window.Listener // nil if the editor did not ask for it

	background sync.WaitGroup // goroutines that belong to no request
	exited     chan struct{}  // closed by the exit notification
	exitOnce   sync.Once
	editorGone chan struct{} // closed when the editor's process has ended
	goneOnce   sync.Once
}

// phase is the state of a conversation.
type phase int

const (
	phaseCreated phase = iota
	phaseServing
	phaseShutdown
)

// New makes a server.
func New(options Options) *Server {
	s := &Server{
		options: options, log: options.Logger, dispatcher: newDispatcher(), sessions: newSessions(),
		groups: newGroups(),
		shells: newShells(), memory: newMemoryRelease(),
		exited: make(chan struct{}), editorGone: make(chan struct{}),
	}
	s.dispatcher.admit = s.admit
	s.dispatcher.ignored = func(method string, err error) {
		s.log.Warn("notification ignored", "method", method, "error", err)
		var wire *wireError
		if errors.As(err, &wire) && wire.code == protocol.CodeSessionNotFound {
			return // keys typed while a session was ending; not an error
		}
		// A notification has no answer, so only the editor's log can show the
		// error to its author.
		s.conn.logLine(protocol.LogWarning, fmt.Sprintf("%s ignored: %v", display.Text(method), err))
	}
	s.dispatcher.strict[protocol.Spawn.Method] = true
	s.dispatcher.unknown = logUnknown(s.log)
	s.dispatcher.handled = s.memory.after
	s.registerLifecycle()
	s.registerTerminals()
	s.registerSettings()
	return s
}

// maxUnknown bounds the fields that logUnknown logs.
const maxUnknown = 100

// logUnknown logs fields that nobody knows, each once.
func logUnknown(log *slog.Logger) func(method, field string) {
	var mu sync.Mutex // guards said
	said := map[[2]string]bool{}
	return func(method, field string) {
		mu.Lock()
		defer mu.Unlock()
		if one := [2]string{method, field}; !said[one] && len(said) < maxUnknown {
			said[one] = true
			log.Warn("an unknown field was ignored", "method", method, "field", display.Text(field))
		}
	}
}

const (
	// writeTimeout bounds the wait until the editor takes the last answers.
	writeTimeout = 2 * time.Second
	// stalledTimeout bounds the wait for an editor that takes no frame at all.
	stalledTimeout = time.Second
	// shutdownTimeout bounds the wait until killed processes are gone, and until
	// the last requests are answered to an editor that takes the answers.
	shutdownTimeout = 15 * time.Second
)

// Serve talks to the editor until the conversation ends: by exit, the end of
// in, the editor's death, a broken frame or the end of ctx. No session is alive
// when it returns. It returns nil if the editor had sent shutdown.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ctx = ctx
	frames := newStream(in, out)
	s.stream = frames
	s.conn = newConn(frames, func(c *conn, request *jsonrpc2.Request) error {
		return s.dispatcher.Handle(ctx, c, request)
	})
	defer s.memory.stop()
	s.conn.start()

	var reason error
	select {
	case <-s.exited:
	case <-s.editorGone:
		reason = errors.New("the editor's process has ended")
	case reason = <-s.conn.stream.ended:
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
	s.closeWindow()
	fsguard.Hurry() // do not wait for a file system that does not answer
	// Sessions report their ends, and pending requests are answered. Both wait for
	// the editor, but not long: one that has stopped reading must not keep the
	// sidecar from ending. Requests have longer, unless the editor may be dead.
	patience := writeTimeout
	if reason == nil || errors.Is(reason, io.EOF) {
		patience = shutdownTimeout
	}
	deadline := time.Now().Add(patience)
	defer frames.out.abandonStalled(stalledTimeout, writeTimeout)()
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	err := errors.Join(s.sessions.closeAll(end, func(*entry) time.Duration { return 0 }), s.groups.closeAll())
	answered := s.dispatcher.end()
	select {
	case <-answered:
	case <-frames.out.abandoned:
	case <-frames.out.broken:
	case <-time.After(time.Until(deadline)):
	}
	if store != nil {
		err = errors.Join(err, store.Close())
	}
	frames.out.close(writeTimeout)
	cancel()
	s.conn.close()
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

// Client is the name that the editor has given itself; "" if it has given none.
func (s *Server) Client() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// admit enforces the order of a conversation: initialize first and once, and
// only exit after shutdown.
func (s *Server) admit(method string, isRequest bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == protocol.Exit.Method {
		return nil
	}
	initialize := method == protocol.Initialize.Method && isRequest
	switch {
	case s.phase == phaseCreated && !initialize:
		return &wireError{code: protocol.CodeNotInitialized, message: fmt.Sprintf("%.100s: not initialized", method)}
	case s.phase == phaseServing && initialize:
		return &wireError{code: protocol.CodeInvalidRequest, message: "initialize: already initialized"}
	case s.phase == phaseShutdown:
		return &wireError{
			code:    protocol.CodeInvalidRequest,
			message: fmt.Sprintf("%.100s: only exit may follow shutdown", method),
		}
	}
	if method == protocol.Shutdown.Method && isRequest {
		s.phase = phaseShutdown // not in the handler, so that no later message is admitted
	}
	return nil
}

// notify sends a notification. Serve notices if the editor is gone.
func notify[P any](s *Server, method protocol.Notification[P], params P) {
	_ = s.conn.Notify(s.ctx, method.Method, params)
}

// logMessage writes one line into the editor's log, and waits for the editor.
func (s *Server) logMessage(kind int, format string, args ...any) {
	notify(s, protocol.LogMessage, protocol.LogMessageParams{
		Type:    kind,
		Message: display.Line(fmt.Sprintf(format, args...)),
	})
}
