//go:build linux

package shells

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// editor is a window, and what it was told of shells.
type editor struct {
	*harness.Editor
	denials *harness.Denials

	mu      sync.Mutex // guards the fields below
	started []protocol.StartedParams
	stale   []string
	answer  func(protocol.RequestAccessParams) protocol.Decision
	asked   []protocol.RequestAccessParams
}

// window starts an editor that shows shells.
func (w *world) window(settings string, approvals bool) *editor {
	w.t.Helper()
	e := &editor{}
	options := harness.Options{Settings: settings, Initialize: func(p *protocol.InitializeParams) {
		p.Capabilities = protocol.ClientCapabilities{Window: true, Approvals: approvals}
	}}
	e.Editor = harness.Start(w.t, w.World, options)
	e.denials = harness.RecordDenials(e.Editor)
	client.On(e.Client, protocol.Started, func(p protocol.StartedParams) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.started = append(e.started, p)
	})
	client.On(e.Client, protocol.SettingsChanged, func(p protocol.SettingsChangedParams) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, s := range p.StaleSessions {
			e.stale = append(e.stale, s.SessionID)
		}
	})
	client.OnRequest(e.Client, protocol.RequestAccess,
		func(p protocol.RequestAccessParams) protocol.RequestAccessResult {
			e.mu.Lock()
			e.asked = append(e.asked, p)
			answer := e.answer
			e.mu.Unlock()
			return protocol.RequestAccessResult{Decision: answer(p)}
		})
	if e.Hello.Window == "" {
		w.t.Fatal("the sidecar offers no socket")
	}
	return e
}

// answers sets how the user answers, and forgets earlier questions.
func (e *editor) answers(answer func(protocol.RequestAccessParams) protocol.Decision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer, e.asked = answer, nil
}

// decides sets the user's answer.
func (e *editor) decides(decision protocol.Decision) {
	e.answers(func(protocol.RequestAccessParams) protocol.Decision { return decision })
}

// questions are those since the last call of answers.
func (e *editor) questions() []protocol.RequestAccessParams {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// unanswered lets questions wait until the test ends. It returns a channel that
// gets each.
func (e *editor) unanswered(t *testing.T) <-chan protocol.RequestAccessParams {
	end, asked := make(chan struct{}), make(chan protocol.RequestAccessParams, 1000)
	t.Cleanup(func() { close(end) })
	e.answers(func(p protocol.RequestAccessParams) protocol.Decision {
		asked <- p
		<-end
		return protocol.DecisionDeny
	})
	return asked
}

// shells waits until a number of sessions was reported, and returns them.
func (e *editor) shells(t *testing.T, count int) []protocol.StartedParams {
	t.Helper()
	list := func() []protocol.StartedParams {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.started
	}
	harness.Eventually(t, "the sessions of shells", func() bool { return len(list()) >= count })
	return list()
}

// run runs a command line below a window, and returns what it printed.
func (w *world) run(socket, line string) string {
	command := w.command(w.link("bash"), "-c", line)
	command.Env = append(command.Env, "SANDBOX_WINDOW="+socket)
	out, _ := command.CombinedOutput()
	return string(out)
}

// What a shell's session is refused appears in the window, and nothing of it in
// the command's output.
func TestWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	e := w.window(harness.Defaults(nil), false)
	out := w.run(e.Hello.Window, "echo x > Makefile; "+w.trespass()+"; echo [$SANDBOX_WINDOW]")
	w.mustBeConfined("a command line")
	if strings.Contains(out, "sandbox-sidecar") || !strings.HasSuffix(out, "[]\n") {
		t.Errorf("the command printed %q", out)
	}
	shell := e.shells(t, 1)[0]
	if shell.Kind != protocol.Tool || shell.ProjectDir != w.Project || !shell.Sandbox.Applied || shell.PolicyID == "" {
		t.Errorf("the session: %+v", shell)
	}
	session := e.Session(protocol.SpawnResult{SessionID: shell.SessionID})
	if exit := session.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 {
		t.Errorf("the end: %+v", exit)
	}
	file := filepath.Join(w.Outside, "file")
	denials := e.denials.Of(shell.SessionID)
	if len(denials) == 0 || denials[0].Target != file || denials[0].Suggestion == nil {
		t.Errorf("the denials: %+v", denials)
	}
	listed := harness.Call(e.Editor, protocol.List, protocol.Empty{}).Sessions
	if len(listed) != 1 || !listed[0].External || listed[0].Running || listed[0].Stale {
		t.Errorf("listed: %+v", listed)
	}
	if review := session.Close(0).Review; len(review) != 1 || filepath.Base(review[0].Path) != "Makefile" {
		t.Errorf("the review: %+v", review)
	}
	if listed := harness.Call(e.Editor, protocol.List, protocol.Empty{}).Sessions; len(listed) != 0 {
		t.Errorf("listed after it was closed: %+v", listed)
	}

	// The controls: without a window, and with one that is gone.
	_ = e.HangUp()
	for name, socket := range map[string]string{"no window": "", "a dead one": e.Hello.Window} {
		if out := w.run(socket, w.trespass()); !strings.Contains(out, "refused by the sandbox") {
			t.Errorf("%s: %q", name, out)
		}
		w.mustBeConfined(name)
	}
	if left, _ := filepath.Glob(filepath.Dir(e.Hello.Window)); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

// A terminal is in the window as long as it lives. It is stale if the settings
// change.
func TestWindow_Terminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	e := w.window(harness.Defaults(nil), false)
	terminal := w.command(w.link("bash"), "--norc", "-i")
	terminal.Env = append(terminal.Env, "TERM=xterm", "SANDBOX_WINDOW="+e.Hello.Window)
	p := harness.StartTerminal(t, terminal)
	shell := e.shells(t, 1)[0]
	if shell.Kind != protocol.Terminal || shell.ShellPID != terminal.Process.Pid {
		t.Errorf("the session: %+v", shell)
	}
	if _, err := harness.Try(e.Editor, protocol.Close, protocol.CloseParams{SessionID: shell.SessionID}); err == nil {
		t.Error("the editor ended a shell that it did not start")
	}
	p.Type(w.trespass() + "\n")
	harness.Eventually(t, "a denial while the terminal runs", func() bool {
		return len(e.denials.Of(shell.SessionID)) > 0
	})
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{"allow_network": false}))
	harness.Eventually(t, "the session is stale", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.stale) == 1 && e.stale[0] == shell.SessionID
	})
	if listed := harness.Call(e.Editor, protocol.List, protocol.Empty{}).Sessions; !listed[0].Stale ||
		!listed[0].Running {
		t.Errorf("listed: %+v", listed)
	}
	// Who is killed says nothing of its end.
	if err := terminal.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	exit := e.Session(protocol.SpawnResult{SessionID: shell.SessionID}).Exit()
	if exit.ExitCode != nil || exit.Signal != nil {
		t.Errorf("the end of a shell that was killed: %+v", exit)
	}
}

