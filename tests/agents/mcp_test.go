//go:build unix

package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// agent is an agent with the official client of MCP.
type agent struct {
	*harness.World
	t       *testing.T
	session *mcp.ClientSession
	server  *exec.Cmd
}

func newAgent(t *testing.T, settings string) *agent {
	t.Helper()
	return newAgentUnder(t, settings, func(*exec.Cmd) {})
}

// newAgentUnder starts the server as wrap changes its command.
func newAgentUnder(t *testing.T, settings string, wrap func(*exec.Cmd)) *agent {
	t.Helper()
	harness.RequireSandbox(t)
	a := &agent{World: harness.NewWorldOutsideDefaults(t), t: t}
	harness.Write(t, a.UserSettings(), settings)
	a.server = exec.Command(harness.BinaryWithMCP(t), "mcp")
	a.server.Dir, a.server.Env = a.Project, harness.Environ(a.World)
	a.server.Stderr = t.Output()
	wrap(a.server)
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	var err error
	a.session, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: a.server}, nil)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { a.session.Close() })
	return a
}

// result is the structure of a result of run, output and stop.
type result struct {
	Ended      bool   `json:"ended"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal"`
	Background int    `json:"background"`
	Output     string `json:"output"`
	Stderr     string `json:"stderr"`
	Truncated  bool   `json:"truncated"`
	TimedOut   bool   `json:"timed_out"`
	Limits     []string
	Refused    []struct {
		Access, Target, Setting, Value string
		ToAllow                        string `json:"to_allow"`
	} `json:"refused"`
}

// call calls a tool. text is the result for people.
func (a *agent) call(ctx context.Context, tool string, arguments map[string]any, into any) (text string, err error) {
	got, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", err
	}
	for _, content := range got.Content {
		text += content.(*mcp.TextContent).Text
	}
	if got.IsError {
		return text, fmt.Errorf("the tool failed: %s", text)
	}
	data, err := json.Marshal(got.StructuredContent)
	if err != nil {
		return text, err
	}
	return text, json.Unmarshal(data, into)
}

func (a *agent) run(arguments map[string]any) (result, string) {
	a.t.Helper()
	var r result
	text, err := a.call(a.t.Context(), "run", arguments, &r)
	if err != nil {
		a.t.Fatalf("run %v: %v", arguments, err)
	}
	return r, text
}

func TestMCP_ListsItsTools(t *testing.T) {
	t.Parallel()
	a := newAgent(t, harness.Defaults(nil))
	tools, err := a.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" || tool.InputSchema == nil || tool.OutputSchema == nil {
			t.Errorf("%s: a description or a schema is missing", tool.Name)
		}
	}
	if got := strings.Join(names, " "); got != "explain input output policy run start stop" {
		t.Errorf("tools: %s", got)
	}
}

// A sandbox that the user has switched off for terminals and tools still
// confines what is said to be sandboxed. The control writes the same file.
func TestMCP_CommandsAreConfinedAndSayWhatWasRefused(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{"on": harness.Defaults(nil), "off": harness.Off()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, settings)
			file := filepath.Join(a.Outside, "file")
			line := "echo in > inside; echo out > " + harness.Quote(file)
			control := exec.Command("sh", "-c", line)
			control.Dir = a.Project
			if err := control.Run(); err != nil || harness.Read(t, file) != "out\n" {
				t.Fatalf("control: %v", err)
			}
			harness.Must(t, os.Remove(file))
			harness.Must(t, os.Remove(filepath.Join(a.Project, "inside")))
			got, text := a.run(map[string]any{"command": line})
			if _, err := os.Stat(file); err == nil {
				t.Error("a command wrote outside of the project")
			}
			if harness.Read(t, filepath.Join(a.Project, "inside")) != "in\n" || got.ExitCode == 0 || !got.Ended {
				t.Errorf("%+v", got)
			}
			if len(got.Refused) != 1 || got.Refused[0].Setting != "additional_read_write_paths" ||
				!strings.HasPrefix(file, got.Refused[0].Value) || got.Refused[0].ToAllow == "" {
				t.Fatalf("refused: %+v", got.Refused)
			}
			for _, want := range []string{"the sandbox refused: ", "only the user can allow it: add "} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing in the text: %s", want, text)
				}
			}
		})
	}
}

