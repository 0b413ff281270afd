//go:build linux

package explain

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// front is a way in which people and agents start sessions.
type front struct {
	name string
	kind protocol.Kind
	// confines: its sessions are confined, whatever the settings say.
	confines bool
	// agent: its sessions have the set of an agent, and the agent's program.
	agent bool
	// run runs the victim with some arguments in a session, and returns all that is
	// printed.
	run func(r *round, args []string) string
}

var fronts = []front{
	{name: "an editor's terminal", kind: protocol.Terminal, run: (*round).terminal},
	{name: "an editor's tool", kind: protocol.Tool, run: (*round).tool},
	{name: "an editor's tool on a pipe", kind: protocol.Tool, run: (*round).pipe},
	{name: "an editor's tool in a group", kind: protocol.Tool, run: (*round).inGroup},
	{name: "exec", kind: protocol.Terminal, run: (*round).exec},
	{name: "exec --sandbox", kind: protocol.Tool, confines: true, run: (*round).exec},
	{name: "exec --join", kind: protocol.Tool, run: (*round).join},
	{name: "mcp", kind: protocol.Tool, confines: true, run: (*round).mcp},
	{name: "acp", kind: protocol.Tool, confines: true, run: (*round).acp},
	{name: "agent", kind: protocol.Tool, confines: true, agent: true, run: (*round).asAgent},
	{name: "a shell's command", kind: protocol.Tool, run: (*round).shellCommand},
	{name: "a shell", kind: protocol.Terminal, run: (*round).shellTyped},
}

// flags are those of "explain" that fit the front.
func (r *round) flags() []string {
	flags := []string{"--kind", string(r.front.kind)}
	switch {
	case r.front.agent:
		flags = append(flags, r.agentFlags()...)
		return append(flags, "--agent", "claude")
	case r.front.confines:
		flags = append(flags, "--sandbox")
	}
	return flags
}

// agentFlags are those of "agent" and "explain" alike.
func (r *round) agentFlags() []string {
	if r.offline {
		return nil
	}
	return []string{"--network"}
}

// ask has all acts explained. A sidecar that serves an editor explains them as the
// command does with the flags that fit. Only the command is asked about an agent.
func (r *round) ask() {
	r.t.Helper()
	if r.front.agent {
		for _, a := range r.acts {
			r.answers = append(r.answers, r.explain(a))
		}
		return
	}
	for _, a := range r.acts {
		r.answers = append(r.answers, harness.Call(r.editor, protocol.PolicyExplain, protocol.PolicyExplainParams{
			ProjectDir: r.Project, Kind: r.front.kind, Access: a.access, Target: a.target,
		}))
	}
	const asked = 4 // of the command, which starts a program for each
	for range asked {
		i := r.random.IntN(len(r.acts))
		if got, want := r.explain(r.acts[i]), r.answers[i]; got.Allowed != want.Allowed || got.Reason != want.Reason {
			harness.Breach(r.t, "%s, %s: the command says %t (%s), the sidecar %t (%s)", r.front.name, r.acts[i],
				got.Allowed, got.Reason, want.Allowed, want.Reason)
		}
	}
}

// explain asks the command.
func (r *round) explain(a act) (answer protocol.PolicyExplainResult) {
	r.t.Helper()
	args := slices.Concat([]string{"explain", "--json"}, r.flags(), []string{string(a.access), a.target})
	output, err := r.command(r.program, args...).Output()
	if err != nil {
		r.t.Fatalf("%q: %v", args, err)
	}
	harness.Must(r.t, json.Unmarshal(output, &answer))
	return answer
}

// command is one that a user starts, who finds the agent.
func (r *round) command(name string, args ...string) *exec.Cmd {
	command := r.scene.command(name, args...)
	if r.front.agent {
		command.Env = append(command.Env, "PATH="+r.HomePath("bin")+":/usr/bin:/bin")
	}
	return command
}

// output runs a command that must succeed, and returns all that it prints.
func (r *round) output(command *exec.Cmd) string {
	r.t.Helper()
	output, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v: %s", r.front.name, err, output)
	}
	return string(output)
}

// line is the victim as a line of shell.
func (r *round) line(args []string) string {
	words := []string{"exec", harness.Quote(r.victim)}
	for _, arg := range args {
		words = append(words, harness.Quote(arg))
	}
	return strings.Join(words, " ")
}

// spawned is what a session of the editor prints.
func (r *round) spawned(params protocol.SpawnParams) string {
	r.t.Helper()
	params.Kind, params.Cwd, params.ProjectDir = r.front.kind, r.Project, r.Project
	session := r.editor.Spawn(params)
	exit := session.Exit()
	if exit.ExitCode == nil || *exit.ExitCode != 0 {
		r.t.Fatalf("%s: %+v: %s", r.front.name, exit, session.Output())
	}
	return session.Output()
}

