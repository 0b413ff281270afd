package toolchain

// fourHex begins the name of a hash.
const fourHex = "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]"

// condaEnvironments proves a directory of environments: conda tests there whether
// it can write. An environment proves nothing, since projects have some.
var condaEnvironments = []string{".conda_envs_dir_test"}

// proofs are what a directory that a variable names must hold, one of each
// list, to be what the variable says. A line in a project's .env or .envrc can
// set any variable, so a value alone grants nothing.
//
// A * stands for any characters of a name. A name that ends in a slash is a
// directory, any other a file. What other projects have as well, such as
// CACHEDIR.TAG, config.json or a directory "toolchains", proves nothing. Nor does
// a directory with a telling name that is empty.
var proofs = map[string][]string{
	"GOROOT": {"bin/go"},
	"GOBIN": {
		"gopls", "dlv", "goimports", "gofumpt", "staticcheck", "golangci-lint", "govulncheck", "stringer", "gotests",
		"gomodifytags", "impl", "buf", "air", "ginkgo", "mockgen", "protoc-gen-go",
	},
	"GOPATH":     {"pkg/mod/cache/download/", "pkg/sumdb/"},
	"GOMODCACHE": {"cache/download/"},
	"GOCACHE":    {"trim.txt", "00/*-a", "00/*-d"},

	"RUSTUP_HOME": {"update-hashes/*-*-*", "toolchains/*/bin/rustc"},
	"CARGO_HOME":  {"bin/cargo", ".package-cache", "registry/index/"},

	"NVM_DIR":     {"nvm.sh", "versions/node/*/bin/node"},
	"VOLTA_HOME":  {"layout.v*", "tools/image/"},
	"FNM_DIR":     {"node-versions/*/installation/bin/node"},
	"NODENV_ROOT": {"libexec/nodenv", "versions/*/bin/node"},
	// npm reads both spellings.
	"npm_config_cache":  npmCache,
	"NPM_CONFIG_CACHE":  npmCache,
	"npm_config_prefix": npmPrefix,
	"NPM_CONFIG_PREFIX": npmPrefix,

	"PNPM_HOME":     {"pnpm", "store/v[0-9]*/files/[0-9a-f][0-9a-f]/", "nodejs/*/bin/node"},
	"COREPACK_HOME": {"lastKnownGood.json", "v1/*/*/.corepack"},
	"DENO_DIR": {
		"dep_analysis_cache_v*", "remote/https/*/" + fourHex + "*", "deps/https/*/" + fourHex + "*",
	},

	"PYENV_ROOT":      {"libexec/pyenv", "versions/*/bin/python*"},
	"WORKON_HOME":     {"postmkvirtualenv", "premkvirtualenv"},
	"VIRTUAL_ENV":     {"pyvenv.cfg"},
	"CONDA_PREFIX":    {"conda-meta/history", "conda-meta/*.json"},
	"CONDA_ENVS_PATH": condaEnvironments,
	"CONDA_ENVS_DIRS": condaEnvironments,
	"PIP_CACHE_DIR":   {"http-v2/[0-9a-f]/[0-9a-f]/[0-9a-f]/", "http/[0-9a-f]/[0-9a-f]/[0-9a-f]/"},
	"UV_CACHE_DIR":    {"interpreter-v[0-9]*/*/*.msgpack"},
	"PRE_COMMIT_HOME": {"db.db"},

	"JAVA_HOME":        {"bin/java"},
	"SDKMAN_DIR":       {"bin/sdkman-init.sh"},
	"GRADLE_USER_HOME": {"caches/modules-2/", "wrapper/dists/"},

	"RBENV_ROOT": {"libexec/rbenv", "versions/*/bin/ruby"},
	"rvm_path":   {"scripts/rvm"},
	"GEM_HOME":   {"specifications/*.gemspec", "specifications/default/*.gemspec"},
	"GEM_PATH":   {"specifications/*.gemspec", "specifications/default/*.gemspec"},

	"DOTNET_ROOT":    {"host/fxr/*/libhostfxr.so", "host/fxr/*/libhostfxr.dylib"},
	"NUGET_PACKAGES": {"*/*/.nupkg.metadata"},

	"COMPOSER_HOME":      {"keys.tags.pub", "cache/repo/https---*/"},
	"COMPOSER_CACHE_DIR": {"repo/https---*/"},

	"CCACHE_DIR":    {"ccache.conf", "[0-9a-f]/stats"},
	"SCCACHE_DIR":   {"[0-9a-f]/[0-9a-f]/" + fourHex + "*"},
	"CONAN_HOME":    {"p/cache.sqlite3", "profiles/default"},
	"VCPKG_ROOT":    {".vcpkg-root"},
	"DEVELOPER_DIR": {"usr/bin/xcodebuild", "usr/bin/clang", "Contents/Developer/usr/bin/xcodebuild"},

	"CLAUDE_CONFIG_DIR": {".claude.json", ".credentials.json"},
	"CODEX_HOME": {
		"models_cache.json", "log/codex-tui.log", "sessions/20*/*/*/rollout-*.jsonl",
	},
	"COPILOT_HOME": {
		"mcp-config.json", "session-state/*/events.jsonl", "session-state/*.jsonl",
		"history-session-state/session_*.json",
	},
}

// Step says what the user does so that a directory that the variable names has the
// proof.
func (p Place) Step() string {
	if p.Variable == "npm_config_prefix" || p.Variable == "NPM_CONFIG_PREFIX" {
		return "run `npm install -g npm` outside of a session"
	}
	return "let the tool fill it outside of a session"
}

// Proof lists what the directory that the variable names must hold, one of it,
// so that the place counts. A name may hold a *, and is a directory if it ends
// in a slash. The usual place needs none. A Public place has none: it is a
// file, which is looked into.
func (p Place) Proof() []string {
	if p.Public {
		return nil
	}
	return proofs[p.Variable]
}