func TestMCP_ReportsHowACommandEnds(t *testing.T) {
	t.Parallel()
	a := newAgent(t, harness.Defaults(nil))
	if got, _ := a.run(map[string]any{"command": "echo out; echo err >&2; exit 3"}); got.ExitCode != 3 ||
		got.Output != "out\nerr\n" {
		t.Errorf("exit 3: %+v", got)
	}
	if got, _ := a.run(map[string]any{"command": "kill -TERM $$"}); got.ExitCode != 143 || got.Signal != "SIGTERM" {
		t.Errorf("SIGTERM: %+v", got)
	}
	slow := map[string]any{"command": "pwd; sleep 1000 & sleep 1000", "timeout_seconds": 1}
	if got, text := a.run(slow); !got.TimedOut || got.Output != a.Project+"\n" ||
		!strings.Contains(text, "its time was over") {
		t.Errorf("a timeout: %+v", got)
	}
	harness.Must(t, os.Mkdir(filepath.Join(a.Project, "sub"), 0o777))
	got, _ := a.run(map[string]any{"command": "pwd", "cwd": "sub"})
	if got.Output != filepath.Join(a.Project, "sub")+"\n" {
		t.Errorf("in a directory: %+v", got)
	}
	got, _ = a.run(map[string]any{"command": `printf '\033]0;x\007\377'; cat`})
	if got.Output != `\x1b]0;x\x07`+"\ufffd" {
		t.Errorf("control characters: %q", got.Output)
	}
	got, _ = a.run(map[string]any{"command": "echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo last"})
	if !got.Truncated || len(got.Output) > 70<<10 || !strings.HasPrefix(got.Output, "first\n") ||
		!strings.HasSuffix(got.Output, "last\n") {
		t.Errorf("10 MB of output: %d bytes, truncated: %t", len(got.Output), got.Truncated)
	}
}

// A command reads what it is given, and its errors are apart if the agent asks for
// that. One that runs has no exit status.
func TestMCP_Input(t *testing.T) {
	t.Parallel()
	a := newAgent(t, harness.Defaults(nil))
	line := "tr a-z A-Z; echo error >&2"
	apart := map[string]any{"command": line, "stdin": "given", "separate_stderr": true}
	if got, _ := a.run(apart); got.Output != "GIVEN" || got.Stderr != "error\n" {
		t.Errorf("run: %+v", got)
	}
	if got, _ := a.run(map[string]any{"command": line}); got.Output != "error\n" || got.Stderr != "" {
		t.Errorf("control: %+v", got)
	}
	var started struct{ ID string }
	begin := map[string]any{"command": "while read -r x; do echo got $x; done", "stdin": true}
	if _, err := a.call(t.Context(), "start", begin, &started); err != nil {
		t.Fatal(err)
	}
	var given, got map[string]any
	give := func(arguments map[string]any) error {
		arguments["id"] = started.ID
		_, err := a.call(t.Context(), "input", arguments, &given)
		return err
	}
	read := func(seconds int) (output string) {
		got = nil
		_, err := a.call(t.Context(), "output", map[string]any{"id": started.ID, "wait_seconds": seconds}, &got)
		harness.Must(t, err)
		output, _ = got["output"].(string)
		return output
	}
	harness.Must(t, give(map[string]any{"text": "one\n"}))
	printed := ""
	harness.Eventually(t, "the command has read a line", func() bool {
		printed += read(0)
		return printed == "got one\n"
	})
	if _, has := got["exit_code"]; has || got["ended"] != false {
		t.Errorf("while it runs: %v", got)
	}
	harness.Must(t, give(map[string]any{"text": "two\n", "close_stdin": true}))
	if err := give(map[string]any{"text": "dropped\n"}); err == nil {
		t.Errorf("after close_stdin more was taken: %v", given)
	}
	if output := read(60); output != "got two\n" || got["exit_code"] != 0. {
		t.Errorf("at its end: %v", got)
	}
	if err := give(map[string]any{"text": "three\n"}); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("after its end: %v", err)
	}
}

// An agent learns which limit its command has reached: it would try again
// otherwise. Nothing limits root's processes.
func TestMCP_SaysWhichLimitWasReached(t *testing.T) {
	t.Parallel()
	a := newAgent(t, harness.Defaults(harness.Sandbox{"limits": map[string]any{"processes": 20}}))
	able := os.Geteuid() != 0 && harness.Namespaces(t)
	for _, test := range []struct {
		processes int
		reached   bool
	}{{2, false}, {40, true}} {
		line := fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done", test.processes)
		got, text := a.run(map[string]any{"command": line})
		said := len(got.Limits) == 1 && strings.Contains(text, "limits.processes")
		if said != (test.reached && able) {
			t.Errorf("%d processes: %+v\n%s", test.processes, got, text)
		}
	}
}

