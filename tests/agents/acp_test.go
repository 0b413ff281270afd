//go:build unix

package agents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// message is a message of ACP.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// editor is an editor that speaks ACP, and runs what an agent asks it to run. It
// reads as generously as any: each line, also what only a carriage return ends,
// and messages below others.
type editor struct {
	*harness.World
	t       *testing.T
	agent   *exec.Cmd
	in      io.WriteCloser
	log     bytes.Buffer // of the agent; to be read once it has ended
	ended   chan struct{}
	endedBy error
	allow   string // the option that the user chooses, if it is offered
	version int
	// approves: it answers questions at once, without its user.
	approves bool

	mu      sync.Mutex // guards the fields below, and writes
	changed sync.Cond
	lines   []string
	answers map[string]message
	asked   []json.RawMessage // parameters of session/request_permission
	next    int
}

// reads is how long a user takes to read a question: longer than nobody can.
const reads = 600 * time.Millisecond

// newEditor starts an agent below sandbox-sidecar acp, or alone.
func newEditor(t *testing.T, settings string, confined bool) *editor {
	t.Helper()
	harness.RequireSandbox(t)
	e := &editor{
		World: harness.NewWorldOutsideDefaults(t), t: t, version: 1,
		ended: make(chan struct{}), answers: map[string]message{},
	}
	e.changed.L = &e.mu
	harness.Write(t, e.UserSettings(), settings)
	victim := filepath.Join(e.Project, "agent")
	harness.Victim(t, "tests/agents/victim", victim)
	e.agent = exec.Command(victim)
	if confined {
		e.agent = exec.Command(harness.Binary(t), "acp", "--", victim, "--its-own-flag")
	}
	e.agent.Dir, e.agent.Env, e.agent.Stderr = e.Project, harness.Environ(e.World), &e.log
	var err error
	e.in, err = e.agent.StdinPipe()
	harness.Must(t, err)
	out, err := e.agent.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, e.agent.Start())
	go func() {
		defer close(e.ended)
		reader := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				break
			}
			e.reads(strings.TrimSuffix(line, "\n"))
		}
		e.endedBy = e.agent.Wait()
	}()
	t.Cleanup(func() {
		e.in.Close()
		<-e.ended
	})
	return e
}

// reads takes a line of the agent.
func (e *editor) reads(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.changed.Broadcast()
	if len(line) < 1<<16 {
		e.lines = append(e.lines, line)
	} else {
		e.lines = append(e.lines, fmt.Sprintf("%d bytes", len(line)))
	}
	parts := strings.Split(line, "\r")
	if len(parts) > 1 {
		parts = append(parts, line)
	}
	for _, part := range parts {
		var batch []message
		var one message
		if json.Unmarshal([]byte(part), &one) == nil {
			batch = append(batch, one)
		} else if json.Unmarshal([]byte(part), &batch) != nil {
			continue
		}
		for _, msg := range batch {
			e.acts(msg)
		}
		// Another parser takes the first of two equal keys.
		i, params := strings.Index(part, `"method":"terminal/create","method"`), strings.Index(part, `{"args"`)
		if i >= 0 && params > i {
			e.acts(message{Method: "terminal/create", Params: json.RawMessage(part[params:])})
		}
	}
}

// acts does what a message asks for.
func (e *editor) acts(msg message) {
	switch msg.Method {
	case "":
		e.answers[string(msg.ID)] = msg
	case "terminal/create":
		var params struct {
			Command string
			Args    []string
		}
		if json.NewDecoder(bytes.NewReader(msg.Params)).Decode(&params) == nil {
			_ = exec.Command(params.Command, params.Args...).Run()
		}
	case "fs/write_text_file":
		var params struct{ Path, Content string }
		if json.Unmarshal(msg.Params, &params) == nil {
			_ = os.WriteFile(params.Path, []byte(params.Content), 0o666)
		}
	case "session/request_permission":
		e.asked = append(e.asked, msg.Params)
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":%s}}`, msg.ID, e.outcome(msg.Params))
		if e.approves {
			e.writes(answer)
			return
		}
		time.AfterFunc(reads, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.writes(answer)
		})
	}
}

// outcome is the user's decision.
func (e *editor) outcome(params json.RawMessage) string {
	var question struct{ Options []struct{ OptionID string } }
	if json.Unmarshal(params, &question) == nil {
		for _, o := range question.Options {
			if o.OptionID == e.allow {
				return fmt.Sprintf(`{"outcome":"selected","optionId":%q}`, o.OptionID)
			}
		}
	}
	return `{"outcome":"cancelled"}`
}