// The window answers the questions of shells. Without its answer nothing opens.
func TestWindow_Question(t *testing.T) {
	t.Parallel()
	settings := harness.Defaults(harness.Sandbox{"on_denied": "ask"})
	w := newWorld(t, settings)
	e := w.window(settings, true)
	secret := filepath.Join(w.Outside, "data")
	harness.Write(t, secret, "content\n")
	for decision, want := range map[protocol.Decision]string{
		protocol.DecisionDeny: "", protocol.DecisionOnce: "content\n", "anything": "",
	} {
		e.decides(decision)
		out := w.run(e.Hello.Window, "cat '"+secret+"' 2> /dev/null")
		if out != want {
			t.Errorf("%s: %q", decision, out)
		}
		if asked := e.questions(); len(asked) != 1 || asked[0].Target != secret {
			t.Errorf("%s: asked %+v", decision, asked)
		}
	}
	// What is written to the settings counts for the next shell.
	e.decides(protocol.DecisionUser)
	for range 2 {
		if out := w.run(e.Hello.Window, "cat '"+secret+"'"); out != "content\n" {
			t.Errorf("allowed for good: %q", out)
		}
	}
	if asked := e.questions(); len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
}

// If the window goes away, the question is asked on the terminal, as without a
// window.
func TestWindow_GoesAwayWithAQuestion(t *testing.T) {
	t.Parallel()
	settings := harness.Defaults(harness.Sandbox{"on_denied": "ask"})
	w := newWorld(t, settings)
	e := w.window(settings, true)
	secret := filepath.Join(w.Outside, "data")
	harness.Write(t, secret, "content\n")
	asked := e.unanswered(t)
	terminal := w.command(w.link("bash"), "-c", "cat '"+secret+"'")
	terminal.Env = append(terminal.Env, "TERM=xterm", "SANDBOX_WINDOW="+e.Hello.Window)
	p := harness.StartTerminal(t, terminal)
	<-asked
	_ = e.HangUp()
	p.Await("Enter denies")
	p.Type("once\n")
	p.Await("content")
	if status := p.Status(); status != 0 {
		t.Errorf("status %d", status)
	}
}

