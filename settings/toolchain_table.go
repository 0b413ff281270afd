package settings

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"

// toolchain is a named set of places and variables that a language's tools need
// beside the system's own.
type toolchain struct {
	name string
	// about is one sentence for the reference.
	about     string
	places    []toolchainPlace
	variables []toolchainVariable
}

// toolchainPlace is a directory or a file, with what sessions may do there and
// why.
type toolchainPlace struct {
	// variable moves the place: where it is set, its value stands for at. It
	// may be a list of directories.
	variable string
	// at is where the place is otherwise; "" where there is none without the
	// variable.
	at string
	// below is a name below either.
	below  string
	access policy.Access
	// on is the only platform; "" is every one.
	on string
	// create: the directory is made before a session starts, because the tools
	// cannot make it themselves: only what exists can be granted.
	create bool
	why    string
}

type toolchainVariable struct{ name, why string }

// Caches that tools write are shared with what runs outside, so a session can
// leave code there that a build outside will use. That is what a cache is for;
// what runs without being built, such as ~/.cargo/bin, is never granted for
// writing, nor is what holds tokens.
//
// A variable must be no hook and hold no secret; a test holds the table to
// that.
var toolchains = []toolchain{
	{
		name: "go", about: "Go: toolchains, the module cache and the build cache.",
		places: []toolchainPlace{
			{variable: "GOROOT", access: readExecute, why: "the toolchain, where it is not the system's"},
			{at: "/usr/local/go", access: readExecute, why: "the toolchain, as go.dev installs it"},
			{at: "~/sdk", access: readExecute, why: "toolchains of golang.org/dl"},
			{variable: "GOBIN", access: readExecute, why: "programs of go install"},
			{variable: "GOPATH", at: "~/go", below: "bin", access: readExecute, why: "programs of go install"},
			{variable: "GOPATH", at: "~/go", below: "pkg", access: policy.ReadWrite, create: true, why: "modules and toolchains that were downloaded, checksums"},
			{variable: "GOMODCACHE", access: policy.ReadWrite, why: "modules that were downloaded, where they were moved"},
			{variable: "GOCACHE", at: "~/.cache/go-build", access: policy.ReadWrite, on: "linux", create: true, why: "what was built, and results of tests"},
			{variable: "GOCACHE", at: "~/Library/Caches/go-build", access: policy.ReadWrite, on: "darwin", create: true, why: "what was built, and results of tests"},
			{at: "~/.config/go/telemetry/local", access: policy.ReadWrite, on: "linux", create: true, why: "what Go's tools count of themselves, which each of them opens"},
			{at: "~/.config/go/telemetry/upload", access: policy.ReadWrite, on: "linux", create: true, why: "which of that was sent, where the user has agreed to it"},
			{variable: "GOENV", at: "~/Library/Application Support/go", access: policy.Read, on: "darwin", why: "what go env -w has set"},
		},
		variables: []toolchainVariable{
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
		name: "rust", about: "Rust: toolchains of rustup, installed programs, downloaded crates.",
		places: []toolchainPlace{
			{variable: "RUSTUP_HOME", at: "~/.rustup", access: readExecute, why: "toolchains"},
			{variable: "CARGO_HOME", at: "~/.cargo", below: "bin", access: readExecute, why: "cargo, rustc and programs of cargo install"},
			{variable: "CARGO_HOME", at: "~/.cargo", below: "config.toml", access: policy.Read, why: "the user's configuration of cargo"},
			{variable: "CARGO_HOME", at: "~/.cargo", below: "config", access: policy.Read, why: "the user's configuration of cargo, by its old name"},
			{variable: "CARGO_HOME", at: "~/.cargo", below: "env", access: policy.Read, why: "the search path, which shells read at start-up"},
			{variable: "CARGO_HOME", at: "~/.cargo", below: "registry", access: policy.ReadWrite, create: true, why: "crates that were downloaded"},
			{variable: "CARGO_HOME", at: "~/.cargo", below: "git", access: policy.ReadWrite, create: true, why: "crates from git"},
			{variable: "CARGO_HOME", at: "~/.cargo", below: ".package-cache", access: policy.ReadWrite, why: "the lock of the two before"},
			{variable: "CARGO_HOME", at: "~/.cargo", below: ".package-cache-mutate", access: policy.ReadWrite, why: "the lock of the two before"},
		},
		variables: []toolchainVariable{
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
		name: "node", about: "JavaScript: version managers, and the caches of npm, pnpm, yarn, bun and deno.",
		places: []toolchainPlace{
			{variable: "NVM_DIR", at: "~/.nvm", access: readExecute, why: "versions of nvm"},
			{variable: "VOLTA_HOME", at: "~/.volta", access: readExecute, why: "versions of volta"},
			{variable: "FNM_DIR", at: "~/.local/share/fnm", access: readExecute, on: "linux", why: "versions of fnm"},
			{variable: "FNM_DIR", at: "~/Library/Application Support/fnm", access: readExecute, on: "darwin", why: "versions of fnm"},
			{variable: "NODENV_ROOT", at: "~/.nodenv", access: readExecute, why: "versions of nodenv"},
			{at: "~/.npm-global", access: readExecute, why: "programs of npm install -g"},
			{at: "~/.npm", access: policy.ReadWrite, create: true, why: "packages that npm and npx downloaded, logs"},
			{variable: "PNPM_HOME", at: "~/.local/share/pnpm", access: readExecute, on: "linux", why: "pnpm and programs of pnpm add -g"},
			{variable: "PNPM_HOME", at: "~/Library/pnpm", access: readExecute, on: "darwin", why: "pnpm and programs of pnpm add -g"},
			{variable: "PNPM_HOME", at: "~/.local/share/pnpm", below: "store", access: policy.ReadWrite, on: "linux", why: "packages that pnpm downloaded"},
			{variable: "PNPM_HOME", at: "~/Library/pnpm", below: "store", access: policy.ReadWrite, on: "darwin", why: "packages that pnpm downloaded"},
			{at: "~/.cache/pnpm", access: policy.ReadWrite, on: "linux", why: "what pnpm knows of registries"},
			{at: "~/Library/Caches/pnpm", access: policy.ReadWrite, on: "darwin", why: "what pnpm knows of registries"},
			{at: "~/.cache/yarn", access: policy.ReadWrite, on: "linux", why: "packages that yarn 1 downloaded"},
			{at: "~/Library/Caches/Yarn", access: policy.ReadWrite, on: "darwin", why: "packages that yarn 1 downloaded"},
			{at: "~/.yarn/berry", access: policy.ReadWrite, why: "packages that yarn downloaded"},
			{variable: "COREPACK_HOME", at: "~/.cache/node/corepack", access: policy.ReadWrite, why: "package managers of corepack"},
			{at: "~/.cache/node-gyp", access: policy.ReadWrite, on: "linux", why: "headers to build native modules with"},
			{at: "~/Library/Caches/node-gyp", access: policy.ReadWrite, on: "darwin", why: "headers to build native modules with"},
			{at: "~/.bun/bin", access: readExecute, why: "bun"},
			{at: "~/.bun/install/cache", access: policy.ReadWrite, why: "packages that bun downloaded"},
			{at: "~/.deno/bin", access: readExecute, why: "deno"},
			{variable: "DENO_DIR", at: "~/.cache/deno", access: policy.ReadWrite, on: "linux", why: "modules that deno downloaded"},
			{variable: "DENO_DIR", at: "~/Library/Caches/deno", access: policy.ReadWrite, on: "darwin", why: "modules that deno downloaded"},
		},
		variables: []toolchainVariable{
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
		},
	},
	{
		name: "python", about: "Python: interpreters and packages in the home directory, and the caches of pip, uv and poetry.",
		places: []toolchainPlace{
			{variable: "PYENV_ROOT", at: "~/.pyenv", access: readExecute, why: "versions of pyenv"},
			{at: "~/.local/lib", access: readExecute, why: "packages of pip install --user"},
			{at: "~/.local/bin", access: readExecute, why: "programs of pip install --user, pipx and uv tool"},
			{at: "~/.local/share/pipx", access: readExecute, why: "programs of pipx"},
			{at: "~/.local/share/uv", access: readExecute, why: "interpreters and programs of uv"},
			{at: "~/.local/share/virtualenvs", access: readExecute, why: "environments of pipenv"},
			{variable: "WORKON_HOME", at: "~/.virtualenvs", access: readExecute, why: "environments of virtualenvwrapper"},
			{variable: "VIRTUAL_ENV", access: readExecute, why: "the environment that is active"},
			{variable: "CONDA_PREFIX", access: readExecute, why: "the environment that is active"},
			{at: "~/.conda", access: readExecute, why: "environments of conda"},
			{at: "~/miniconda3", access: readExecute, why: "conda"},
			{at: "~/miniforge3", access: readExecute, why: "conda"},
			{at: "~/anaconda3", access: readExecute, why: "conda"},
			{at: "/Library/Frameworks/Python.framework", access: readExecute, on: "darwin", why: "interpreters of python.org"},
			{at: "~/Library/Python", access: readExecute, on: "darwin", why: "packages of pip install --user"},
			{variable: "PIP_CACHE_DIR", at: "~/.cache/pip", access: policy.ReadWrite, on: "linux", create: true, why: "packages that pip downloaded"},
			{variable: "PIP_CACHE_DIR", at: "~/Library/Caches/pip", access: policy.ReadWrite, on: "darwin", create: true, why: "packages that pip downloaded"},
			{variable: "UV_CACHE_DIR", at: "~/.cache/uv", access: policy.ReadWrite, why: "packages that uv downloaded"},
			{at: "~/.cache/pypoetry", access: policy.ReadWrite, on: "linux", why: "packages and environments of poetry"},
			{at: "~/Library/Caches/pypoetry", access: policy.ReadWrite, on: "darwin", why: "packages and environments of poetry"},
			{variable: "PRE_COMMIT_HOME", at: "~/.cache/pre-commit", access: policy.ReadWrite, why: "environments of pre-commit"},
		},
		variables: []toolchainVariable{
			{"VIRTUAL_ENV", "the environment that is active"},
			{"CONDA_PREFIX", "the environment that is active"},
			{"CONDA_DEFAULT_ENV", "the environment that is active"},
			{"PYENV_ROOT", "where versions are"},
			{"PYENV_VERSION", "which version runs"},
			{"WORKON_HOME", "where environments are"},
			{"PIP_CACHE_DIR", "where packages are"},
			{"UV_CACHE_DIR", "where packages are"},
			{"PRE_COMMIT_HOME", "where environments are"},
			{"PYTHONDONTWRITEBYTECODE", "whether compiled modules are kept"},
			{"PYTHONUNBUFFERED", "whether output is held back"},
			{"PYTHONHASHSEED", "the order of sets"},
			{"PYTHONIOENCODING", "the encoding of output"},
			{"PYTHONUTF8", "the encoding of output"},
		},
	},
	{
		name: "java", about: "Java: JDKs in the home directory, and the caches of Maven and Gradle.",
		places: []toolchainPlace{
			{variable: "JAVA_HOME", access: readExecute, why: "the JDK"},
			{at: "/Library/Java", access: readExecute, on: "darwin", why: "JDKs"},
			{at: "~/Library/Java", access: readExecute, on: "darwin", why: "JDKs"},
			{variable: "SDKMAN_DIR", at: "~/.sdkman", access: readExecute, why: "versions of SDKMAN"},
			{at: "~/.jdks", access: readExecute, why: "JDKs of IntelliJ"},
			{at: "~/.jenv", access: readExecute, why: "versions of jenv"},
			{at: "~/.m2/repository", access: policy.ReadWrite, create: true, why: "libraries and plugins that Maven downloaded"},
			{at: "~/.m2/wrapper", access: policy.ReadWrite, why: "Mavens of mvnw"},
			{variable: "GRADLE_USER_HOME", at: "~/.gradle", below: "caches", access: policy.ReadWrite, why: "libraries that Gradle downloaded, and what was built"},
			{variable: "GRADLE_USER_HOME", at: "~/.gradle", below: "wrapper", access: policy.ReadWrite, why: "Gradles of gradlew"},
			{variable: "GRADLE_USER_HOME", at: "~/.gradle", below: "daemon", access: policy.ReadWrite, why: "logs and addresses of Gradle's daemons"},
			{variable: "GRADLE_USER_HOME", at: "~/.gradle", below: "native", access: policy.ReadWrite, why: "libraries that Gradle unpacks for itself"},
			{variable: "GRADLE_USER_HOME", at: "~/.gradle", below: "notifications", access: policy.ReadWrite, why: "what Gradle has told already"},
			{variable: "GRADLE_USER_HOME", at: "~/.gradle", below: "workers", access: policy.ReadWrite, why: "working directories of Gradle's workers"},
			{variable: "GRADLE_USER_HOME", at: "~/.gradle", below: "jdks", access: policy.ReadWrite, why: "JDKs that Gradle downloaded"},
			{variable: "GRADLE_USER_HOME", at: "~/.gradle", below: ".tmp", access: policy.ReadWrite, why: "temporary files of Gradle"},
		},
		variables: []toolchainVariable{
			{"JAVA_HOME", "where the JDK is"},
			{"MAVEN_HOME", "where Maven is"},
			{"M2_HOME", "where Maven is, by its old name"},
			{"GRADLE_HOME", "where Gradle is"},
			{"GRADLE_USER_HOME", "where Gradle's caches are"},
			{"SDKMAN_DIR", "where versions are"},
		},
	},
	{
		name: "ruby", about: "Ruby: version managers, gems, and the cache of Bundler.",
		places: []toolchainPlace{
			{variable: "RBENV_ROOT", at: "~/.rbenv", access: readExecute, why: "versions of rbenv"},
			{at: "~/.rubies", access: readExecute, why: "versions of chruby"},
			{variable: "rvm_path", at: "~/.rvm", access: readExecute, why: "versions of rvm"},
			{variable: "GEM_HOME", access: readExecute, why: "gems of gem install"},
			{variable: "GEM_PATH", access: readExecute, why: "gems of gem install"},
			{at: "~/.gem/ruby", access: readExecute, why: "gems of gem install --user-install"},
			{at: "~/.local/share/gem", access: readExecute, why: "gems of gem install --user-install"},
			{at: "~/.bundle/cache", access: policy.ReadWrite, create: true, why: "what Bundler knows of registries"},
			{at: "~/.cache/gem", access: policy.ReadWrite, why: "what RubyGems knows of registries"},
		},
		variables: []toolchainVariable{
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
		name: "dotnet", about: ".NET: SDKs in the home directory, and the caches of NuGet.",
		places: []toolchainPlace{
			{variable: "DOTNET_ROOT", access: readExecute, why: "the SDK"},
			{at: "/usr/share/dotnet", access: readExecute, on: "linux", why: "the SDK, as Microsoft's packages install it"},
			{at: "/usr/local/share/dotnet", access: readExecute, on: "darwin", why: "the SDK, as Microsoft's packages install it"},
			{at: "~/.dotnet", access: readExecute, why: "the SDK of dotnet-install, and programs of dotnet tool"},
			{variable: "NUGET_PACKAGES", at: "~/.nuget/packages", access: policy.ReadWrite, create: true, why: "packages that NuGet downloaded"},
			{at: "~/.nuget/NuGet", access: policy.Read, why: "where packages come from; without it NuGet does not run, and passwords may stand in it"},
			{at: "~/.local/share/NuGet", access: policy.ReadWrite, create: true, why: "what NuGet knows of registries"},
			{at: "~/.templateengine", access: policy.ReadWrite, why: "templates of dotnet new"},
		},
		variables: []toolchainVariable{
			{"DOTNET_ROOT", "where the SDK is"},
			{"DOTNET_CLI_HOME", "where dotnet keeps what it remembers"},
			{"DOTNET_CLI_TELEMETRY_OPTOUT", "whether Microsoft is told"},
			{"DOTNET_NOLOGO", "whether there is a greeting"},
			{"DOTNET_SKIP_FIRST_TIME_EXPERIENCE", "whether there is a greeting"},
			{"DOTNET_ENVIRONMENT", "what kind of run it is"},
			{"ASPNETCORE_ENVIRONMENT", "what kind of run it is"},
			{"NUGET_PACKAGES", "where packages are"},
		},
	},
	{
		name: "php", about: "PHP: version managers, and the cache and programs of Composer.",
		places: []toolchainPlace{
			{at: "~/.phpenv", access: readExecute, why: "versions of phpenv"},
			{at: "~/.phpbrew", access: readExecute, why: "versions of phpbrew"},
			{variable: "COMPOSER_HOME", at: "~/.config/composer", below: "vendor", access: readExecute, why: "programs of composer global require"},
			{at: "~/.composer/vendor", access: readExecute, why: "programs of composer global require, at their old place"},
			{variable: "COMPOSER_CACHE_DIR", at: "~/.cache/composer", access: policy.ReadWrite, on: "linux", create: true, why: "packages that Composer downloaded"},
			{variable: "COMPOSER_CACHE_DIR", at: "~/Library/Caches/composer", access: policy.ReadWrite, on: "darwin", create: true, why: "packages that Composer downloaded"},
		},
		variables: []toolchainVariable{
			{"COMPOSER_HOME", "where Composer's configuration is"},
			{"COMPOSER_CACHE_DIR", "where packages are"},
			{"COMPOSER_NO_INTERACTION", "whether Composer asks"},
			{"APP_ENV", "what kind of run it is"},
		},
	},
	{
		name: "c", about: "C and C++: the caches of ccache, sccache, Conan and vcpkg, and Xcode.",
		places: []toolchainPlace{
			{variable: "CCACHE_DIR", at: "~/.cache/ccache", access: policy.ReadWrite, on: "linux", create: true, why: "what ccache has compiled"},
			{variable: "CCACHE_DIR", at: "~/Library/Caches/ccache", access: policy.ReadWrite, on: "darwin", create: true, why: "what ccache has compiled"},
			{at: "~/.ccache", access: policy.ReadWrite, why: "what ccache has compiled, at its old place"},
			{variable: "SCCACHE_DIR", at: "~/.cache/sccache", access: policy.ReadWrite, on: "linux", why: "what sccache has compiled"},
			{variable: "SCCACHE_DIR", at: "~/Library/Caches/Mozilla.sccache", access: policy.ReadWrite, on: "darwin", why: "what sccache has compiled"},
			{variable: "CONAN_HOME", at: "~/.conan2", below: "p", access: policy.ReadWrite, why: "packages of Conan"},
			{variable: "CONAN_HOME", at: "~/.conan2", below: "profiles", access: policy.Read, why: "profiles of Conan"},
			{variable: "VCPKG_ROOT", access: readExecute, why: "vcpkg"},
			{at: "~/.cache/vcpkg", access: policy.ReadWrite, why: "packages of vcpkg"},
			{at: "~/.cmake/packages", access: policy.Read, why: "packages that CMake was told of"},
			{variable: "DEVELOPER_DIR", at: "/Applications/Xcode.app", access: readExecute, on: "darwin", why: "compilers and SDKs"},
			{at: "/Library/Developer", access: readExecute, on: "darwin", why: "compilers and SDKs"},
		},
		variables: []toolchainVariable{
			{"CC", "the C compiler"},
			{"CXX", "the C++ compiler"},
			{"AR", "the archiver"},
			{"LD", "the linker"},
			{"CPPFLAGS", "flags"},
			{"CFLAGS", "flags"},
			{"CXXFLAGS", "flags"},
			{"LDFLAGS", "flags"},
			{"MAKEFLAGS", "flags"},
			{"PKG_CONFIG_PATH", "where libraries are"},
			{"CMAKE_PREFIX_PATH", "where libraries are"},
			{"CMAKE_GENERATOR", "what builds"},
			{"CMAKE_BUILD_TYPE", "how it is built"},
			{"CMAKE_BUILD_PARALLEL_LEVEL", "how much is built at once"},
			{"CCACHE_DIR", "where the cache is"},
			{"CCACHE_BASEDIR", "which paths do not matter"},
			{"SCCACHE_DIR", "where the cache is"},
			{"CONAN_HOME", "where packages are"},
			{"VCPKG_ROOT", "where vcpkg is"},
			{"SDKROOT", "the SDK on macOS"},
			{"DEVELOPER_DIR", "where Xcode is"},
			{"MACOSX_DEPLOYMENT_TARGET", "the macOS to build for"},
		},
	},
	{
		name: "nix", about: "Nix: the store, profiles and the cache. Building takes the daemon's socket, which allowed_unix_sockets has to grant.",
		places: []toolchainPlace{
			{at: "/nix/store", access: readExecute, why: "everything that Nix has installed"},
			{at: "/nix/var/nix/profiles", access: readExecute, why: "which of it is in use"},
			{at: "/nix/var/nix/gcroots", access: policy.Read, why: "what is in use"},
			{at: "/nix/var/nix/db", access: policy.Read, why: "what is valid in the store"},
			{at: "/run/current-system", access: readExecute, why: "the system of NixOS and nix-darwin"},
			{at: "~/.local/state/nix/profiles", access: readExecute, why: "the user's profiles"},
			{at: "~/.nix-defexpr", access: policy.Read, why: "the user's channels"},
			{at: "~/.cache/nix", access: policy.ReadWrite, create: true, why: "what was evaluated and fetched"},
		},
		variables: []toolchainVariable{
			{"NIX_PATH", "where expressions are"},
			{"NIX_PROFILES", "which profiles are in use"},
			{"NIX_REMOTE", "who builds"},
			{"NIX_SSL_CERT_FILE", "which certificates count"},
			{"NIX_USER_PROFILE_DIR", "where the user's profiles are"},
			{"LOCALE_ARCHIVE", "translations"},
			{"IN_NIX_SHELL", "whether this is a development shell"},
		},
	},
}
