//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// fakeSidecar answers requests by functions. It keeps the order of their
// methods.
type fakeSidecar struct {
	answers map[string]func() (any, error)

	mu    sync.Mutex // guards the field below
	asked []string
}

func (f *fakeSidecar) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	if req.Notif {
		return
	}
	f.mu.Lock()
	f.asked = append(f.asked, req.Method)
	f.mu.Unlock()
	go func() {
		var result any = protocol.Empty{}
		var err error
		if answer := f.answers[req.Method]; answer != nil {
			result, err = answer()
		}
		if err != nil {
			_ = conn.ReplyWithError(ctx, req.ID, &jsonrpc2.Error{
				Code: int64(protocol.CodeSpawnFailed), Message: err.Error(),
			})
			return
		}
		_ = conn.Reply(ctx, req.ID, result)
	}()
}

func (f *fakeSidecar) methods() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// pair is both pipes as one stream.
type pair struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pair) Close() error { return errors.Join(p.ReadCloser.Close(), p.WriteCloser.Close()) }

func connect(t *testing.T, fake *fakeSidecar) *sidecar {
	t.Helper()
	if fake.answers == nil {
		fake.answers = map[string]func() (any, error){}
	}
	fake.answers[protocol.Initialize.Method] = func() (any, error) {
		return protocol.InitializeResult{ProtocolVersion: protocol.Version}, nil
	}
	fake.answers[protocol.PolicyGet.Method] = func() (any, error) {
		return protocol.PolicyGetResult{Policy: protocol.Policy{Project: "/real"}}, nil
	}
	fromFake, toClient := io.Pipe()
	fromClient, toFake := io.Pipe()
	stream := jsonrpc2.NewBufferedStream(pair{fromClient, toClient}, jsonrpc2.VSCodeObjectCodec{})
	conn := jsonrpc2.NewConn(context.Background(), stream, fake)
	c := client.New(fromFake, toFake)
	t.Cleanup(func() {
		_ = c.HangUp()
		_ = conn.Close()
	})
	s, err := newSidecar(t.Context(), c, Options{Project: "/project", Kind: protocol.Tool})
	if err != nil {
		t.Fatal(err)
	}
	if s.project != "/project" {
		t.Errorf("project %q", s.project)
	}
	return s
}

// A call that is cancelled during the start of its command leaves no session,
// even if the sidecar admits the request to close it before the start.
func TestStart_CancelledLeavesNoSession(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 2)
	asked := make(chan struct{})
	fake := &fakeSidecar{}
	fake.answers = map[string]func() (any, error){
		protocol.Spawn.Method: func() (any, error) {
			close(asked)
			<-closed
			return protocol.SpawnResult{Sandbox: protocol.SandboxReport{Applied: true}}, nil
		},
		protocol.Close.Method: func() (any, error) {
			closed <- struct{}{}
			return nil, errors.New("not found")
		},
	}
	s := connect(t, fake)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if c, err := s.start(ctx, order{line: "true", cwd: "/"}); c != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", c, err)
	}
	want := []string{"terminal/spawn", "terminal/close", "terminal/close"}
	if got := fake.methods()[2:]; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(s.commands) != 0 {
		t.Errorf("%d commands are kept", len(s.commands))
	}
}

// Nothing goes on that the sidecar has not confined, whatever its flags were.
func TestStart_RefusesWhatIsNotConfined(t *testing.T) {
	t.Parallel()
	fake := &fakeSidecar{}
	s := connect(t, fake)
	if c, err := s.start(t.Context(), order{line: "true", cwd: "/"}); c != nil || !errors.Is(err, errOff) {
		t.Errorf("%v, %v", c, err)
	}
	if got := fake.methods()[2:]; !slices.Equal(got, []string{"terminal/spawn", "terminal/close"}) {
		t.Errorf("got %q", got)
	}
}

// After close_stdin the sidecar drops what else is given, without an answer. So it
// is refused.
func TestInput_EndsWithCloseStdin(t *testing.T) {
	t.Parallel()
	c := &command{takes: true, exit: make(chan struct{})}
	s := &Server{sidecar: connect(t, &fakeSidecar{}), started: started{commands: map[string]*command{"command-1": c}}}
	give := func(text string, last bool) (InputOutput, error) {
		return s.input(t.Context(), InputInput{ID: "command-1", Text: text, CloseStdin: last})
	}
	for _, last := range []bool{false, true} {
		if got, err := give("text", last); got.Bytes != 4 || err != nil {
			t.Errorf("last %t: %d B, %v", last, got.Bytes, err)
		}
	}
	for _, text := range []string{"more", ""} {
		if got, err := give(text, text == ""); got.Bytes != 0 || err == nil {
			t.Errorf("%q after the end: %d B, %v", text, got.Bytes, err)
		}
	}
}