// A session can neither connect to the window's socket nor forge a report, even
// if it knows the path.
func TestWindow_IsOutOfReach(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "python3")
	w := newWorld(t, harness.Defaults(nil))
	e := w.window(harness.Defaults(nil), false)
	started, err := json.Marshal(map[string]any{"started": map[string]any{
		"kind": "tool", "pid": os.Getpid(), "argv": []string{"forged"}, "cwd": w.Project, "projectDir": w.Project,
	}})
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(w.Project, "forge.py")
	harness.Write(t, script, `import os, socket, sys
directory = os.open(os.path.dirname(sys.argv[1]), os.O_PATH) # the path may be too long
s = socket.socket(socket.AF_UNIX)
s.connect("/proc/self/fd/%d/window" % directory)
s.sendall(sys.argv[2].encode() + b"\n")
print("hello", len(s.recv(100)) > 0)
`)
	forge := func(name string, args ...string) string {
		args = append(args, "python3", script, e.Hello.Window, string(started))
		out, _ := w.command(name, args...).CombinedOutput()
		return string(out)
	}
	if out := forge("env"); !strings.Contains(out, "hello True") { // the control
		t.Fatalf("outside: %s", out)
	}
	if got := e.shells(t, 1)[0].Argv[0]; got != "forged" {
		t.Fatalf("outside: %s", got)
	}
	for name, args := range map[string][]string{
		"a session of a shell": {w.link("bash"), "-c", `"$@"`, "bash"},
		"a session of exec":    {harness.Binary(t), "exec", "--"},
	} {
		if out := forge(args[0], args[1:]...); strings.Contains(out, "hello") {
			t.Errorf("%s: %s", name, out)
		}
	}
	line := "python3 " + script + " '" + e.Hello.Window + "' '" + string(started) + "'"
	if out, _ := e.Tool(line); strings.Contains(out, "hello") {
		t.Errorf("a session of the editor: %s", out)
	}
	// Where the settings grant the socket's directory, too: the sidecar sees who
	// connects, or the mediator refuses it.
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
		"additional_read_write_paths": []string{w.Home},
	}))
	if out := forge(w.link("bash"), "-c", `"$@"`, "bash"); strings.Contains(out, "hello") {
		t.Errorf("a session that may write the home: %s", out)
	}
	if got := e.shells(t, 1); len(got) != 1 {
		t.Errorf("reported: %+v", got)
	}
}

// What a process of the user sends in a shell's name is shown as text, about no
// other session. Who breaks the rules is cut off.
func TestWindow_Liar(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	e := w.window(harness.Defaults(nil), true)
	own := e.Shell()
	connect := func(lines ...string) (closed <-chan struct{}) {
		t.Helper()
		// The path may be too long for the address of a socket.
		dir, err := os.Open(filepath.Dir(e.Hello.Window))
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		c, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/window", dir.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		// In one call: the sidecar may close the connection behind any line.
		if _, err := io.WriteString(c, strings.Join(lines, "\n")+"\n"); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(io.Discard, c)
		}()
		return done
	}
	start := `{"started":{"kind":"tool","pid":1,"argv":["x"],"cwd":"/","projectDir":"/","sandbox":` +
		`{"applied":true,"status":"full","protections":{},"warnings":["a\nb"]}}}`
	denied := `{"denied":{"sessionId":"` + own.SessionID +
		`","message":"a\u001b[31m\nb","access":"read","target":"/t",` +
		`"count":1,"line":"e\nf","detail":"g\nh","hint":"i\nj",` +
		`"suggestion":{"setting":"x","value":[],"message":"c\nd","instruction":"k\nl"}}}`
	for name, lines := range map[string][]string{
		"no kind":            {`{"started":{"cwd":"/","projectDir":"/"}}`},
		"a relative project": {`{"started":{"kind":"tool","cwd":"/","projectDir":"x"}}`},
	} {
		<-connect(lines...)
		if got := e.shells(t, 0); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	closed := connect(start, denied)
	shell := e.shells(t, 1)[0]
	if shell.SessionID == own.SessionID || shell.Sandbox.Warnings[0] != `a\nb` {
		t.Errorf("started: %+v", shell)
	}
	harness.Eventually(t, "the denial", func() bool { return len(e.denials.Of(shell.SessionID)) == 1 })
	got := e.denials.Of(shell.SessionID)[0]
	shown := []string{got.Message, got.Line, got.Detail, got.Hint, got.Suggestion.Message, got.Suggestion.Instruction}
	if !slices.Equal(shown, []string{`a\x1b[31m\nb`, `e\nf`, `g\nh`, `i\nj`, `c\nd`, `k\nl`}) {
		t.Errorf("denied: %q", shown)
	}
	if got := e.denials.Of(own.SessionID); len(got) > 0 {
		t.Errorf("forged for another session: %+v", got)
	}
	select {
	case <-closed:
		t.Error("it was cut off")
	default:
	}
	// Questions that nobody answers, one withdrawn, and one number twice.
	asked, withdrawn := e.unanswered(t), make(chan string, 1000)
	client.On(e.Client, protocol.CancelRequest, func(p protocol.CancelParams) { withdrawn <- string(p.ID) })
	ask := func(id int) string { return fmt.Sprintf(`{"ask":{"id":%d,"question":{"message":"?"}}}`, id) }
	connect(start, ask(1))
	if q := <-asked; q.Message != "?" || q.SessionID != e.shells(t, 2)[1].SessionID {
		t.Errorf("asked: %+v", q)
	}
	connect(start, ask(1), `{"withdraw":1}`)
	<-withdrawn
	many := []string{start}
	for id := range 100 {
		many = append(many, ask(id))
	}
	for name, lines := range map[string][]string{
		"one number twice": {start, ask(1), ask(1)}, "many questions": many, "started twice": {start, start},
		"nothing known": {start, `{}`},
	} {
		select {
		case <-connect(lines...):
		case <-deadline.After(harness.Timeout):
			t.Errorf("%s: it goes on", name)
		}
	}
	// The editor's own sessions go on.
	own.Type("echo still | tr s S\n")
	own.Await("Still")
}