func (e *editor) writes(line string) { _, _ = io.WriteString(e.in, line+"\n") }

// call sends a request, and waits for its answer.
func (e *editor) call(method, params string) message {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	id := fmt.Sprint(e.next)
	e.writes(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	for {
		if answer, found := e.answers[id]; found {
			return answer
		}
		e.changed.Wait()
	}
}

// begin opens a session.
func (e *editor) begin() {
	e.t.Helper()
	e.call("initialize", fmt.Sprintf(`{"protocolVersion":%d}`, e.version))
	e.call("session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, e.Project))
}

// prompt has the agent do something, and returns what it says.
func (e *editor) prompt(text string) string {
	e.t.Helper()
	data, err := json.Marshal(map[string]any{
		"sessionId": "one", "prompt": []any{map[string]any{"type": "text", "text": text}},
	})
	harness.Must(e.t, err)
	answer := e.call("session/prompt", string(data))
	var result struct{ Said string }
	if answer.Error != nil || json.Unmarshal(answer.Result, &result) != nil {
		e.t.Fatalf("prompt %q: %+v", text, answer)
	}
	return result.Said
}

func (e *editor) has(line string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.lines, line)
}

// Each of these makes an editor run a command or write a file, as the control
// proves. Behind the proxy none does.
func TestACP_NothingRunsOutside(t *testing.T) {
	t.Parallel()
	const method = "terminal/create"
	for name, form := range map[string]string{
		"plain":     `{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":PARAMS}`,
		"notice":    `{"jsonrpc":"2.0","method":"terminal/create","params":PARAMS}`,
		"escaped":   `{"jsonrpc":"2.0","id":7,"method":"\u0074erminal\/create","params":PARAMS}`,
		"batch":     `[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":PARAMS}]`,
		"twice":     `{"jsonrpc":"2.0","id":7,"method":"session/update","method":"terminal/create","params":PARAMS}`,
		"first":     `{"jsonrpc":"2.0","id":7,"method":"terminal/create","method":"session/update","params":PARAMS}`,
		"case":      `{"jsonrpc":"2.0","id":7,"METHOD":"terminal/create","params":PARAMS}`,
		"returns":   "{\"x\":\r{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"terminal/create\",\"params\":PARAMS}\r}",
		"two":       "{} x\rPLAIN",
		"file":      `{"jsonrpc":"2.0","id":7,"method":"fs/write_text_file","params":FILE}`,
		"blanks":    `   {  "jsonrpc" : "2.0", "id": 7, "method" : "terminal/create", "params" : PARAMS }   `,
		"nul":       `{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":PARAMS,"x\u0000":1}`,
		"its error": `{"jsonrpc":"2.0","id":7,"method":"terminal/create","params":PARAMS,"error":{"code":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, confined := range []bool{false, true} {
				e := newEditor(t, harness.Defaults(nil), confined)
				file := filepath.Join(e.Outside, "file")
				params, err := json.Marshal(map[string]any{"command": "touch", "args": []string{file}})
				harness.Must(t, err)
				line := strings.NewReplacer(
					"PLAIN", fmt.Sprintf(`{"jsonrpc":"2.0","id":8,"method":%q,"params":%s}`, method, params),
					"PARAMS", string(params), "FILE", fmt.Sprintf(`{"path":%q,"content":"x"}`, file),
				).Replace(form)
				e.begin()
				e.prompt("say " + line)
				_, err = os.Stat(file)
				if acted := err == nil; acted == confined {
					t.Errorf("behind the proxy: %t; the editor acted: %t", confined, acted)
				}
			}
		})
	}
}

// The agent itself is confined, whatever the settings say.
func TestACP_TheAgentIsConfined(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{harness.Defaults(nil), harness.Off()} {
		for _, confined := range []bool{false, true} {
			e := newEditor(t, settings, confined)
			e.begin()
			inside, outside := filepath.Join(e.Project, "file"), filepath.Join(e.Outside, "file")
			if said := e.prompt("write " + inside); said != "written" {
				t.Errorf("in the project: %s", said)
			}
			if said := e.prompt("write " + outside); (said == "written") == confined {
				t.Errorf("outside, behind the proxy: %t: %s", confined, said)
			}
		}
	}
}

// The user sees what was refused and which setting allows it; the agent gets it
// with the next prompt.
func TestACP_ReportsWhatWasRefused(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 2} {
		e := newEditor(t, harness.Defaults(nil), true)
		e.version = version
		e.begin()
		e.prompt("write " + filepath.Join(e.Outside, "file"))
		e.mu.Lock()
		shown := strings.Join(e.lines, "\n")
		e.mu.Unlock()
		for _, want := range []string{
			"agent_message_chunk", "The sandbox has refused something", "additional_read_write_paths",
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("version %d: the user does not see %q: %s", version, want, shown)
			}
		}
		if got := e.prompt("received"); !strings.Contains(got, "Note of the sandbox") ||
			!strings.Contains(got, "additional_read_write_paths") {
			t.Errorf("version %d: the agent does not know: %s", version, got)
		}
		if got := e.prompt("received"); strings.Count(got, "Note of the sandbox") != 1 {
			t.Errorf("version %d: the agent got it again: %s", version, got)
		}
	}
}

// With on_denied "ask" the editor's user is asked in the protocol's own way.
func TestACP_AsksByTheProtocol(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, version := range []int{1, 2} {
		for _, allow := range []string{"once", "session", "directory", "user", "deny", "everything", ""} {
			t.Run(fmt.Sprintf("version %d, %q", version, allow), func(t *testing.T) {
				t.Parallel()
				e := newEditor(t, harness.Defaults(harness.Sandbox{"on_denied": "ask"}), true)
				e.version, e.allow = version, allow
				e.begin()
				file := filepath.Join(e.Outside, "file")
				said := e.prompt("write " + file)
				want := slices.Contains([]string{"once", "session", "directory", "user"}, allow)
				if (said == "written") != want {
					t.Errorf("said %q", said)
				}
				if _, err := os.Stat(file); (err == nil) != want {
					t.Errorf("the file: %v", err)
				}
				if strings.Contains(harness.Read(t, e.UserSettings()),
					"additional_read_write_paths") != (allow == "user") {
					t.Errorf("the settings: %s", harness.Read(t, e.UserSettings()))
				}
				// The runtime of Go asks for files of the system, too.
				asked := slices.DeleteFunc(slices.Clone(e.asked), func(params json.RawMessage) bool {
					return !strings.Contains(string(params), file)
				})
				if len(asked) != 1 {
					t.Fatalf("asked %d times about the file: %s", len(asked), e.asked)
				}
				var question struct {
					SessionID, Title string
					ToolCall         *struct{ ToolCallID, Title string }
				}
				harness.Must(t, json.Unmarshal(asked[0], &question))
				title := question.Title
				if version == 1 && question.ToolCall != nil {
					title = question.ToolCall.Title
				}
				if question.SessionID != "one" || !strings.Contains(title, file) ||
					(question.ToolCall == nil) != (version == 2) {
					t.Errorf("the question: %s", asked[0])
				}
			})
		}
	}
}

// What the editor offers to do outside is not offered to the agent, and no way
// to sign in runs a command outside.
func TestACP_HidesWhatTheEditorOffers(t *testing.T) {
	t.Parallel()
	const offers = `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},` +
		`"terminal":true,"auth":{"terminal":true,"x":1},"elicitation":{"form":{}},"_meta":{"terminal-auth":true,"y":2}},` +
		`"capabilities":{"auth":{"terminal":{}}}}`
	for _, confined := range []bool{false, true} {
		e := newEditor(t, harness.Defaults(nil), confined)
		methods := string(e.call("initialize", offers).Result)
		e.call("session/new", `{}`)
		got := e.prompt("received")
		for _, hidden := range []string{`"terminal":true`, `"fs"`, `"terminal-auth"`, `"terminal":{}`} {
			if strings.Contains(got, hidden) == confined {
				t.Errorf("behind the proxy: %t; %s in %s", confined, hidden, got)
			}
		}
		for _, passed := range []string{`"x":1`, `"y":2`, `"elicitation":{"form":{}}`} {
			if !strings.Contains(got, passed) {
				t.Errorf("%s is missing in %s", passed, got)
			}
		}
		for _, command := range []string{`"terminal-auth"`, `"login"`, `"HOME"`} {
			if strings.Contains(methods, command) == confined {
				t.Errorf("behind the proxy: %t; %s in %s", confined, command, methods)
			}
		}
		if !strings.Contains(methods, `"other":1`) {
			t.Errorf("too much is left out: %s", methods)
		}
	}
}

// An editor that approves by itself what agents ask for allows nothing.
func TestACP_AnEditorThatApprovesByItself(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, approves := range []bool{false, true} {
		e := newEditor(t, harness.Defaults(harness.Sandbox{"on_denied": "ask"}), true)
		e.allow, e.approves = "user", approves
		e.begin()
		file := filepath.Join(e.Outside, "file")
		if said := e.prompt("write " + file); (said == "written") == approves {
			t.Errorf("approves by itself: %t; said %q", approves, said)
		}
		if strings.Contains(harness.Read(t, e.UserSettings()), "additional_read_write_paths") == approves {
			t.Errorf("approves by itself: %t; the settings: %s", approves, harness.Read(t, e.UserSettings()))
		}
	}
}

// What the proxy does not know passes, in both directions, as it was meant.
func TestACP_PassesEverythingElse(t *testing.T) {
	t.Parallel()
	e := newEditor(t, harness.Defaults(nil), true)
	e.begin()
	for line, passes := range map[string]string{
		`{"jsonrpc":"2.0","method":"_future/thing","params":{"b":1,"a":[ 1.0 , 1e300,"<\u003c\ud83d\ude00"]},"extra":{}}`: `{` +
			`"jsonrpc":"2.0","method":"_future/thing","params":{"b":1,"a":[1.0,1e300,"<<😀"]}}`,
		`{"jsonrpc":"2.0","id":"a/b","method":"elicitation/create","params":{"terminal/create":"fs/write_text_file"}}`: "",
	} {
		if passes == "" {
			passes = line
		}
		e.prompt("say " + line)
		if !e.has(passes) {
			t.Errorf("the editor did not get %s", passes)
		}
		e.mu.Lock()
		e.writes(line)
		e.mu.Unlock()
		if got := e.prompt("received"); !strings.Contains(got, passes+"\n") {
			t.Errorf("the agent did not get %s", passes)
		}
	}
	for _, line := range []string{
		`no JSON at all`, `[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","method":"y","params":{}}]`,
		`{"jsonrpc":"2.0","method":"x","params":{"a":1e400}}`,
	} {
		e.prompt("say " + line)
		if e.has(line) {
			t.Errorf("%s was passed on", line)
		}
	}
}

