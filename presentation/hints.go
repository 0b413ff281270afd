package presentation

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Failed is a command that has ended, with what may say why it failed.
type Failed struct {
	Exit    spawn.Exit
	Argv    []string
	Outcome spawn.Outcome
	Heard   spawn.Heard
	// Unheard: what the command printed was not seen, as by exec.
	Unheard bool
	// Reported: a denial was reported.
	Reported bool
	// HasToolchain reports whether the session had the set of a name.
	HasToolchain func(name string) bool
	// PassVariable says what passes a variable; see compile.Result.
	PassVariable func(name string) string
	// FirstTime reports whether the user has not yet been told a note of that
	// name; see settings.Store.
	FirstTime func(note string) bool
}

// cannotRun is the exit status of shells for a program that they found and could
// not run.
const cannotRun = 126

// LearnHint says how to find out what a command was refused.
const LearnHint = "`sandbox-sidecar learn -- CMD` shows what it was refused"

// agent is the agent that the command is; false if it is none.
func (f Failed) agent() (name string, is bool) {
	if len(f.Argv) == 0 {
		return "", false
	}
	return toolchain.AgentOf(f.Argv[0])
}

// AgentHint says how an agent gets what it needs.
func AgentHint(name string) string {
	return fmt.Sprintf("`sandbox-sidecar agent %s` runs it with its state, its hosts and its keys", name)
}

// Hints are what the user may do about a command that failed; nil if nothing
// speaks for the sandbox as the reason.
func Hints(f Failed) []string {
	if !f.Outcome.Confined {
		return nil
	}
	var hints []string
	if name, is := f.agent(); is && !f.HasToolchain(name) && (f.Reported || f.Exit.Code != 0) {
		hints = append(hints, AgentHint(name))
	}
	if f.Exit.Code == 0 {
		return hints
	}
	switch {
	case makesPackets(f):
		hints = append(hints, packetsHint)
	case f.Reported:
	case lookedUp(f):
		hints = append(hints, lookupHint)
	case f.Heard.Refusal || f.Exit.Code == cannotRun:
		hints = append(hints, LearnHint)
	case f.Unheard && opensUnseen(f.Argv[0], f.Exit.Code):
		hints = append(hints, "if it was the sandbox: "+LearnHint)
	}
	if !f.HasToolchain(toolchain.SSH) && endsAsSSH(f) && f.FirstTime("ssh-set") {
		hints = append(hints, sshHint)
	}
	if row := f.Outcome.Protections()["limits"]; f.Heard.Exhausted && row.Mechanism != "" {
		hints = append(hints, limitsHint)
	}
	if names := missed(f); len(names) > 0 {
		hints = append(hints, fmt.Sprintf("variables that were not passed: %s; to pass one: %s", listed(names),
			f.PassVariable(names[0])))
	}
	return hints
}

// unseen are programs whose reads of files are not reported, because they open
// what the command line does not name. Those that mostly fail for a reason of
// their own, such as compilers and testers, are left out.
var unseen = []string{
	"bun", "composer", "deno", "gem", "git", "java", "node", "npm", "npx", "perl", "php", "pip", "pnpm",
	"python", "rsync", "ruby", "scp", "ssh", "uv", "yarn",
}

// opensUnseen is about a program's name or path, with or without a version.
func opensUnseen(program string, status int) bool {
	name := strings.TrimRight(filepath.Base(program), "0123456789.")
	// git also fails with 1 to say that something differs.
	return slices.Contains(unseen, name) && (name != "git" || status == gitFatal)
}

// lookedUp reports whether a command has probably failed to look a name up, as no
// host can be reached. If the machine's own DNS server is at 127.0.0.53, nothing
// is refused: the session has a localhost of its own, where nobody answers.
func lookedUp(f Failed) bool {
	rows := f.Outcome.Protections()
	network, hosts := rows["network"], rows["network_hosts"]
	off := !network.NotRequested && network.Status == "enforced" && hosts.NotRequested && hosts.Status == "absent"
	return off && slices.ContainsFunc(programs(f.Argv), func(program string) bool {
		status, known := unresolved[program]
		return known && status == f.Exit.Code
	})
}