func TestMCP_CancellationEndsTheCommand(t *testing.T) {
	t.Parallel()
	harness.Procfs(t)
	a := newAgent(t, harness.Defaults(nil))
	ctx, cancel := context.WithCancel(t.Context())
	seconds := fmt.Sprintf("7%d", os.Getpid())
	failed := make(chan error, 1)
	go func() {
		var r result
		_, err := a.call(ctx, "run", map[string]any{"command": "touch begun; sleep " + seconds}, &r)
		failed <- err
	}()
	harness.Eventually(t, "the command runs", func() bool {
		_, err := os.Stat(filepath.Join(a.Project, "begun"))
		return err == nil && len(harness.Find("sleep\x00"+seconds))+len(harness.Find("sleep "+seconds)) > 0
	})
	cancel()
	if err := <-failed; err == nil {
		t.Error("a call that was cancelled succeeded")
	}
	harness.Eventually(t, "the command has ended", func() bool {
		return len(harness.Find("sleep\x00"+seconds))+len(harness.Find("sleep "+seconds)) == 0
	})
	if got, _ := a.run(map[string]any{"command": "echo on"}); got.Output != "on\n" {
		t.Errorf("after the cancellation: %+v", got)
	}
}

// 100 calls at once all succeed, and at most eight commands run at a time.
func TestMCP_ManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t, harness.Defaults(nil))
	const line = `mkdir -p now && touch now/$$ && ls now | wc -l >> most; sleep 0.05; rm now/$$; echo done`
	var calls sync.WaitGroup
	for i := range 100 {
		calls.Go(func() {
			var r result
			if _, err := a.call(t.Context(), "run", map[string]any{"command": line}, &r); err != nil ||
				r.Output != "done\n" {
				t.Errorf("call %d: %+v, %v", i, r, err)
			}
		})
	}
	calls.Wait()
	most := 0
	counts := strings.Fields(harness.Read(t, filepath.Join(a.Project, "most")))
	for _, text := range counts {
		n := 0
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	if len(counts) != 100 || most > 8 || most < 2 {
		t.Errorf("%d commands ran, at most %d at once; want 100, and 2 to 8", len(counts), most)
	}
}

func TestMCP_StartedCommands(t *testing.T) {
	t.Parallel()
	harness.Procfs(t)
	a := newAgent(t, harness.Defaults(nil))
	seconds := fmt.Sprintf("8%d", os.Getpid())
	var started struct{ ID string }
	server := map[string]any{"command": "echo up; sleep " + seconds}
	if _, err := a.call(t.Context(), "start", server, &started); err != nil {
		t.Fatal(err)
	}
	printed := ""
	harness.Eventually(t, "the output arrives", func() bool {
		var got result
		if _, err := a.call(t.Context(), "output", map[string]any{"id": started.ID}, &got); err != nil || got.Ended {
			t.Fatalf("%+v, %v", got, err)
		}
		printed += got.Output
		return printed == "up\n"
	})
	var stopped result
	if _, err := a.call(t.Context(), "stop", map[string]any{"id": started.ID}, &stopped); err != nil ||
		!stopped.Ended ||
		stopped.Signal != "SIGKILL" {
		t.Errorf("stop: %+v, %v", stopped, err)
	}
	if _, err := a.call(t.Context(), "output", map[string]any{"id": started.ID}, &stopped); err == nil {
		t.Error("a command that was stopped is still known")
	}
	if _, err := a.call(t.Context(), "start", map[string]any{"command": "exec sleep " + seconds},
		&started); err != nil {
		t.Fatal(err)
	}
	harness.Must(t, a.session.Close())
	harness.Eventually(t, "commands end with the connection", func() bool { return len(harness.Find(seconds)) == 0 })
}

func TestMCP_Explains(t *testing.T) {
	t.Parallel()
	a := newAgent(t, harness.Defaults(nil))
	var got struct {
		Allowed bool
		Setting string
		ToAllow string `json:"to_allow"`
	}
	ask := func(access, target string) {
		t.Helper()
		got.Setting, got.ToAllow = "", ""
		if _, err := a.call(t.Context(), "explain", map[string]any{"access": access, "target": target},
			&got); err != nil {
			t.Fatal(err)
		}
	}
	if ask("write", "file"); !got.Allowed {
		t.Errorf("in the project: %+v", got)
	}
	if ask("write", filepath.Join(a.Outside, "file")); got.Allowed || got.Setting == "" || got.ToAllow == "" {
		t.Errorf("outside: %+v", got)
	}
	// What is secret or acted on is named to no model, nor where a link leads.
	secret := filepath.Join(a.Home, ".ssh", "id_of_work")
	harness.Write(t, secret, "key")
	link := filepath.Join(a.Outside, "link")
	harness.Must(t, os.Symlink(secret, link))
	for _, try := range [][2]string{{"read", link}, {"write", filepath.Join(a.Home, ".bashrc")}} {
		got.Allowed, got.Setting, got.ToAllow = true, "", ""
		text, err := a.call(t.Context(), "explain", map[string]any{"access": try[0], "target": try[1]}, &got)
		if err != nil || got.Allowed || got.Setting != "" || got.ToAllow != "" ||
			strings.Contains(text, "id_of_work") || !strings.Contains(text, "careful: ") {
			t.Errorf("%s %s: %+v, %v: %s", try[0], try[1], got, err, text)
		}
	}
	var policy struct {
		Project   string
		Sandboxed bool
		Write     []string
	}
	text, err := a.call(t.Context(), "policy", nil, &policy)
	if err != nil || policy.Project != a.Project || !policy.Sandboxed || len(policy.Write) == 0 ||
		!strings.Contains(text, "may be written: ") {
		t.Errorf("policy: %+v, %v: %s", policy, err, text)
	}
}

