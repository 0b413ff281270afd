//go:build unix

package window

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

// timeout bounds every wait; it only matters if a test fails.
const timeout = 90 * time.Second

// place makes a state directory with a directory for a socket.
func place(t *testing.T, deep string) (stateDir, dir string) {
	t.Helper()
	stateDir = filepath.Join(harness.ShortDir(t), deep, "state")
	dir = filepath.Join(stateDir, "s1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return stateDir, dir
}

// server is a listener and what it was told.
type server struct {
	*Listener
	stateDir string
	shells   chan *Shell
	refused  chan error
	served   chan struct{} // closed when Serve has returned
}

func serve(t *testing.T, stateDir, dir string) *server {
	t.Helper()
	listener, err := Listen(dir, func() { os.RemoveAll(dir) })
	if err != nil {
		t.Fatal(err)
	}
	listener.Asks = true
	s := &server{
		Listener: listener, stateDir: stateDir, shells: make(chan *Shell, 1000), refused: make(chan error, 1000),
		served: make(chan struct{}),
	}
	ends := make(chan struct{})
	go func() {
		defer close(s.served)
		listener.Serve(func(shell *Shell) { s.shells <- shell; <-ends }, func(err error) { s.refused <- err })
	}()
	t.Cleanup(func() {
		close(ends)
		listener.Close()
		<-s.served
	})
	return s
}

var started = FromShell{Started: &Started{Kind: protocol.Terminal, Argv: []string{"sh"}}}

func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-deadline.After(timeout):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

func TestConversation(t *testing.T) {
	t.Parallel()
	converse(t, "")
}

func converse(t *testing.T, deep string) {
	t.Helper()
	stateDir, dir := place(t, deep)
	s := serve(t, stateDir, dir)
	w := dialFor(stateDir, s.Path, timeout)
	if !w.Send(started) {
		t.Fatal("there is no window")
	}
	shell := await(t, "the shell", s.shells)
	if shell.PID != os.Getpid() || shell.Started.Kind != protocol.Terminal {
		t.Errorf("%+v", shell)
	}
	go func() {
		message, err := shell.Receive()
		if err == nil && message.Ask != nil {
			shell.Answer(Answer{ID: 77, Decision: protocol.DecisionUser}) // of no question
			shell.Answer(Answer{ID: message.Ask.ID, Decision: protocol.DecisionOnce})
		}
	}()
	decision, asked := w.Ask(context.Background(), protocol.RequestAccessParams{Message: "may I?"})
	if decision != protocol.DecisionOnce || !asked {
		t.Errorf("answered %q, %v", decision, asked)
	}
	if !w.Send(FromShell{Log: "last"}) {
		t.Error("not sent")
	}
	w.Close()
	if message, err := shell.Receive(); err != nil || message.Log != "last" {
		t.Errorf("%+v, %v", message, err)
	}
}

// A question ends with its context and with the window.
func TestQuestionsEnd(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t, "")
	s := serve(t, stateDir, dir)
	w := dialFor(stateDir, s.Path, timeout)
	w.Send(started)
	shell := await(t, "the shell", s.shells)
	ctx, cancel := context.WithCancel(context.Background())
	type answer struct {
		decision protocol.Decision
		asked    bool
	}
	answers := make(chan answer, 1)
	ask := func(ctx context.Context) {
		decision, asked := w.Ask(ctx, protocol.RequestAccessParams{})
		answers <- answer{decision, asked}
	}
	go ask(ctx)
	question, err := shell.Receive()
	if err != nil || question.Ask == nil {
		t.Fatalf("%+v, %v", question, err)
	}
	cancel()
	if got := await(t, "no decision", answers); got != (answer{"", true}) {
		t.Errorf("a question that nobody waits for: %+v", got)
	}
	if m, err := shell.Receive(); err != nil || m.Withdraw == nil || *m.Withdraw != question.Ask.ID {
		t.Errorf("withdrawn: %+v, %v", m, err)
	}
	go ask(context.Background())
	if _, err := shell.Receive(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got := await(t, "an answer", answers); got.asked {
		t.Errorf("the window is gone: %+v", got)
	}
	if w.Open() || w.Send(FromShell{Log: "x"}) {
		t.Error("the window is still open")
	}
}

// Whatever a shell finds in place of a window, it soon goes on as without.
func TestShellsTrustNobody(t *testing.T) {
	t.Parallel()
	// listen is a server of the test's own, which answers with a text.
	listen := func(t *testing.T, path, answer string) {
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				fmt.Fprint(c, answer)
				if !strings.HasSuffix(answer, "...") { // or it hangs
					c.Close()
				}
			}
		}()
	}
	listening := func(answer string) func(*testing.T, string) {
		return func(t *testing.T, path string) { listen(t, path, answer) }
	}
	const hello = `{"hello":{"version":1,"asks":true}}` + "\n"
	for name, c := range map[string]struct {
		prepare func(t *testing.T, path string)
		open    bool
		path    func(stateDir, path string) string
	}{
		"a sidecar":          {listening(hello + "..."), true, nil},
		"nothing":            {func(*testing.T, string) {}, false, nil},
		"a file":             {func(_ *testing.T, path string) { _ = os.WriteFile(path, nil, 0o600) }, false, nil},
		"another version":    {listening(`{"hello":{"version":2}}` + "\n..."), false, nil},
		"an answer":          {listening(`{"answer":{"id":1}}` + "\n..."), false, nil},
		"half a message":     {listening(hello[:9]), false, nil},
		"garbage":            {listening("\x00\xff\n..."), false, nil},
		"a flood":            {listening(strings.Repeat("x", 2*maxMessage) + "..."), false, nil},
		"one that is silent": {listening("..."), false, nil},
		"one that accepts nothing": {func(t *testing.T, path string) {
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
			_ = os.Chmod(path, 0o600)
		}, false, nil},
		"a dead one": {func(t *testing.T, path string) {
			listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			listener.SetUnlinkOnClose(false)
			listener.Close()
		}, false, nil},
		"a socket that others may use": {func(t *testing.T, path string) {
			listen(t, path, hello+"...")
			_ = os.Chmod(path, 0o666)
		}, false, nil},
		"a directory that others may read": {func(t *testing.T, path string) {
			listen(t, path, hello+"...")
			_ = os.Chmod(filepath.Dir(path), 0o755)
		}, false, nil},
		"a symlink": {func(t *testing.T, path string) {
			listen(t, path+"2", hello+"...")
			_ = os.Symlink(path+"2", path)
		}, false, nil},
		"one elsewhere": {
			listening(hello + "..."), false,
			func(stateDir, path string) string { return path },
		},
		"a relative path": {
			listening(hello + "..."), false,
			func(string, string) string { return "window" },
		},
		"a path that leads there": {
			listening(hello + "..."), false,
			func(stateDir, path string) string { return stateDir + "/../state/s1/window" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stateDir, dir := place(t, "")
			path := filepath.Join(dir, "window")
			c.prepare(t, path)
			named := path
			if c.path != nil {
				named = c.path(stateDir, path)
			}
			if name == "one elsewhere" {
				stateDir = filepath.Join(stateDir, "other")
			}
			most := helloTimeout
			if c.open {
				most = timeout
			}
			w := dialFor(stateDir, named, most)
			if got := w.Open(); got != c.open {
				t.Errorf("open: %v, want %v", got, c.open)
			}
			if c.open {
				return // it never answers
			}
			if _, asked := w.Ask(context.Background(), protocol.RequestAccessParams{}); asked {
				t.Error("it answered a question")
			}
		})
	}
}