// If the sidecar dies, a command has ended, and says so.
func TestCommand_EndsWithTheSidecar(t *testing.T) {
	t.Parallel()
	fake := &fakeSidecar{}
	fake.answers = map[string]func() (any, error){protocol.Spawn.Method: func() (any, error) {
		return protocol.SpawnResult{Sandbox: protocol.SandboxReport{Applied: true, Warnings: []string{"first"}}}, nil
	}}
	s := connect(t, fake)
	c, err := s.start(t.Context(), order{line: "true", cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.client.HangUp()
	<-c.ended
	if got := c.result(); got.Signal != "SIGKILL" || got.ExitCode == nil || *got.ExitCode != 137 ||
		!slices.Equal(got.Warnings, []string{"first", errGone.Error()}) {
		t.Errorf("%+v", got)
	}
	if again := s.unknown([]string{"first", "second"}); !slices.Equal(again, []string{"second"}) {
		t.Errorf("warnings given again: %q", again)
	}
	if _, err := s.start(t.Context(), order{line: "true", cwd: "/"}); !errors.Is(err, errGone) {
		t.Errorf("another command: %v", err)
	}
}

func TestReport_AddsRepetitions(t *testing.T) {
	t.Parallel()
	var r report
	entry := protocol.DeniedParams{
		Access: "write", Target: "/a\nb", Line: `write "/a\nb" by "sh"`, Count: 1,
		Process: &protocol.Process{PID: 1, Name: "sh"}, Suggestion: &protocol.Suggestion{
			Setting: "additional_read_write_paths", Value: protocol.RawJSON(`"/a"`), Message: "add …",
			Instruction: `add "/a" to it`,
		},
	}
	r.denied(entry)
	entry.Count, entry.Process, entry.Missed = 4, &protocol.Process{PID: 2, Name: "sh"}, 3
	r.denied(entry)
	r.denied(protocol.DeniedParams{Access: "protected_write", Line: "git's x", Detail: "x", Hint: "outside", Count: 1})
	r.denied(protocol.DeniedParams{Access: "protected_write", Line: "git's x", Detail: "x", Hint: "outside", Count: 1})
	r.denied(protocol.DeniedParams{
		Access: "connect", Target: "192.0.2.1:443", Line: "connect", Count: 1,
		Suggestion: &protocol.Suggestion{Setting: "allow_network", Value: protocol.RawJSON("true")},
	})
	r.denied(protocol.DeniedParams{Access: "protected_created", Target: "/p", Message: "It was created. Check it."})
	refused, more, changes := r.read()
	want := []Refused{
		{
			Access: "write", Target: `/a\nb`, Process: "sh", Count: 5, Message: `write "/a\nb" by "sh", 5 times`,
			Setting: "additional_read_write_paths", Value: "/a", ToAllow: `add "/a" to it`,
		},
		{Access: "protected_write", Count: 2, Message: "git's x (2 times)", Hint: "outside"},
		{
			Access: "connect", Target: "192.0.2.1:443", Count: 1, Message: "connect", Setting: "allow_network",
			Value: "true",
		},
	}
	if !slices.Equal(refused, want) || more != 3 || !slices.Equal(changes, []string{"It was created. Check it"}) {
		t.Errorf("%d more, %q:\ngot  %+v\nwant %+v", more, changes, refused, want)
	}
}

func TestReport_SaysWhichLimitsWereReached(t *testing.T) {
	t.Parallel()
	c := &command{ended: make(chan struct{}), exit: make(chan struct{})}
	c.report.reached(protocol.LimitParams{Setting: "limits.memory", Message: "The kernel ended the command."})
	close(c.ended)
	for _, got := range []Result{c.result(), c.state()} {
		text := RunOutput{Result: got}.text()
		if !slices.Equal(got.Limits, []string{"The kernel ended the command"}) ||
			!strings.Contains(text, "[limit: The kernel ended the command]") {
			t.Errorf("%+v: %s", got, text)
		}
	}
}

func TestReport_IsBounded(t *testing.T) {
	t.Parallel()
	var r report
	for i := range mostKnown + 5 {
		r.denied(protocol.DeniedParams{Access: "read", Target: fmt.Sprint(i), Line: "read", Count: 1})
		r.changed("line")
	}
	refused, more, changes := r.read()
	if len(refused) != mostRefused || more != mostKnown+5-mostRefused || len(changes) != mostKnown {
		t.Errorf("%d, %d more, %d changes", len(refused), more, len(changes))
	}
}

func TestTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "<nil>"},
		{context.Canceled, "context canceled"},
		{io.ErrUnexpectedEOF, errGone.Error()},
		{&client.Error{
			Code: protocol.CodeInvalidParams, Message: "params.access: expected read",
		}, "access: expected read"},
		{
			&client.Error{Code: protocol.CodeSettingsInvalid, Message: "read settings: /s:1:2: bad"},
			"not started: the user must fix a settings file first: /s:1:2: bad",
		},
		{
			&client.Error{Code: protocol.CodeSpawnFailed, Message: "no", Data: protocol.ErrorData{Hint: "do"}},
			"no; do",
		},
	} {
		if got := fmt.Sprint(told(c.err)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestNumberOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"SIGTERM": 15, "SIGKILL": 9, "SIG34": 34, "": 0} {
		if got := numberOf(name); got != want {
			t.Errorf("%q: %d", name, got)
		}
	}
}