// Ubuntu and many containers refuse namespaces. Commands run there, confined as
// far as the machine can, also if the settings ask for less.
func TestMCP_RunsWithoutNamespaces(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{
		harness.Defaults(nil), harness.Defaults(harness.Sandbox{"on_unavailable": "warn"}), harness.Off(),
	} {
		a := newAgentUnder(t, settings, harness.WithoutNamespaces(t))
		harness.Write(t, a.OutsidePath("secret"), "hunter2")
		got, text := a.run(map[string]any{"command": "cat " + harness.Quote(a.OutsidePath("secret")) + "; echo on"})
		if strings.Contains(got.Output, "hunter2") || !strings.HasSuffix(got.Output, "on\n") {
			t.Errorf("%+v\n%s", got, text)
		}
	}
}

func TestMCP_RefusesWrongArguments(t *testing.T) {
	t.Parallel()
	a := newAgent(t, harness.Defaults(nil))
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"run", map[string]any{"command": 5}, "command"},
		{"run", map[string]any{"command": nil}, "command"},
		{"run", map[string]any{}, "command"},
		{"run", map[string]any{"command": ""}, "found an empty one"},
		{"run", map[string]any{"command": "true", "sandbox": false}, "sandbox"},
		{"run", map[string]any{"command": "true", "timeout_seconds": "1"}, "timeout_seconds"},
		{"run", map[string]any{"command": "true", "timeout_seconds": -1}, "timeout_seconds"},
		{"run", map[string]any{"command": "true", "timeout_seconds": 1 << 40}, "timeout_seconds"},
		{"run", map[string]any{"command": "true", "max_output_bytes": -1}, "max_output_bytes"},
		{"run", map[string]any{"command": "true", "max_output_bytes": 1 << 30}, "max_output_bytes"},
		{"run", map[string]any{"command": "true", "stdin": true}, "stdin"},
		{"start", map[string]any{"command": "true", "timeout_seconds": 3601}, "timeout_seconds"},
		{"start", map[string]any{"command": "true", "max_output_bytes": 1}, "max_output_bytes"},
		{"input", map[string]any{"id": "command-1", "text": "x"}, "no command"},
		{"run", map[string]any{"command": "echo \x00"}, "NUL"},
		{"run", map[string]any{"command": "true", "cwd": "/nowhere"}, "/nowhere"},
		{"explain", map[string]any{"access": "all", "target": "/"}, "access"},
		{"output", map[string]any{"id": "command-1"}, "no command"},
		{"stop", map[string]any{"id": "../1"}, "no command"},
	} {
		var r any
		_, err := a.call(t.Context(), c.tool, c.arguments, &r)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v, want an error with %q", c.tool, c.arguments, err, c.want)
		}
	}
	var r any
	if _, err := a.call(t.Context(), "shell", nil, &r); err == nil {
		t.Error("a tool that does not exist was called")
	}
	if got, _ := a.run(map[string]any{"command": "echo on"}); got.Output != "on\n" {
		t.Errorf("after all of them: %+v", got)
	}
}

// Nothing runs while a settings file is wrong; once it is fixed, commands do.
func TestMCP_AWrongSettingRefusesCommands(t *testing.T) {
	t.Parallel()
	a := newAgent(t, `{"terminal": {"sandbox": {"enabled": "yes"}}}`)
	var r result
	if _, err := a.call(t.Context(), "run", map[string]any{"command": "touch made"}, &r); err == nil ||
		!strings.Contains(err.Error(), "fix a settings file") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(a.Project, "made")); err == nil {
		t.Error("the command ran")
	}
	harness.Write(t, a.UserSettings(), harness.Defaults(nil))
	harness.Eventually(t, "commands run again", func() bool {
		_, err := a.call(t.Context(), "run", map[string]any{"command": "touch made"}, &r)
		return err == nil && r.ExitCode == 0
	})
}