// terminal has somebody type into the victim.
func (r *round) terminal(args []string) string {
	return r.spawned(protocol.SpawnParams{Shell: &protocol.Shell{Program: r.victim, Args: args}})
}

func (r *round) tool(args []string) string {
	return r.spawned(protocol.SpawnParams{Command: r.victim, Args: args})
}

func (r *round) pipe(args []string) string {
	return r.spawned(protocol.SpawnParams{Command: r.line(args), Pipe: true})
}

// sharing is the group of the editor's tools that share a sandbox.
const sharing = "explain"

func (r *round) inGroup(args []string) string {
	return r.spawned(protocol.SpawnParams{Command: r.victim, Args: args, Group: sharing})
}

// join runs the victim in the sandbox of a tool that has ended.
func (r *round) join(args []string) string {
	r.spawned(protocol.SpawnParams{Command: "true", Group: sharing})
	flags := []string{"exec", "--join", sharing, "--", r.victim}
	return r.output(r.command(r.program, slices.Concat(flags, args)...))
}

func (r *round) exec(args []string) string {
	flags := []string{"exec", "--kind", string(r.front.kind)}
	if r.front.confines {
		flags = append(flags, "--sandbox")
	}
	return r.output(r.command(r.program, slices.Concat(flags, []string{"--", r.victim}, args)...))
}

// mcp has an agent ask and run by tools. What its tool explains is what the sidecar
// does.
func (r *round) mcp(args []string) string {
	r.t.Helper()
	command := r.command(harness.BinaryWithMCP(r.t), "mcp")
	said := &harness.Buffer{}
	command.Stderr = said
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(r.t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		r.t.Fatalf("connect: %v: %s", err, said)
	}
	defer session.Close()
	call := func(tool string, arguments map[string]any, into any) {
		r.t.Helper()
		got, err := session.CallTool(r.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		harness.Must(r.t, err)
		data, err := json.Marshal(got.StructuredContent)
		if err != nil || got.IsError {
			r.t.Fatalf("%s %v: %v, %+v: %s", tool, arguments, err, got.Content, said)
		}
		harness.Must(r.t, json.Unmarshal(data, into))
	}
	for i, a := range r.acts {
		var explained struct{ Allowed bool }
		call("explain", map[string]any{"access": string(a.access), "target": a.target}, &explained)
		if explained.Allowed != r.answers[i].Allowed {
			harness.Breach(r.t, "mcp, %s: its tool says %t, the sidecar %t (%s)", a, explained.Allowed,
				r.answers[i].Allowed, r.answers[i].Reason)
		}
	}
	var ran struct {
		Output    string
		ExitCode  int `json:"exit_code"`
		Truncated bool
	}
	const most = 600 // seconds; the usual two minutes are few for a slow machine
	call("run", map[string]any{"command": r.line(args), "timeout_seconds": most}, &ran)
	if ran.ExitCode != 0 || ran.Truncated {
		r.t.Fatalf("mcp: %+v: %s", ran, said)
	}
	return ran.Output
}

// acp runs the victim in the place of an agent. What that prints is for the editor,
// so the results go to the log.
func (r *round) acp(args []string) string {
	r.t.Helper()
	inside := slices.Concat([]string{"acp", "--", "sh", "-c", `exec "$@" >&2`, "sh", r.victim}, args)
	command := r.command(r.program, inside...)
	editor, err := command.StdinPipe() // without an editor the agent is ended
	harness.Must(r.t, err)
	defer editor.Close()
	return r.output(command)
}

func (r *round) asAgent(args []string) string {
	return r.output(r.command(r.program, slices.Concat([]string{"agent"}, r.agentFlags(), []string{"claude"}, args)...))
}

// shellCommand runs a link alone: a sandbox that this test process would share with
// others would last as long as this does.
func (r *round) shellCommand(args []string) string {
	command := r.command(r.shell(), "-c", r.line(args))
	command.Env = append(command.Env, "SANDBOX_GROUP_OWNER=own")
	return r.output(command)
}

// shellTyped types the name of a file that has the line. A terminal takes no line of
// more than 4 KiB.
func (r *round) shellTyped(args []string) string {
	r.t.Helper()
	// The first result must begin a line, and not follow the prompt.
	harness.Write(r.t, r.ProjectPath("round"), "echo\n"+r.line(args)+"\n")
	command := r.command(r.shell())
	command.Env = append(command.Env, "TERM=xterm", "PS1=$ ")
	terminal := harness.StartTerminal(r.t, command)
	terminal.Type(". ./round\n")
	if status := terminal.Status(); status != 0 {
		r.t.Fatalf("%s: status %d: %s", r.front.name, status, terminal.Screen)
	}
	return terminal.Screen.String()
}
