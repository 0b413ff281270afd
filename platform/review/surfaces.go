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
	{".husky", "git runs these hooks, where husky is set up"},
	{".githooks", "git runs these hooks, where core.hooksPath says so"},
	{".pre-commit-config.yaml", "pre-commit runs these commands before each commit"},
	{"lefthook.yml", "lefthook runs these commands as git hooks"},
	{"package.json#scripts", "npm and others run these, some of them at install"},
	{".npmrc", "npm runs the programs it names"},
	{".yarnrc.yml", "yarn runs the programs it names"},
	{".pnpmfile.cjs", "pnpm runs it at install"},
	{"setup.py", "pip runs it at install"},
	{"conftest.py", "pytest runs it"},
	{"build.rs", "cargo runs it to build"},
	{".cargo/config.toml", "cargo runs the programs it names"},
	{"Makefile", "make runs its commands"},
	{"justfile", "just runs its commands"},
	{"Taskfile.yml", "task runs its commands"},
	{"gradlew", "it is a program that builds are started with"},
	{"mvnw", "it is a program that builds are started with"},
	{".bazelrc", "bazel takes options from it, some of which name programs"},
	{".mise.toml", "mise runs commands of it on entering the directory"},
	{".tool-versions", "asdf and mise choose programs by it"},
	{".devcontainer", "editors build and start containers by it"},
	{".github/workflows", "it runs on the CI's machines"},
	{".github/actions", "it runs on the CI's machines"},
	{".gitlab-ci.yml", "it runs on the CI's machines"},
	{".circleci", "it runs on the CI's machines"},
	{"azure-pipelines.yml", "it runs on the CI's machines"},
	{"Jenkinsfile", "it runs on the CI's machines"},
	{".travis.yml", "it runs on the CI's machines"},
}

// whyProtected is the reason of a protected path.
const whyProtected = "it is protected: programs outside the sandbox act upon it without asking"
