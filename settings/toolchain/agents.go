package toolchain

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// State is a directory in which an agent keeps what it knows. Hooks, lists of
// servers and instructions are there, too, which the agent outside acts on. So
// what sessions write there never reaches it.
func State(at string) Place {
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
			movedBy("CLAUDE_CONFIG_DIR", State("~/.claude")),
			{At: "~/.claude.json", Access: policy.Read, Why: "settings, projects and servers, which stay as they are"},
			{At: "~/.local/share/claude", Access: readExecute, Why: "versions of the program"},
			{At: "~/.local/bin/claude", Access: readExecute, Why: "the program"},
		},
		Variables: []Variable{{"CLAUDE_CONFIG_DIR", "where the state is"}},
	},
	{
		Name: "codex", Agent: true, About: "Codex: its state, its sign-in and its hosts.",
		Places: []Place{
			movedBy("CODEX_HOME", State("~/.codex")),
		},
		Variables: []Variable{{"CODEX_HOME", "where the state is"}},
	},
	{
		Name: "gemini", Agent: true, About: "Gemini CLI: its state, its sign-in and its hosts.",
		Places: []Place{
			State("~/.gemini"),
		},
	},
	{
		Name: "opencode", Agent: true, About: "OpenCode: its state, its sign-in and its hosts.",
		Places: []Place{
			State("~/.config/opencode"), State("~/.local/share/opencode"), State("~/.local/state/opencode"),
			State("~/.cache/opencode"),
			{At: "~/.opencode/bin", Access: readExecute, Why: "the program"},
		},
	},
	{
		Name: "aider", Agent: true, About: "aider: its state and configuration. Allow the host of your model besides.",
		Places: []Place{
			State("~/.aider"),
			{At: "~/.aider.conf.yml", Access: policy.Read, Why: "the configuration, which stays as it is"},
			{At: "~/.aider.model.settings.yml", Access: policy.Read, Why: "settings of models"},
			{At: "~/.aider.model.metadata.json", Access: policy.Read, Why: "facts about models"},
		},
	},
	{
		Name: "copilot", Agent: true, About: "Copilot CLI: its state, its sign-in and its hosts.",
		Places: []Place{
			movedBy("COPILOT_HOME", State("~/.copilot")), State("~/.cache/copilot"),
		},
		Variables: []Variable{{"COPILOT_HOME", "where the state is"}},
	},
}

// Agent is how `sandbox-sidecar agent` starts an agent with its set.
type Agent struct {
	Toolchain
	// File is the user's own file for it; "" if it is one of the table.
	File string
	// Program is what is looked up in PATH.
	Program string
	// Passed are variables for this command alone: other sessions with the set do
	// not get the keys in them.
	Passed []Variable
	// Args are put before the user's arguments, unless one of those begins with
	// an entry of Unless or names Setting. Why says what they do.
	Args    []string
	Unless  []string
	Setting string
	Why     string
	// Hosts are reached beside Registries.
	Hosts []Registry
}

const (
	key     = "a key for the models"
	address = "where the models are"
	model   = "which model is used"
)

// commands are the agents without their sets, by name.
var commands = map[string]Agent{
	"claude": {
		Program: "claude",
		Passed: []Variable{
			{"ANTHROPIC_API_KEY", key},
			{"ANTHROPIC_AUTH_TOKEN", key},
			{"CLAUDE_CODE_OAUTH_TOKEN", key},
			{"ANTHROPIC_BASE_URL", address},
			{"ANTHROPIC_CUSTOM_HEADERS", "headers for the models, often a key"},
			{"ANTHROPIC_MODEL", model},
			{"ANTHROPIC_SMALL_FAST_MODEL", model},
			{"ANTHROPIC_DEFAULT_OPUS_MODEL", model},
			{"ANTHROPIC_DEFAULT_SONNET_MODEL", model},
			{"ANTHROPIC_DEFAULT_HAIKU_MODEL", model},
			{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "turns off reports and updates"},
			{"DISABLE_AUTOUPDATER", "turns off updates"},
			{"DISABLE_TELEMETRY", "turns off reports"},
		},
	},
	"codex": {
		Program: "codex",
		Passed:  []Variable{{"OPENAI_API_KEY", key}, {"CODEX_API_KEY", key}, {"OPENAI_BASE_URL", address}},
		Args:    []string{"--sandbox", "danger-full-access"},
		Unless:  []string{"-s", "--sandbox", "--full-auto", "--dangerously-bypass-approvals-and-sandbox", "--yolo"},
		Setting: "sandbox_mode",
		Why:     "its own sandbox cannot start in this one; what you set about approvals stays",
	},
	"gemini": {
		Program: "gemini",
		Passed: []Variable{
			{"GEMINI_API_KEY", key},
			{"GOOGLE_API_KEY", key},
			{"GOOGLE_GEMINI_BASE_URL", address},
			{"GEMINI_MODEL", model},
			{"GOOGLE_CLOUD_PROJECT", "the account's project"},
		},
	},
	"opencode": {Program: "opencode", Passed: ofProviders, Hosts: providers},
	"aider":    {Program: "aider", Passed: ofProviders, Hosts: providers},
	"copilot": {
		Program: "copilot",
		Passed:  []Variable{{"COPILOT_GITHUB_TOKEN", key}, {"COPILOT_MODEL", model}},
	},
}

// ofProviders and providers are the keys and hosts of those whose models many
// agents use.
var (
	ofProviders = []Variable{
		{"ANTHROPIC_API_KEY", key},
		{"ANTHROPIC_BASE_URL", address},
		{"OPENAI_API_KEY", key},
		{"OPENAI_BASE_URL", address},
		{"OPENAI_API_BASE", address},
		{"GEMINI_API_KEY", key},
		{"GOOGLE_GENERATIVE_AI_API_KEY", key},
		{"OPENROUTER_API_KEY", key},
		{"OLLAMA_API_BASE", address},
	}
	providers = []Registry{
		{"api.anthropic.com:443", "the models of Anthropic"},
		{"api.openai.com:443", "the models of OpenAI"},
		{"generativelanguage.googleapis.com:443", "the models of Google"},
		{"openrouter.ai:443", "the models of OpenRouter"},
	}
)

// FindAgent returns the agent of a name.
func FindAgent(name string) (Agent, bool) {
	set, known := Find(name)
	if !known || !set.Agent {
		return Agent{}, false
	}
	agent := commands[name]
	agent.Toolchain = set
	return agent, true
}

// AgentNames lists the names of the agents, sorted.
func AgentNames() []string { return slices.Sorted(maps.Keys(commands)) }

// AgentOf returns the name of the agent that a program's name or path is of.
func AgentOf(program string) (name string, is bool) {
	for name, agent := range commands {
		if agent.Program == filepath.Base(program) {
			return name, true
		}
	}
	return "", false
}

// Before are the arguments to put before the user's; nil if the user has decided
// about what they say.
func (a Agent) Before(args []string) []string {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		config := i > 0 && (args[i-1] == "-c" || args[i-1] == "--config") || strings.HasPrefix(arg, "--config=") ||
			strings.HasPrefix(arg, "-c") && arg != "-c"
		if a.Setting != "" && config && strings.Contains(arg, a.Setting) {
			return nil
		}
		for _, option := range a.Unless {
			long := strings.HasPrefix(option, "--")
			if arg == option || long && strings.HasPrefix(arg, option+"=") ||
				!long && strings.HasPrefix(arg, option) && !strings.HasPrefix(arg, "--") {
				return nil
			}
		}
	}
	return a.Args
}
