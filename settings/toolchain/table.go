package toolchain

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// languages are the toolchains of languages. What sessions write to the caches
// of tools is kept from programs outside, which would run it or build with it.
// Programs such as those in ~/.cargo/bin, and files with tokens, are never
// granted for writing.
//
// A variable must not be a hook or hold a secret; a test checks the table. One
// that moves a place needs a row in proofs. GOENV, PIP_CONFIG_FILE and the like
// move none: they name files of settings, which compile reads, see docs/design/
// hidden-paths.md. RUSTC_WRAPPER and MAVEN_OPTS are left out: builds go without a
// wrapper, and the options may hold passwords.
var languages = slices.Concat([]Toolchain{
	{
		Name: "go", About: "Go: toolchains, the module cache and the build cache.",
		Places: []Place{
			{Variable: "GOROOT", Access: readExecute, Why: "the toolchain, if it is not the system's"},
			{At: "/usr/local/go", Access: readExecute, Why: "the toolchain, as go.dev installs it"},
			{At: "~/sdk", Access: readExecute, Why: "toolchains of golang.org/dl"},
			{Variable: "GOBIN", Access: readExecute, Why: "programs of go install"},
			{Variable: "GOPATH", At: "~/go", Below: "bin", Access: readExecute, Why: "programs of go install"},
			{
				Variable: "GOPATH", At: "~/go", Below: "pkg", Access: policy.ReadWrite, Create: true,
				Why: "downloaded modules and toolchains, checksums",
			},
			{
				Variable: "GOMODCACHE", Access: policy.ReadWrite, Create: true,
				Why: "downloaded modules, if they were moved",
			},
			{
				Variable: "GOCACHE", At: "~/.cache/go-build", Access: policy.ReadWrite, Platform: "linux", Create: true,
				Why: "build results and test results",
			},
			{
				Variable: "GOCACHE", At: "~/Library/Caches/go-build", Access: policy.ReadWrite, Platform: "darwin",
				Create: true, Why: "build results and test results",
			},
			{
				At: "~/.config/go/telemetry/local", Access: policy.ReadWrite, Platform: "linux", Create: true,
				Shared: "numbers, which nothing runs",
				Why:    "usage counters of Go's tools, which each of them opens",
			},
			{
				At: "~/.config/go/telemetry/upload", Access: policy.ReadWrite, Platform: "linux", Create: true,
				Shared: "numbers, which nothing runs",
				Why:    "the counters that were sent, if the user has agreed",
			},
			{
				At: "~/Library/Application Support/go", Access: policy.Read, Platform: "darwin",
				Why: "what go env -w has set",
			},
		},
		Variables: []Variable{
			{"GOROOT", "where the toolchain is"},
			{"GOPATH", "where modules are"},
			{"GOBIN", "where go install puts programs"},
			{"GOCACHE", "where the build cache is"},
			{"GOMODCACHE", "where the module cache is"},
			{"GOENV", "where the settings of go env are"},
			{"GOTOOLCHAIN", "which version builds"},
			{"GOFLAGS", "flags of every command"},
			{"GOOS", "the system to build for"},
			{"GOARCH", "the processor to build for"},
			{"GOAMD64", "the processor to build for"},
			{"GOARM", "the processor to build for"},
			{"GOARM64", "the processor to build for"},
			{"GOEXPERIMENT", "experiments to build with"},
			{"GOWORK", "which workspace counts"},
			{"GOPRIVATE", "which modules are private"},
			{"GONOPROXY", "which modules come without the proxy"},
			{"GONOSUMDB", "which modules have no public checksum"},
			{"GOSUMDB", "which checksum database counts"},
			{"CGO_ENABLED", "whether C is built"},
		},
	},
	{
		Name: "rust", About: "Rust: toolchains of rustup, installed programs, downloaded crates.",
		Places: []Place{
			{Variable: "RUSTUP_HOME", At: "~/.rustup", Access: readExecute, Why: "toolchains"},
			{
				Variable: "CARGO_HOME", At: "~/.cargo", Below: "bin", Access: readExecute,
				Why: "cargo, rustc and programs of cargo install",
			},
			{
				Variable: "CARGO_HOME", At: "~/.cargo", Below: "config.toml", Access: policy.Read,
				Why: "the user's configuration of cargo",
			},
			{
				Variable: "CARGO_HOME", At: "~/.cargo", Below: "config", Access: policy.Read,
				Why: "the user's configuration of cargo, by its old name",
			},
			{
				Variable: "CARGO_HOME", At: "~/.cargo", Below: "env", Access: policy.Read,
				Why: "the search path, which shells read at start-up",
			},
			{
				Variable: "CARGO_HOME", At: "~/.cargo", Below: "registry", Access: policy.ReadWrite, Create: true,
				Why: "crates that were downloaded",
			},
			{
				Variable: "CARGO_HOME", At: "~/.cargo", Below: "git", Access: policy.ReadWrite, Create: true,
				Why: "crates from git",
			},
			{
				Variable: "CARGO_HOME", At: "~/.cargo", Below: ".package-cache", Access: policy.ReadWrite,
				Shared: "a lock without content", OnlyIfThere: "a file that cargo can do without",
				Why: "the lock of the two before",
			},
			{
				Variable: "CARGO_HOME", At: "~/.cargo", Below: ".package-cache-mutate", Access: policy.ReadWrite,
				Shared: "a lock without content", OnlyIfThere: "a file that cargo can do without",
				Why: "the lock of the two before",
			},
		},
		Variables: []Variable{
			{"RUSTUP_HOME", "where toolchains are"},
			{"CARGO_HOME", "where crates are"},
			{"RUSTUP_TOOLCHAIN", "which version builds"},
			{"CARGO_TARGET_DIR", "where cargo builds"},
			{"CARGO_BUILD_TARGET", "the system to build for"},
			{"CARGO_BUILD_JOBS", "how much is built at once"},
			{"CARGO_INCREMENTAL", "whether builds are incremental"},
			{"CARGO_NET_OFFLINE", "whether the network is used"},
			{"CARGO_TERM_COLOR", "colours"},
			{"RUSTFLAGS", "flags of the compiler"},
			{"RUST_BACKTRACE", "what a panic prints"},
			{"RUST_LOG", "what programs log"},
		},
	},
	{
		Name: "node", About: "JavaScript: version managers, and the caches of npm, pnpm, yarn, bun and deno.",
		Places: slices.Concat([]Place{
			{Variable: "NVM_DIR", At: "~/.nvm", Access: readExecute, Why: "versions of nvm"},
			{Variable: "VOLTA_HOME", At: "~/.volta", Access: readExecute, Why: "versions of volta"},
			{
				Variable: "FNM_DIR", At: "~/.local/share/fnm", Access: readExecute, Platform: "linux",
				Why: "versions of fnm",
			},
			{
				Variable: "FNM_DIR", At: "~/Library/Application Support/fnm", Access: readExecute, Platform: "darwin",
				Why: "versions of fnm",
			},
			{Variable: "NODENV_ROOT", At: "~/.nodenv", Access: readExecute, Why: "versions of nodenv"},
			{At: "~/.npm-global", Access: readExecute, Why: "programs of npm install -g"},
			{
				Variable: "PNPM_HOME", At: "~/.local/share/pnpm", Access: readExecute, Platform: "linux",
				Why: "pnpm and programs of pnpm add -g",
			},
			{
				Variable: "PNPM_HOME", At: "~/Library/pnpm", Access: readExecute, Platform: "darwin",
				Why: "pnpm and programs of pnpm add -g",
			},
			{
				Variable: "PNPM_HOME", At: "~/.local/share/pnpm", Below: "store", Access: policy.ReadWrite,
				Platform: "linux", Create: true, Why: "packages that pnpm downloaded",
			},
			{
				Variable: "PNPM_HOME", At: "~/Library/pnpm", Below: "store", Access: policy.ReadWrite,
				Platform: "darwin", Create: true, Why: "packages that pnpm downloaded",
			},
			{
				At: "~/.cache/pnpm", Access: policy.ReadWrite, Platform: "linux", Create: true,
				Why: "what pnpm knows of registries",
			},
			{
				At: "~/Library/Caches/pnpm", Access: policy.ReadWrite, Platform: "darwin", Create: true,
				Why: "what pnpm knows of registries",
			},
			{
				At: "~/.cache/yarn", Access: policy.ReadWrite, Platform: "linux", Create: true,
				Why: "packages that yarn 1 downloaded",
			},
			{
				At: "~/Library/Caches/Yarn", Access: policy.ReadWrite, Platform: "darwin", Create: true,
				Why: "packages that yarn 1 downloaded",
			},
			{At: "~/.yarn/berry", Access: policy.ReadWrite, Create: true, Why: "packages that yarn downloaded"},
			{
				Variable: "COREPACK_HOME", At: "~/.cache/node/corepack", Access: policy.ReadWrite, Create: true,
				Why: "package managers of corepack",
			},
			{
				At: "~/.cache/node-gyp", Access: policy.ReadWrite, Platform: "linux", Create: true,
				Why: "headers to build native modules with",
			},
			{
				At: "~/Library/Caches/node-gyp", Access: policy.ReadWrite, Platform: "darwin", Create: true,
				Why: "headers to build native modules with",
			},
			{At: "~/.bun/bin", Access: readExecute, Why: "bun"},
			{At: "~/.bun/install/cache", Access: policy.ReadWrite, Create: true, Why: "packages that bun downloaded"},
			{At: "~/.deno/bin", Access: readExecute, Why: "deno"},
			{
				Variable: "DENO_DIR", At: "~/.cache/deno", Access: policy.ReadWrite, Platform: "linux", Create: true,
				Why: "modules that deno downloaded",
			},
			{
				Variable: "DENO_DIR", At: "~/Library/Caches/deno", Access: policy.ReadWrite, Platform: "darwin",
				Create: true, Why: "modules that deno downloaded",
			},
		}, npmPlaces),
		Variables: slices.Concat([]Variable{
			{"NODE_ENV", "what kind of run it is"},
			{"NVM_DIR", "where versions are"},
			{"VOLTA_HOME", "where versions are"},
			{"FNM_DIR", "where versions are"},
			{"FNM_MULTISHELL_PATH", "the version of this shell"},
			{"NODENV_ROOT", "where versions are"},
			{"NODENV_VERSION", "which version runs"},
			{"PNPM_HOME", "where pnpm's programs are"},
			{"COREPACK_HOME", "where package managers are"},
			{"DENO_DIR", "where modules are"},
			{"FORCE_COLOR", "colours"},
			{"NO_COLOR", "colours"},
		}, npmVariables),
	},
	{
		Name: "python", About: "Python: interpreters and packages in the home directory, and the caches of " +
			"pip, uv and poetry.",
		Places: []Place{
			{Variable: "PYENV_ROOT", At: "~/.pyenv", Access: readExecute, Why: "versions of pyenv"},
			{At: "~/.local/lib", Access: readExecute, Why: "packages of pip install --user"},
			{At: "~/.local/bin", Access: readExecute, Why: "programs of pip install --user, pipx and uv tool"},
			{At: "~/.local/share/pipx", Access: readExecute, Why: "programs of pipx"},
			{At: "~/.local/share/uv", Access: readExecute, Why: "interpreters and programs of uv"},
			{At: "~/.local/share/virtualenvs", Access: readExecute, Why: "environments of pipenv"},
			{
				Variable: "WORKON_HOME", At: "~/.virtualenvs", Access: readExecute,
				Why: "environments of virtualenvwrapper",
			},
			{Variable: "VIRTUAL_ENV", Access: readExecute, Why: "the environment that is active"},
			{Variable: "CONDA_PREFIX", Access: readExecute, Why: "the environment that is active"},
			{Variable: "CONDA_ENVS_PATH", Access: readExecute, Why: "environments of conda"},
			{Variable: "CONDA_ENVS_DIRS", Access: readExecute, Why: "environments of conda"},
			{At: "~/.conda", Access: readExecute, Why: "environments of conda"},
			{At: "~/miniconda3", Access: readExecute, Why: "conda"},
			{At: "~/miniforge3", Access: readExecute, Why: "conda"},
			{At: "~/anaconda3", Access: readExecute, Why: "conda"},
			{
				At: "/Library/Frameworks/Python.framework", Access: readExecute, Platform: "darwin",
				Why: "interpreters of python.org",
			},
			{At: "~/Library/Python", Access: readExecute, Platform: "darwin", Why: "packages of pip install --user"},
			{
				Variable: "PIP_CACHE_DIR", At: "~/.cache/pip", Access: policy.ReadWrite, Platform: "linux",
				Create: true, Why: "packages that pip downloaded",
			},
			{
				Variable: "PIP_CACHE_DIR", At: "~/Library/Caches/pip", Access: policy.ReadWrite, Platform: "darwin",
				Create: true, Why: "packages that pip downloaded",
			},
			{
				Variable: "UV_CACHE_DIR", At: "~/.cache/uv", Access: policy.ReadWrite, Create: true,
				Why: "packages that uv downloaded",
			},
			{
				At: "~/.cache/pypoetry", Access: policy.ReadWrite, Platform: "linux", Create: true,
				Why: "packages and environments of poetry",
			},
			{
				At: "~/Library/Caches/pypoetry", Access: policy.ReadWrite, Platform: "darwin", Create: true,
				Why: "packages and environments of poetry",
			},
			{
				Variable: "PRE_COMMIT_HOME", At: "~/.cache/pre-commit", Access: policy.ReadWrite, Create: true,
				Why: "environments of pre-commit",
			},
		},
		Variables: []Variable{
			{"VIRTUAL_ENV", "the environment that is active"},
			{"CONDA_PREFIX", "the environment that is active"},
			{"CONDA_DEFAULT_ENV", "the environment that is active"},
			{"CONDA_ENVS_PATH", "where environments are"},
			{"CONDA_ENVS_DIRS", "where environments are"},
			{"CONDARC", "where conda's settings are"},
			{"PYENV_ROOT", "where versions are"},
			{"PYENV_VERSION", "which version runs"},
			{"WORKON_HOME", "where environments are"},
			{"PIP_CACHE_DIR", "where packages are"},
			{"PIP_CONFIG_FILE", "where pip's settings are"},
			{"UV_CACHE_DIR", "where packages are"},
			{"UV_CONFIG_FILE", "where uv's settings are"},
			{"PRE_COMMIT_HOME", "where environments are"},
			{"PYTHONDONTWRITEBYTECODE", "whether compiled modules are kept"},
			{"PYTHONUNBUFFERED", "whether output is held back"},
			{"PYTHONHASHSEED", "the order of sets"},
			{"PYTHONIOENCODING", "the encoding of output"},
			{"PYTHONUTF8", "the encoding of output"},
		},
	},
	{
		Name: "java", About: "Java: JDKs in the home directory, and the caches of Maven and Gradle.",
		Places: []Place{
			{Variable: "JAVA_HOME", Access: readExecute, Why: "the JDK"},
			{At: "/Library/Java", Access: readExecute, Platform: "darwin", Why: "JDKs"},
			{At: "~/Library/Java", Access: readExecute, Platform: "darwin", Why: "JDKs"},
			{Variable: "SDKMAN_DIR", At: "~/.sdkman", Access: readExecute, Why: "versions of SDKMAN"},
			{At: "~/.jdks", Access: readExecute, Why: "JDKs of IntelliJ"},
			{At: "~/.jenv", Access: readExecute, Why: "versions of jenv"},
			{
				At: "~/.m2/repository", Access: policy.ReadWrite, Create: true,
				Why: "libraries and plugins that Maven downloaded",
			},
			{At: "~/.m2/wrapper", Access: policy.ReadWrite, Create: true, Why: "Mavens of mvnw"},
			{
				Variable: "GRADLE_USER_HOME", At: "~/.gradle", Below: "caches", Access: policy.ReadWrite, Create: true,
				Why: "libraries that Gradle downloaded, and what was built",
			},
			{
				Variable: "GRADLE_USER_HOME", At: "~/.gradle", Below: "wrapper", Access: policy.ReadWrite, Create: true,
				Why: "Gradles of gradlew",
			},
			{
				Variable: "GRADLE_USER_HOME", At: "~/.gradle", Below: "daemon", Access: policy.ReadWrite, Hidden: true,
				Create: true, Why: "logs and addresses of Gradle's daemons",
			},
			{
				Variable: "GRADLE_USER_HOME", At: "~/.gradle", Below: "native", Access: policy.ReadWrite, Create: true,
				Why: "libraries that Gradle unpacks for itself",
			},
			{
				Variable: "GRADLE_USER_HOME", At: "~/.gradle", Below: "notifications", Access: policy.ReadWrite,
				Create: true, Why: "notices that Gradle has shown already",
			},
			{
				Variable: "GRADLE_USER_HOME", At: "~/.gradle", Below: "workers", Access: policy.ReadWrite, Create: true,
				Why: "working directories of Gradle's workers",
			},
			{
				Variable: "GRADLE_USER_HOME", At: "~/.gradle", Below: "jdks", Access: policy.ReadWrite, Create: true,
				Why: "JDKs that Gradle downloaded",
			},
			{
				Variable: "GRADLE_USER_HOME", At: "~/.gradle", Below: ".tmp", Access: policy.ReadWrite, Create: true,
				Why: "temporary files of Gradle",
			},
		},
		Variables: []Variable{
			{"JAVA_HOME", "where the JDK is"},
			{"MAVEN_HOME", "where Maven is"},
			{"M2_HOME", "where Maven is, by its old name"},
			{"GRADLE_HOME", "where Gradle is"},
			{"GRADLE_USER_HOME", "where Gradle's caches are"},
			{"SDKMAN_DIR", "where versions are"},
		},
	},
	{
		Name: "ruby", About: "Ruby: version managers, gems, and the cache of Bundler.",
		Places: []Place{
			{Variable: "RBENV_ROOT", At: "~/.rbenv", Access: readExecute, Why: "versions of rbenv"},
			{At: "~/.rubies", Access: readExecute, Why: "versions of chruby"},
			{Variable: "rvm_path", At: "~/.rvm", Access: readExecute, Why: "versions of rvm"},
			{Variable: "GEM_HOME", Access: readExecute, Why: "gems of gem install"},
			{Variable: "GEM_PATH", Access: readExecute, Why: "gems of gem install"},
			{At: "~/.gem/ruby", Access: readExecute, Why: "gems of gem install --user-install"},
			{At: "~/.local/share/gem", Access: readExecute, Why: "gems of gem install --user-install"},
			{At: "~/.bundle/cache", Access: policy.ReadWrite, Create: true, Why: "what Bundler knows of registries"},
			{At: "~/.cache/gem", Access: policy.ReadWrite, Create: true, Why: "what RubyGems knows of registries"},
		},
		Variables: []Variable{
			{"RBENV_ROOT", "where versions are"},
			{"RBENV_VERSION", "which version runs"},
			{"rvm_path", "where versions are"},
			{"GEM_HOME", "where gems are"},
			{"GEM_PATH", "where gems are"},
			{"BUNDLE_PATH", "where Bundler puts gems"},
			{"BUNDLE_GEMFILE", "which Gemfile counts"},
			{"RAILS_ENV", "what kind of run it is"},
			{"RACK_ENV", "what kind of run it is"},
		},
	},
	{
		Name: "dotnet", About: ".NET: SDKs in the home directory, and the caches of NuGet.",
		Places: []Place{
			{Variable: "DOTNET_ROOT", Access: readExecute, Why: "the SDK"},
			{
				At: "/usr/share/dotnet", Access: readExecute, Platform: "linux",
				Why: "the SDK, as Microsoft's packages install it",
			},
			{
				At: "/usr/local/share/dotnet", Access: readExecute, Platform: "darwin",
				Why: "the SDK, as Microsoft's packages install it",
			},
			{At: "~/.dotnet", Access: readExecute, Why: "the SDK of dotnet-install, and programs of dotnet tool"},
			{
				Variable: "NUGET_PACKAGES", At: "~/.nuget/packages", Access: policy.ReadWrite, Create: true,
				Why: "packages that NuGet downloaded",
			},
			{
				At: "~/.nuget/NuGet", Access: policy.Read,
				Why: "the sources of packages; NuGet does not run without it, and it may hold passwords",
			},
			{At: "~/.local/share/NuGet", Access: policy.ReadWrite, Create: true, Why: "what NuGet knows of registries"},
			{At: "~/.templateengine", Access: policy.ReadWrite, Create: true, Why: "templates of dotnet new"},
		},
		Variables: []Variable{
			{"DOTNET_ROOT", "where the SDK is"},
			{"DOTNET_CLI_HOME", "where dotnet keeps what it remembers"},
			{"DOTNET_CLI_TELEMETRY_OPTOUT", "whether telemetry goes to Microsoft"},
			{"DOTNET_NOLOGO", "whether there is a greeting"},
			{"DOTNET_SKIP_FIRST_TIME_EXPERIENCE", "whether there is a greeting"},
			{"DOTNET_ENVIRONMENT", "what kind of run it is"},
			{"ASPNETCORE_ENVIRONMENT", "what kind of run it is"},
			{"NUGET_PACKAGES", "where packages are"},
		},
	},
	{
		Name: "php", About: "PHP: version managers, and the cache and programs of Composer.",
		Places: []Place{
			{At: "~/.phpenv", Access: readExecute, Why: "versions of phpenv"},
			{At: "~/.phpbrew", Access: readExecute, Why: "versions of phpbrew"},
			{
				Variable: "COMPOSER_HOME", At: "~/.config/composer", Below: "vendor", Access: readExecute,
				Why: "programs of composer global require",
			},
			{At: "~/.composer/vendor", Access: readExecute, Why: "programs of composer global require, at " +
				"their old place"},
			{
				Variable: "COMPOSER_CACHE_DIR", At: "~/.cache/composer", Access: policy.ReadWrite, Platform: "linux",
				Create: true, Why: "packages that Composer downloaded",
			},
			{
				Variable: "COMPOSER_CACHE_DIR", At: "~/Library/Caches/composer", Access: policy.ReadWrite,
				Platform: "darwin", Create: true, Why: "packages that Composer downloaded",
			},
		},
		Variables: []Variable{
			{"COMPOSER_HOME", "where Composer's configuration is"},
			{"COMPOSER_CACHE_DIR", "where packages are"},
			{"COMPOSER_NO_INTERACTION", "whether Composer asks"},
			{"APP_ENV", "what kind of run it is"},
		},
	},
}, native)