// unresolved are the exit statuses that programs have for a name that could not be
// looked up, among few other reasons.
var unresolved = map[string]int{"curl": 6, "wget": 4}

// lookupHint says what opens hosts. Which one the command wanted is not known.
const lookupHint = `if it looked a name up: the network is off, and "allowed_hosts" opens single hosts`

// makesPackets reports whether a command has probably failed to make a socket of
// ICMP. The kernel or the filter refuses those: a session has no capability, and
// ping's own do not count.
func makesPackets(f Failed) bool {
	return slices.ContainsFunc(programs(f.Argv), func(program string) bool {
		status, known := packets[program]
		return known && status == f.Exit.Code
	})
}

// packets are the exit statuses that programs have for a socket of ICMP that they
// could not make, among few other reasons.
var packets = map[string]int{"ping": 2, "ping4": 2, "ping6": 2, "arping": 2, "fping": 4}

// packetsHint says what does nearly the same.
const packetsHint = `if a socket was refused by the sandbox: no setting opens ICMP; "curl" or "nc -z" tries a host`

// Exit statuses of git and of ssh that say nothing about the reason.
const (
	gitFatal  = 128
	sshFailed = 255
)

const limitsHint = `too many processes or threads; "limits.processes" says how many a session may have`

const sshHint = `if it needs ssh, add "ssh" to "toolchains": known hosts and the agent, and no private key`

// endsAsSSH reports whether a command may have failed because of ssh. git says of
// itself that what ssh did was fatal, and connects only for some of its commands.
func endsAsSSH(f Failed) bool {
	words := programs(f.Argv)
	has := func(names ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(names, word) })
	}
	if f.Exit.Code != gitFatal && f.Exit.Code != sshFailed {
		return false
	}
	return has("ssh", "scp", "sftp") || f.Exit.Code == gitFatal && has("git") && has("archive", "clone", "fetch",
		"lfs", "ls-remote", "pull", "push", "remote", "submodule", "subtree")
}

// maxVariables bounds the variables that a hint names.
const maxVariables = 3

func listed(names []string) string {
	shown := make([]string, 0, maxVariables)
	for _, name := range names[:min(len(names), maxVariables)] {
		shown = append(shown, display.Text(name))
	}
	text := strings.Join(shown, ", ")
	if len(names) > maxVariables {
		text += ", …"
	}
	return text
}