// An output that was cut says so, and shows no control characters.
func TestOutput_KeepsBothEnds(t *testing.T) {
	t.Parallel()
	for _, half := range []int{1 << 10, usualOutput / 2} {
		o := output{half: half}
		for range 3 {
			_, _ = o.Write([]byte(strings.Repeat("a", half)))
		}
		_, _ = o.Write([]byte("\x1b]end\r\n"))
		got := o.take(false)
		if data, _ := json.Marshal(got.text); !got.truncated || !strings.HasSuffix(got.text, `\x1b]end`+"\n") ||
			!strings.Contains(got.text, " B left out]") || strings.Contains(string(data), `\u001b`) ||
			strings.Count(got.text, "a") < half || strings.Count(got.text, "a") > 2*half {
			t.Errorf("%t, %d bytes", got.truncated, len(got.text))
		}
		if left := o.take(false); left != (shown{}) {
			t.Errorf("%+v is left", left)
		}
	}
}

// Bytes that are no UTF-8 are replaced, and counted.
func TestOutput_CountsWhatItReplaces(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]shown{
		"\xff\xfea\xc3":           {text: "\ufffda\ufffd", replaced: 3},
		"\u00e4\ufffd \U0001f600": {text: "\u00e4\ufffd \U0001f600"},
	} {
		o := output{half: 100}
		_, _ = o.Write([]byte(data))
		if got := o.take(false); got != want {
			t.Errorf("%q: %+v, want %+v", data, got, want)
		}
	}
}

// A character is whole, wherever a call or the cut divides it.
func TestOutput_DividesNoCharacter(t *testing.T) {
	t.Parallel()
	o := output{half: 100}
	for _, part := range []struct {
		written, want string
		more          bool
	}{
		{"a\xc3", "a", true},
		{"\xa9b", "\u00e9b", true},
		{"\xf0\x9f\x98", "", true},
		{"\x80", "\U0001f600", true},
		{"\xc3", "", true},
		{"", "\ufffd", false},
	} {
		_, _ = o.Write([]byte(part.written))
		replaced := 0
		if !part.more {
			replaced = 1
		}
		if got := o.take(part.more); got != (shown{text: part.want, replaced: replaced}) {
			t.Errorf("%q: %+v", part.written, got)
		}
	}
	for odd := range 4 {
		o := output{half: 100}
		_, _ = o.Write([]byte(strings.Repeat("a", odd) + strings.Repeat("\U0001f600", 1000) + "b"))
		if got := o.take(false); !got.truncated || got.replaced != 0 || strings.Contains(got.text, "\ufffd") {
			t.Errorf("%d: %+v", odd, got)
		}
	}
}

// A command that runs has no exit status.
func TestResult_HasAStatusOnceItHasEnded(t *testing.T) {
	t.Parallel()
	c := &command{ended: make(chan struct{}), exit: make(chan struct{})}
	running, err := json.Marshal(c.state())
	if err != nil || strings.Contains(string(running), "exit_code") {
		t.Errorf("it runs: %s, %v", running, err)
	}
	c.exited(protocol.ExitedParams{ExitCode: new(0), TimedOut: true, Killed: 2})
	close(c.ended)
	ended, err := json.Marshal(c.state())
	if err != nil || !strings.Contains(string(ended), `"exit_code":0`) {
		t.Errorf("it has ended: %s, %v", ended, err)
	}
	text := RunOutput{Result: c.state(), Stderr: "error\n", Replaced: 3}.text()
	for _, want := range []string{
		"[standard error:]\nerror\n", "[ended: its time was over]", "killed at its end: 2]", "[3 B that are no UTF-8",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q: %s", want, text)
		}
	}
}