func TestACP_PassesLargeMessages(t *testing.T) {
	t.Parallel()
	const size = 60 << 20 // of 64 that a message may have
	e := newEditor(t, harness.Defaults(nil), true)
	e.begin()
	e.prompt(fmt.Sprintf("fill %d", size))
	const around = len(`{"jsonrpc":"2.0","method":"session/update","params":{"x":""}}`)
	if !e.has(fmt.Sprintf("%d bytes", size+around)) {
		t.Error("60 MiB did not reach the editor")
	}
	if got := e.prompt("count " + strings.Repeat("x", size)); got != fmt.Sprint(size) {
		t.Errorf("the agent got %s bytes", got)
	}
	const more = 65 << 20
	e.prompt(fmt.Sprintf("fill %d", more))
	if e.has(fmt.Sprintf("%d bytes", more+around)) {
		t.Error("65 MiB reached the editor")
	}
}

// An agent that dies leaves no request without an answer.
func TestACP_AnswersForAnAgentThatDies(t *testing.T) {
	t.Parallel()
	e := newEditor(t, harness.Defaults(nil), true)
	e.begin()
	answer := e.call("session/prompt", `{"sessionId":"one","prompt":[{"type":"text","text":"die 3"}]}`)
	if answer.Error == nil || !strings.Contains(answer.Error.Message, "the agent has ended: exit status 3") {
		t.Errorf("%+v", answer)
	}
	<-e.ended
	if status := e.agent.ProcessState.ExitCode(); status != 3 {
		t.Errorf("exit status %d, want the agent's: %v", status, e.endedBy)
	}
}

// An agent that does not end by itself ends with the editor.
func TestACP_EndsWithTheEditor(t *testing.T) {
	t.Parallel()
	harness.Procfs(t)
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	seconds := fmt.Sprintf("9%d", os.Getpid())
	command := exec.Command(harness.Binary(t), "acp", "--", "sh", "-c", "sleep "+seconds+" & sleep "+seconds)
	command.Dir, command.Env = w.Project, harness.Environ(w)
	in, err := command.StdinPipe()
	harness.Must(t, err)
	harness.Must(t, command.Start())
	harness.Eventually(t, "the agent runs", func() bool { return len(harness.Find(seconds)) > 2 })
	in.Close()
	_ = command.Wait()
	if left := harness.Find(seconds); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}
