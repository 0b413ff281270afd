package toolchain

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"

// npmPlaces are those of npm that its settings move. npm reads each setting from a
// variable of its name, in small letters or in capitals (npm help config).
var npmPlaces = []Place{
	{
		Variable: "npm_config_cache", At: "~/.npm", Access: policy.ReadWrite, Create: true,
		Why: "packages that npm and npx downloaded, logs",
	},
	{
		Variable: "NPM_CONFIG_CACHE", Access: policy.ReadWrite, Create: true,
		Why: "packages that npm and npx downloaded, logs",
	},
	{Variable: "npm_config_prefix", Below: "bin", Access: readExecute, Why: "programs of npm install -g"},
	{Variable: "npm_config_prefix", Below: "lib", Access: readExecute, Why: "packages of npm install -g"},
	{Variable: "NPM_CONFIG_PREFIX", Below: "bin", Access: readExecute, Why: "programs of npm install -g"},
	{Variable: "NPM_CONFIG_PREFIX", Below: "lib", Access: readExecute, Why: "packages of npm install -g"},
}

// npmVariables are exceptions from policy.IsHook, which takes all settings of npm
// for hooks, since some name programs. These name what the set grants, and files
// of settings of which sessions read a part.
var npmVariables = []Variable{
	{"npm_config_cache", "where packages are"},
	{"NPM_CONFIG_CACHE", "where packages are"},
	{"npm_config_prefix", "where npm install -g puts programs"},
	{"NPM_CONFIG_PREFIX", "where npm install -g puts programs"},
	{"npm_config_userconfig", "where npm's settings are"},
	{"NPM_CONFIG_USERCONFIG", "where npm's settings are"},
	{"npm_config_globalconfig", "where npm's settings of the machine are"},
	{"NPM_CONFIG_GLOBALCONFIG", "where npm's settings of the machine are"},
}

// npmCache and npmPrefix prove what the variables name. lib in a project may be a
// package of its own, with packages such as typescript or yarn below. So the proofs
// are what comes with Node, and agents.
var (
	npmCache  = []string{"_cacache/index-v5/[0-9a-f][0-9a-f]/", "_cacache/content-v2/sha512/"}
	npmPrefix = []string{
		"lib/node_modules/npm/package.json", "lib/node_modules/corepack/package.json",
		"lib/node_modules/@anthropic-ai/claude-code/package.json", "lib/node_modules/@openai/codex/package.json",
		"lib/node_modules/@google/gemini-cli/package.json",
	}
)
