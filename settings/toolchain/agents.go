package toolchain

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"

// state is a directory in which an agent keeps what it knows. Hooks, lists of
// servers and instructions are there, too, which the agent outside acts on. So
// what sessions write there never reaches it.
func state(at string) Place {
	return Place{
		At: at, Access: policy.ReadWrite, Create: true, AlwaysPrivate: true,
		Why: "the agent's state and sign-in; changes never reach the agent outside",
	}
}

// movedBy is a place that a variable moves.
func movedBy(variable string, p Place) Place {
	p.Variable = variable
	return p
}

// agents are sets for whole agents. Each opens the file that its agent signs in
// with, so nothing adds one but the user.
var agents = []Toolchain{
	{
		Name: "claude", Agent: true, About: "Claude Code: its state, its sign-in and its hosts.",
		Places: []Place{
			movedBy("CLAUDE_CONFIG_DIR", state("~/.claude")),
			{At: "~/.claude.json", Access: policy.Read, Why: "settings, projects and servers, which stay as they are"},
			{At: "~/.local/share/claude", Access: readExecute, Why: "versions of the program"},
			{At: "~/.local/bin/claude", Access: readExecute, Why: "the program"},
		},
		Variables: []Variable{{"CLAUDE_CONFIG_DIR", "where the state is"}},
	},
	{
		Name: "codex", Agent: true, About: "Codex: its state, its sign-in and its hosts.",
		Places: []Place{
			movedBy("CODEX_HOME", state("~/.codex")),
		},
		Variables: []Variable{{"CODEX_HOME", "where the state is"}},
	},
	{
		Name: "gemini", Agent: true, About: "Gemini CLI: its state, its sign-in and its hosts.",
		Places: []Place{
			state("~/.gemini"),
		},
	},
	{
		Name: "opencode", Agent: true, About: "OpenCode: its state, its sign-in and its hosts.",
		Places: []Place{
			state("~/.config/opencode"), state("~/.local/share/opencode"), state("~/.local/state/opencode"),
			state("~/.cache/opencode"),
			{At: "~/.opencode/bin", Access: readExecute, Why: "the program"},
		},
	},
	{
		Name: "aider", Agent: true, About: "aider: its state and configuration. Allow the host of your model besides.",
		Places: []Place{
			state("~/.aider"),
			{At: "~/.aider.conf.yml", Access: policy.Read, Why: "the configuration, which stays as it is"},
			{At: "~/.aider.model.settings.yml", Access: policy.Read, Why: "settings of models"},
			{At: "~/.aider.model.metadata.json", Access: policy.Read, Why: "facts about models"},
		},
	},
	{
		Name: "copilot", Agent: true, About: "Copilot CLI: its state, its sign-in and its hosts.",
		Places: []Place{
			movedBy("COPILOT_HOME", state("~/.copilot")), state("~/.cache/copilot"),
		},
		Variables: []Variable{{"COPILOT_HOME", "where the state is"}},
	},
}