// A shell does not wait for its window before it needs it, and then not long.
func TestDialDoesNotWait(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t, "")
	path := filepath.Join(dir, "window")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_ = os.Chmod(path, 0o600)
	// This window says hello after Dial has returned. Whoever waited would not
	// find it.
	w := dialFor(stateDir, path, timeout)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, `{"hello":{"version":1,"asks":true}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if !w.Open() {
		t.Error("Dial waits for the window's first message")
	}
	if Dial(stateDir, path).Open() {
		t.Error("a silent window is open")
	}
}

// What is no conversation ends the connection, and no other.
func TestListenersBelieveNobody(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t, "")
	s := serve(t, stateDir, dir)
	good := dialFor(stateDir, s.Path, timeout)
	good.Send(started)
	shell := await(t, "the good shell", s.shells)
	for name, text := range map[string]string{
		"garbage":          "\x00\xff\n",
		"half a message":   `{"started":`,
		"no JSON":          "GET / HTTP/1.1\r\n\r\n",
		"two in a line":    `{"started":{}}{"started":{}}` + "\n",
		"an unknown field": `{"shell":{}}` + "\n",
		"no start":         `{"log":"x"}` + "\n",
		"a wrong type":     `{"started":[]}` + "\n",
		"too long":         strings.Repeat(" ", 2*maxMessage),
		"nothing":          "",
		"an empty line":    "\n",
	} {
		c, err := net.Dial("unix", s.Path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = c.Write([]byte(text)) // the listener may have closed it
			_ = c.(*net.UnixConn).CloseWrite()
		}()
		if err := await(t, name, s.refused); err == nil {
			t.Errorf("%s: no reason", name)
		}
		c.Close()
	}
	if !good.Send(FromShell{Log: "still here"}) {
		t.Error("the good shell was cut off")
	}
	if m, err := shell.Receive(); err != nil || m.Log != "still here" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestShellsAreBounded(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t, "")
	s := serve(t, stateDir, dir)
	for range maxShells {
		w := dialFor(stateDir, s.Path, timeout)
		if !w.Send(started) {
			t.Fatal("refused within the bound")
		}
	}
	if dialFor(stateDir, s.Path, timeout).Open() {
		t.Error("one more is served")
	}
	await(t, "a refusal", s.refused)
}

func TestLongMessages(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t, "")
	s := serve(t, stateDir, dir)
	w := dialFor(stateDir, s.Path, timeout)
	w.Send(started)
	shell := await(t, "the shell", s.shells)
	long := strings.Repeat("x", maxMessage)
	if err := w.conn.Send(FromShell{Log: long}); !errors.Is(err, usersocket.ErrTooLong) {
		t.Errorf("%v", err)
	}
	if !w.Send(FromShell{Ended: &Ended{Hints: []string{long}}}) {
		t.Error("the end was not told")
	}
	if m, err := shell.Receive(); err != nil || m.Ended == nil || m.Ended.Hints != nil {
		t.Errorf("%+v, %v", m, err)
	}
}