// missed lists the dropped variables that the command may have needed: those
// that its output named, and those of the programs on its command line.
func missed(f Failed) []string {
	names := slices.Clone(f.Heard.Variables)
	for _, program := range programs(f.Argv) {
		for _, name := range f.Outcome.Dropped {
			if !slices.Contains(names, name) && isOf(program, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// maxPrograms bounds the words that are looked up.
const maxPrograms = 100

// programs are the words of a command line that may be programs, in it or in a
// line for a shell.
func programs(argv []string) []string {
	var words []string
	for _, arg := range argv {
		for word := range strings.FieldsFuncSeq(arg, separates) {
			if words = append(words, filepath.Base(word)); len(words) == maxPrograms {
				return words
			}
		}
	}
	return words
}

func separates(r rune) bool { return strings.ContainsRune(" \t\n;&|()'\"`$", r) }

// isOf reports whether a program reads a variable.
func isOf(program, name string) bool {
	for _, row := range variables {
		if !slices.Contains(row.programs, program) {
			continue
		}
		for _, pattern := range row.names {
			prefix, open := strings.CutSuffix(pattern, "*")
			if name == pattern || open && strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}

// variables says which variables programs read, apart from those that sessions
// get anyway. A name that ends in * stands for all that begin so.
var variables = []struct{ programs, names []string }{
	{[]string{"aws", "sam", "cdk"}, []string{"AWS_*"}},
	{[]string{"terraform", "tofu", "pulumi"}, []string{"TF_*", "AWS_*", "ARM_*", "GOOGLE_*", "PULUMI_*"}},
	{[]string{"gcloud", "gsutil"}, []string{"CLOUDSDK_*", "GOOGLE_*"}},
	{[]string{"az"}, []string{"AZURE_*"}},
	{[]string{"docker", "docker-compose", "podman", "buildah"}, []string{"DOCKER_*", "COMPOSE_*", "CONTAINER_HOST"}},
	{[]string{"kubectl", "helm", "k9s", "kustomize"}, []string{"KUBECONFIG", "KUBE_*", "HELM_*"}},
	{[]string{"gh"}, []string{"GH_*", "GITHUB_TOKEN"}},
	{[]string{"glab"}, []string{"GITLAB_*"}},
	{[]string{"psql", "pg_dump", "pg_restore", "createdb", "dropdb"}, []string{"PG*"}},
	{[]string{"mysql", "mysqldump", "mariadb"}, []string{"MYSQL_*"}},
	{
		[]string{"node", "npm", "npx", "pnpm", "yarn", "bun", "deno"},
		[]string{"NODE_*", "NPM_*", "npm_config_*", "NVM_*", "PNPM_*", "YARN_*", "BUN_*", "DENO_*"},
	},
	{
		[]string{"python", "python3", "pip", "pip3", "pytest", "uv", "poetry", "tox", "pre-commit", "conda"},
		[]string{"PYTHON*", "PIP_*", "VIRTUAL_ENV", "POETRY_*", "UV_*", "CONDA_*"},
	},
	{[]string{"go", "gofmt"}, []string{"GO*", "CGO_*"}},
	{[]string{"cargo", "rustc", "rustup"}, []string{"CARGO_*", "RUST*"}},
	{
		[]string{"java", "javac", "mvn", "gradle", "gradlew", "ant", "sbt", "kotlin"},
		[]string{"JAVA_*", "JDK_*", "MAVEN_*", "GRADLE_*", "CLASSPATH", "ANDROID_*"},
	},
	{
		[]string{"make", "cmake", "gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "meson", "ninja", "configure"},
		[]string{
			"CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "PKG_CONFIG_*", "CMAKE_*",
			"LD_LIBRARY_PATH", "CPATH", "LIBRARY_PATH",
		},
	},
	{[]string{"git"}, []string{
		"GIT_DIR", "GIT_WORK_TREE", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_*", "GIT_AUTHOR_*",
		"GIT_COMMITTER_*",
	}},
	{[]string{"ruby", "gem", "bundle", "rake", "rails"}, []string{"GEM_*", "BUNDLE_*", "RUBY*", "RAILS_*"}},
	{[]string{"php", "composer"}, []string{"COMPOSER_*", "PHP_*"}},
	{[]string{"dotnet", "nuget"}, []string{"DOTNET_*", "NUGET_*"}},
	{[]string{"nix", "nix-build", "nix-shell"}, []string{"NIX_*"}},
}

// LimitReached is the notification of a limit that a session has reached.
func LimitReached(sessionID string, limit spawn.Reached) protocol.LimitParams {
	params := protocol.LimitParams{SessionID: sessionID, Setting: limit.Key, Message: LimitLine(limit) + "."}
	if limit.Printed {
		params.Source = protocol.DenialFromOutput
	}
	return params
}

// LimitLine is a limit that was reached, for a line in a terminal, without a full
// stop.
func LimitLine(limit spawn.Reached) string {
	if limit.Key == spawn.MemoryKey {
		what := "a process"
		if limit.Whole {
			what = "the command"
		}
		return fmt.Sprintf("The kernel ended %s at %d MB of memory; %q sets it", what, limit.Most>>20, limit.Key)
	}
	if limit.Key == spawn.ConnectionsKey {
		if limit.Shared {
			return fmt.Sprintf("A connection beyond %d was refused: the sidecar has no more (ulimit -n)",
				limit.Most)
		}
		return fmt.Sprintf("A connection beyond %d was refused; %q sets it", limit.Most, limit.Key)
	}
	if limit.Printed {
		return fmt.Sprintf("A program says it got no process beyond %d; %q sets it", limit.Most, limit.Key)
	}
	return fmt.Sprintf("The kernel refused a process beyond %d; %q sets it", limit.Most, limit.Key)
}
