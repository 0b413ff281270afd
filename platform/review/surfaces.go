package review

// surface is a file or directory that a program acts upon, relative to the
// project.
type surface struct {
	path string
	why  string
}

// surfaces are a project's surfaces besides its protected paths. A path that
// ends in "#scripts" is the part of a package.json with commands.
var surfaces = []surface{
	{".husky", "git runs these hooks, if husky is installed"},
	{".githooks", "git runs these hooks, if core.hooksPath names them"},
	{".git/rebase-merge/git-rebase-todo", "git runs its commands when the rebase continues"},
	{".git/sequencer/todo", "git acts upon it when the cherry-pick continues"},
	{".pre-commit-config.yaml", "pre-commit runs these commands before each commit"},
	{"lefthook.yml", "lefthook runs these commands as git hooks"},
	{"package.json#scripts", "npm and others run these scripts, some during an install"},
	{".npmrc", "npm runs the programs it names"},
	{".yarnrc.yml", "yarn runs the programs it names"},
	{".pnpmfile.cjs", "pnpm runs it during an install"},
	{"setup.py", "pip runs it during an install"},
	{"conftest.py", "pytest runs it"},
	{"build.rs", "cargo runs it during a build"},
	{".cargo/config.toml", "cargo runs the programs it names"},
	{"Makefile", "make runs its commands"},
	{"justfile", "just runs its commands"},
	{"Taskfile.yml", "task runs its commands"},
	{"gradlew", "builds are started with this program"},
	{"mvnw", "builds are started with this program"},
	{".bazelrc", "bazel reads options from it, some of which name programs"},
	{".mise.toml", "mise runs its commands when you enter the directory"},
	{".tool-versions", "asdf and mise choose programs from it"},
	{".devcontainer", "editors build and start containers from it"},
	{".github/workflows", "it runs on the machines of the CI service"},
	{".github/actions", "it runs on the machines of the CI service"},
	{".gitlab-ci.yml", "it runs on the machines of the CI service"},
	{".circleci", "it runs on the machines of the CI service"},
	{"azure-pipelines.yml", "it runs on the machines of the CI service"},
	{"Jenkinsfile", "it runs on the machines of the CI service"},
	{".travis.yml", "it runs on the machines of the CI service"},
}

// whyProtected is the reason of a protected path.
const whyProtected = "it is protected: programs outside the sandbox act upon it without asking"
