package protected

// The names that are not protected, because sessions change them for good
// reasons. See Group.

var (
	instructions = inGroup(Instructions, []Name{
		{Path: "AGENTS.md", Who: "agents", Why: "agents follow its instructions"},
		{Path: "CLAUDE.md", Who: "Claude Code", Why: "Claude Code follows its instructions"},
		{Path: "CLAUDE.local.md", Who: "Claude Code", Why: "Claude Code follows its instructions"},
		{Path: "GEMINI.md", Who: "Gemini CLI", Why: "Gemini CLI follows its instructions"},
		{Path: "QWEN.md", Who: "Qwen Code", Why: "Qwen Code follows its instructions"},
		{Path: "CONVENTIONS.md", Who: "aider", Why: "aider follows its instructions"},
		{Path: ".cursorrules", Who: "Cursor", Why: "Cursor follows its instructions"},
		{Path: ".windsurfrules", Who: "Windsurf", Why: "Windsurf follows its instructions"},
		{Path: ".windsurf", Who: "Windsurf", Why: "Windsurf follows the rules and workflows in it"},
		{Path: ".clinerules", Who: "Cline", Why: "Cline follows its instructions"},
		{Path: ".goosehints", Who: "goose", Why: "goose follows its instructions"},
		{Path: ".rules", Who: "Zed", Why: "Zed's agent follows its instructions"},
		{Path: ".github/copilot-instructions.md", Who: "Copilot", Why: "Copilot follows its instructions"},
		{Path: ".github/instructions", Who: "Copilot", Why: "Copilot follows the instructions in it"},
		{Path: ".github/prompts", Who: "Copilot", Why: "Copilot offers the prompts in it"},
	})
	hooks = inGroup(Hooks, []Name{
		{Path: ".husky", Who: "git", Why: "git runs these hooks, if husky is installed"},
		{Path: ".githooks", Who: "git", Why: "git runs these hooks, if core.hooksPath names them"},
		{Path: ".pre-commit-config.yaml", Who: "pre-commit", Why: "pre-commit runs these commands before each commit"},
	})
	unfinished = inGroup(Unfinished, []Name{
		{Path: ".git/rebase-merge/git-rebase-todo", Who: "git", Why: "git runs its commands when the rebase continues"},
		{Path: ".git/sequencer/todo", Who: "git", Why: "git acts upon it when the cherry-pick continues"},
	})
	buildFiles = inGroup(BuildFiles, []Name{
		{Path: "package.json", Who: "npm", Why: "npm runs these scripts, also during installs", Scripts: true},
		{Path: ".npmrc", Who: "npm", Why: "npm runs the programs it names"},
		{Path: ".yarnrc*", Who: "yarn", Why: "yarn runs the programs it names"},
		{Path: ".yarn/releases", Who: "yarn", Why: "yarn itself is started from it"},
		{Path: ".yarn/plugins", Who: "yarn", Why: "yarn runs the plugins in it"},
		{Path: ".pnpmfile.cjs", Who: "pnpm", Why: "pnpm runs it during an install"},
		{Path: "*.config.*js", Who: "ESLint, Vite, Jest and others", Why: "editors and builds run it"},
		{Path: "*.config.*ts", Who: "ESLint, Vite, Jest and others", Why: "editors and builds run it"},
		{Path: ".eslintrc*", Who: "ESLint", Why: "ESLint in the editor runs it and what it names"},
		{Path: ".prettierrc*", Who: "Prettier", Why: "Prettier in the editor runs the plugins it names"},
		{Path: ".stylelintrc*", Who: "Stylelint", Why: "Stylelint in the editor runs the plugins it names"},
		{Path: ".babelrc*", Who: "Babel", Why: "Babel runs the plugins it names"},
		{Path: ".mocharc*", Who: "Mocha", Why: "Mocha runs the files it names"},
		{Path: "tsconfig*.json", Who: "TypeScript", Why: "TypeScript in the editor runs the plugins it names"},
		{Path: "gulpfile.*", Who: "gulp", Why: "gulp runs it"},
		{Path: "Gruntfile.*", Who: "Grunt", Why: "Grunt runs it"},
		{Path: "deno.json*", Who: "deno", Why: "deno runs the tasks it names"},
		{Path: "pyproject.toml", Who: "pip and others", Why: "pip runs the build backend that it names"},
		{Path: "setup.py", Who: "pip", Why: "pip runs it during an install"},
		{Path: "setup.cfg", Who: "pip", Why: "pip runs the commands it names during an install"},
		{Path: "conftest.py", Who: "pytest", Why: "pytest runs it"},
		{Path: "pytest.ini", Who: "pytest", Why: "pytest runs the plugins it names"},
		{Path: "tox.ini", Who: "tox", Why: "tox runs its commands"},
		{Path: "noxfile.py", Who: "nox", Why: "nox runs it"},
		{Path: "tasks.py", Who: "invoke", Why: "invoke runs it"},
		{Path: ".pylintrc", Who: "pylint", Why: "pylint in the editor runs the code in it"},
		{Path: "pylintrc", Who: "pylint", Why: "pylint in the editor runs the code in it"},
		{Path: "mypy.ini", Who: "mypy", Why: "mypy in the editor runs the plugins it names"},
		{Path: "build.rs", Who: "cargo", Why: "cargo and editors run it during a build"},
		{Path: "Cargo.toml", Who: "cargo", Why: "cargo and editors run the build script that it names"},
		{Path: "build.zig", Who: "zig", Why: "zig and editors run it during a build"},
		{Path: "Makefile*", Who: "make", Why: "make runs its commands"},
		{Path: "makefile", Who: "make", Why: "make runs its commands"},
		{Path: "GNUmakefile", Who: "make", Why: "make runs its commands"},
		{Path: "configure", Who: "configure", Why: "builds are started with this program"},
		{Path: "CMakeLists.txt", Who: "CMake", Why: "CMake and editors run its commands"},
		{Path: "CMakePresets.json", Who: "CMake", Why: "CMake and editors run the programs it names"},
		{Path: "meson.build", Who: "Meson", Why: "Meson and editors run its commands"},
		{Path: "justfile", Who: "just", Why: "just runs its commands"},
		{Path: ".justfile", Who: "just", Why: "just runs its commands"},
		{Path: "Justfile", Who: "just", Why: "just runs its commands"},
		{Path: "Taskfile.*", Who: "task", Why: "task runs its commands"},
		{Path: "*.gradle", Who: "Gradle", Why: "Gradle and editors run it"},
		{Path: "*.gradle.kts", Who: "Gradle", Why: "Gradle and editors run it"},
		{Path: "gradle.properties", Who: "Gradle", Why: "Gradle starts the Java it names"},
		{Path: "gradle/wrapper", Who: "Gradle", Why: "builds are started with these programs"},
		{Path: "gradlew", Who: "Gradle", Why: "builds are started with this program"},
		{Path: "pom.xml", Who: "Maven", Why: "Maven and editors run the plugins it names"},
		{Path: ".mvn", Who: "Maven", Why: "Maven loads the extensions it names"},
		{Path: "mvnw", Who: "Maven", Why: "builds are started with this program"},
		{Path: "*.*proj", Who: "MSBuild", Why: "MSBuild and editors run the tasks it names"},
		{Path: "Directory.Build.*", Who: "MSBuild", Why: "MSBuild and editors run the tasks it names"},
		{Path: "Rakefile", Who: "rake", Why: "rake runs it"},
		{Path: "Gemfile", Who: "Bundler", Why: "Bundler runs it"},
		{Path: ".bundle/config", Who: "Bundler", Why: "Bundler loads programs from where it says"},
		{Path: ".rubocop.yml", Who: "RuboCop", Why: "RuboCop in the editor runs the files it names"},
		{Path: "composer.json", Who: "Composer", Why: "Composer runs these scripts, some during an install"},
		{Path: "mix.exs", Who: "mix", Why: "mix and editors run it"},
		{Path: ".bazelrc", Who: "bazel", Why: "bazel reads options from it, some of which name programs"},
		{Path: "BUILD.bazel", Who: "bazel", Why: "bazel runs its commands"},
		{Path: "MODULE.bazel", Who: "bazel", Why: "bazel fetches and runs what it names"},
		{Path: "WORKSPACE*", Who: "bazel", Why: "bazel fetches and runs what it names"},
		{Path: "Dockerfile*", Who: "docker", Why: "docker runs its commands"},
		{Path: "*compose*.y*ml", Who: "docker", Why: "docker starts what it names, with the files it names"},
		{Path: "Vagrantfile", Who: "vagrant", Why: "vagrant runs it"},
		{Path: "flake.nix", Who: "nix", Why: "nix and direnv run what it describes"},
		{Path: "shell.nix", Who: "nix", Why: "nix and direnv run what it describes"},
		{Path: ".tool-versions", Who: "asdf, mise", Why: "asdf and mise choose programs from it"},
	})
	installed = inGroup(Installed, []Name{
		{Path: ".venv/bin", Who: "shells, editors", Why: "editors and shells start Python and its tools from it"},
		{Path: "venv/bin", Who: "shells, editors", Why: "editors and shells start Python and its tools from it"},
		{Path: ".venv/pyvenv.cfg", Who: "Python", Why: "Python is started from where it says"},
		{Path: "venv/pyvenv.cfg", Who: "Python", Why: "Python is started from where it says"},
		{Path: "node_modules/.bin", Who: "npm, editors", Why: "npm's scripts and editors start programs from it"},
		{Path: "vendor/bin", Who: "Composer", Why: "Composer's scripts start programs from it"},
	})
	ci = inGroup(CI, []Name{
		{Path: ".github/workflows", Who: "CI", Why: "it runs on the machines of the CI service"},
		{Path: ".github/actions", Who: "CI", Why: "it runs on the machines of the CI service"},
		{Path: ".gitlab-ci.yml", Who: "CI", Why: "it runs on the machines of the CI service"},
		{Path: ".circleci", Who: "CI", Why: "it runs on the machines of the CI service"},
		{Path: "azure-pipelines.yml", Who: "CI", Why: "it runs on the machines of the CI service"},
		{Path: "Jenkinsfile", Who: "CI", Why: "it runs on the machines of the CI service"},
		{Path: ".travis.yml", Who: "CI", Why: "it runs on the machines of the CI service"},
		{Path: ".woodpecker*", Who: "CI", Why: "it runs on the machines of the CI service"},
		{Path: ".drone.yml", Who: "CI", Why: "it runs on the machines of the CI service"},
	})
)

func inGroup(g Group, names []Name) []Name {
	for i := range names {
		names[i].Group = g
	}
	return names
}
