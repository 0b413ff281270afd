package toolchain

// Registry is a host from which the tools of a toolchain download.
type Registry struct {
	// Host is an entry of allowed_hosts.
	Host string
	// Why says what comes from there.
	Why string
}

// registries are the hosts of each toolchain. Hosts where anybody may keep what
// they like for others to fetch, such as github.com and object stores, are not
// among them. What Composer needs of GitHub is one exception: nothing installs
// without it. Those of ssh are the other: whoever logs in there needs a key.
var registries = map[string][]Registry{
	"go": {
		{"proxy.golang.org:443", "modules and toolchains"},
		{"sum.golang.org:443", "checksums of modules"},
	},
	"rust": {
		{"index.crates.io:443", "the index of crates"},
		{"static.crates.io:443", "crates"},
		{"static.rust-lang.org:443", "toolchains of rustup"},
	},
	"node": {
		{"registry.npmjs.org:443", "packages of npm, pnpm and bun"},
		{"registry.yarnpkg.com:443", "packages of yarn 1"},
		{"repo.yarnpkg.com:443", "newer versions of yarn"},
		{"nodejs.org:443", "versions of Node, headers for native modules"},
		{"jsr.io:443", "modules of JSR"},
		{"npm.jsr.io:443", "modules of JSR, for npm"},
		{"deno.land:443", "modules of deno"},
	},
	"python": {
		{"pypi.org:443", "the index of packages"},
		{"files.pythonhosted.org:443", "packages"},
		{"repo.anaconda.com:443", "packages of conda"},
		{"conda.anaconda.org:443", "packages of conda's channels"},
	},
	"java": {
		{"repo.maven.apache.org:443", "libraries, for Maven and Gradle"},
		{"repo1.maven.org:443", "the same, by its other name"},
		{"plugins.gradle.org:443", "plugins of Gradle"},
		{"plugins-artifacts.gradle.org:443", "plugins of Gradle"},
		{"services.gradle.org:443", "versions of Gradle"},
		{"downloads.gradle.org:443", "versions of Gradle"},
	},
	"ruby": {
		{"rubygems.org:443", "gems"},
		{"index.rubygems.org:443", "the index of gems"},
	},
	"dotnet": {
		{"api.nuget.org:443", "packages of NuGet"},
	},
	"php": {
		{"repo.packagist.org:443", "the index of packages"},
		{"packagist.org:443", "the index of packages"},
		{"api.github.com:443", "packages, most of which are on GitHub"},
		{"codeload.github.com:443", "packages, most of which are on GitHub"},
	},
	"c": {
		{"center2.conan.io:443", "packages of Conan"},
	},
	"claude": {
		{"api.anthropic.com:443", "the models"},
		{"platform.claude.com:443", "renews the sign-in"},
		{"mcp-proxy.anthropic.com:443", "connectors of the account"},
	},
	"codex": {
		{"api.openai.com:443", "the models, with a key"},
		{"chatgpt.com:443", "the models, with an account"},
		{"auth.openai.com:443", "renews the sign-in"},
	},
	"gemini": {
		{"generativelanguage.googleapis.com:443", "the models, with a key"},
		{"cloudcode-pa.googleapis.com:443", "the models, with an account"},
		{"oauth2.googleapis.com:443", "renews the sign-in"},
	},
	"opencode": {
		{"opencode.ai:443", "its own models"},
		{"api.opencode.ai:443", "its own models"},
		{"models.opencode.ai:443", "the list of models"},
		{"models.dev:443", "the list of models"},
	},
	"copilot": {
		{"api.githubcopilot.com:443", "the models"},
		{"api.individual.githubcopilot.com:443", "the models, with an account of one's own"},
		{"api.business.githubcopilot.com:443", "the models, with an account of a company"},
		{"api.enterprise.githubcopilot.com:443", "the models, with an account of a company"},
		{"api.github.com:443", "renews the sign-in"},
	},
	"ssh": {
		{"tcp://ssh.github.com:443", "ssh of GitHub at the port of HTTPS"},
		{"tcp://altssh.gitlab.com:443", "ssh of GitLab at the port of HTTPS"},
	},
	"nix": {
		{"cache.nixos.org:443", "what is built already"},
		{"channels.nixos.org:443", "channels"},
		{"releases.nixos.org:443", "channels"},
	},
}

// Registries are the hosts from which the toolchain's tools download.
func (t Toolchain) Registries() []Registry { return registries[t.Name] }
