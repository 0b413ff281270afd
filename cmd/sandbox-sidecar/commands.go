//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/commandline"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/trailview"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// command is one command of the program. run adds its flags to a flag set, and
// parses the arguments with it.
type command struct {
	commandline.Command
	run func(flags *flagSet, args []string) error
}

const summary = "sandbox-sidecar gives an editor terminals that the kernel confines."

const details = `Editors start it without a command, and talk to it over stdin and stdout.
"sandbox-sidecar help COMMAND" lists the flags of a command.`

// commands are all commands, in the order of the help.
func commands() []command {
	return []command{
		{commandline.Command{
			Name: "init", Args: "[flags]",
			Summary: "turn the sandbox on: write commented settings",
			Details: "It finds toolchains and the ssh agent. What is in your settings file already stays.",
		}, initialise},
		{commandline.Command{
			Name: "exec", Args: "[flags] -- CMD [ARG…]", Takes: commandline.Programs,
			Summary: "run a command under the settings, in this terminal",
			Details: "The exit status is the command's: 126 if it cannot be executed, 127 if it is not found, " +
				"and 128 and the signal's number if a signal ended it. It is 1 if the sandbox cannot be made.\n" +
				"With --join it runs in a sandbox that sessions share already, under its policy: beside an agent, " +
				"for example. ID is of ps: its first digits, or the group's name.",
		}, execute},
		{commandline.Command{
			Name: "agent", Args: "[flags] NAME [ARG…]", Takes: commandline.Words, Words: toolchain.AgentNames(),
			Summary: "run an agent in the sandbox, with what it needs",
			Details: "NAME is " + strings.Join(toolchain.AgentNames(), ", ") + ". No settings are needed. " +
				"It opens the agent's program, state and sign-in, its hosts, and the variables of its keys, " +
				"for this command alone, beside what your settings say. It is sandboxed whatever they say, as a " +
				"\"tool\". ARG… is for the agent. \"sandbox-sidecar policy --agent NAME\" prints what it may do.",
		}, runAgent},
		{commandline.Command{
			Name: "allow", Args: "[flags] [NUMBER | PATH | HOST[:PORT]]", Takes: commandline.Files,
			Summary: "list what was refused, and allow it by a setting",
			Details: "Without an argument it lists what sessions of this project were refused in the last " +
				"seven days. With one it shows the line that allows it and the file, asks, and writes it. " +
				"Comments and layout stay. The next session has it. What leads out of the sandbox needs a yes " +
				"on the terminal.",
		}, allow},
		{commandline.Command{
			Name: "ps", Args: "[flags]",
			Summary: "list the sessions of yours that run",
			Details: "One line a session, below its project: the first digits of its id, its kind, what confines it, " +
				"since when it runs, who started it, and the command without what looks like a secret. " +
				"A sandbox that sessions share comes before them, with the processes that they have left in " +
				"the background. The exit status is 1 if a process did not say what it runs.",
		}, listRunning},
		{commandline.Command{
			Name: "shell", Args: "[install [--dir DIR] | ARG…]", Takes: commandline.Words, Words: []string{"install"},
			Summary: "be a shell whose commands are sandboxed",
			Details: "With ARG… it runs the real shell with these arguments: \"tool\" for -c and scripts, else " +
				"\"terminal\". A link to this program that is named after a shell does the same. " +
				"install makes such links, and prints what to write into other programs' settings. " +
				"SANDBOX_SHELL=PATH names the real shell.",
		}, shell},
		{commandline.Command{
			Name: "acp", Args: "[flags] -- AGENT [ARG…]", Takes: commandline.Programs,
			Summary: "run an agent in the sandbox, for an editor that speaks ACP",
			Details: "It passes on what both say, and keeps the editor from running commands outside for the agent. " +
				"With on_denied \"ask\" the editor asks its user. The agent is sandboxed whatever the settings say.",
		}, serveACP},
		{commandline.Command{
			Name: "mcp", Args: "[flags]",
			Summary: "serve tools to an agent by MCP: sandboxed commands",
			Details: "An agent starts it and talks to it over stdin and stdout. Its tools are run, start, " +
				"input, output, stop, explain and policy. Commands are sandboxed whatever the settings say, and " +
				"results say what was refused. It becomes sandbox-sidecar-mcp, which must lie beside this program.",
		}, serveMCP},
		{commandline.Command{
			Name: "learn", Args: "[flags] -- CMD [ARG…]", Takes: commandline.Programs,
			Summary: "run a command and print the settings that it needs",
			Details: "CMD may read everything but known credentials, and execute programs of PATH, of its own " +
				"directory and of toolchains: that is recorded. Other programs, writing outside of the project, " +
				"sockets and a network that is off are refused and recorded: " +
				"if CMD fails for that, add the printed settings and learn again.\n" +
				"Refused Unix sockets are recorded only before Linux 7.1.",
		}, learn},
		{commandline.Command{
			Name: "policy", Args: "[flags]",
			Summary: "print what a session in a project may do, and why",
		}, printPolicy},
		{commandline.Command{
			Name: "explain", Args: "[flags] ACCESS TARGET", Takes: commandline.Words, Words: accessNames(),
			Summary: "print whether a session may do something, and why",
			Details: "ACCESS is read, write or execute (TARGET is a path), connect_unix (a path, or abstract:NAME), " +
				"connect or bind (an address), or sign (a fingerprint or keygrip of a key).",
		}, printWhy},
		{commandline.Command{
			Name: "trust", Args: "[flags] [DIR]", Takes: commandline.Dirs,
			Summary: "let a project's settings count as they are written",
			Details: "It shows what the project's settings ask for, and trusts them. " +
				"It asks first, on a terminal, unless --digest is given.",
		}, trust},
		{commandline.Command{
			Name: "untrust", Args: "[flags] [DIR]", Takes: commandline.Dirs,
			Summary: "stop trusting a project's settings",
			Details: "From then on they can only restrict.",
		}, untrust},
		{commandline.Command{
			Name: "cache", Args: "[flags] [clear [NAME…]]", Takes: commandline.Words, Words: []string{"clear"},
			Summary: "list or clear what sessions keep in caches of toolchains",
			Details: "The real caches stay as they are. A NAME is the path of a cache, or a toolchain such as node.",
		}, cache},
		{commandline.Command{
			Name: "audit", Args: "[flags]",
			Summary: "print what sessions have run, were refused and reached",
			Details: "The setting \"audit\" turns it on. Files that were renamed because of their size are included.",
		}, showTrail},
		{commandline.Command{
			Name: "doctor", Args: "[flags]",
			Summary: "try attacks and print what this machine enforces",
		}, doctor},
		{commandline.Command{Name: "schema", Summary: "print the JSON Schema of the settings"}, schema},
		{commandline.Command{
			Name: "completion", Args: "SHELL", Takes: commandline.Words, Words: commandline.Shells(),
			Summary: "print the completions of bash, zsh or fish",
		}, completion},
		{commandline.Command{Name: "man", Summary: "print the manual page, for man(1)"}, man},
		{commandline.Command{
			Name: "serve", Args: "[flags]",
			Summary: "serve the protocol on stdin and stdout, for editors",
		}, serve},
		{commandline.Command{Name: "version", Args: "[flags]", Summary: "print the version"}, printVersion},
	}
}

// find returns a command by its name.
func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.Name == name {
			return c, true
		}
	}
	return command{}, false
}

// described is the description of the program. flags adds the flags of every
// command, which only completions and the manual page need.
func described(flags bool) commandline.Program {
	p := commandline.Program{Name: "sandbox-sidecar", Version: versionName(), Summary: summary, Details: details}
	for _, c := range commands() {
		if flags {
			set := newFlags(c)
			set.help = func() {}
			_ = c.run(set, []string{"--help"}) // declares the flags, and ends
			c.Flags = set.FlagSet
		}
		p.Commands = append(p.Commands, c.Command)
	}
	return p
}

// completion prints the completions of a shell.
func completion(flags *flagSet, args []string) error {
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return misuse(flags, "expected bash, zsh or fish")
	}
	if !described(true).Completion(output, flags.Arg(0)) {
		return misuse(flags, "expected bash, zsh or fish, found %s%s", quoted(flags.Arg(0)),
			meantWord(flags, flags.Arg(0)))
	}
	return nil
}

// man prints the manual page.
func man(flags *flagSet, args []string) error {
	if err := parseNone(flags, args); err != nil {
		return err
	}
	page := described(true)
	page.Examples, page.Statuses, page.Files = examples, statuses, files()
	page.Man(output)
	return nil
}

var examples = [][2]string{
	{"sandbox-sidecar init", "Turn the sandbox on."},
	{"sandbox-sidecar exec -- npm test", "Run a command of the project in the working directory."},
	{"sandbox-sidecar exec -- bash", "Open a shell. It says before each prompt what was refused."},
	{"sandbox-sidecar allow", "List what was refused in this project, each with a number."},
	{"sandbox-sidecar allow 3", "Allow number 3 of them to sessions that start from now on."},
	{"sandbox-sidecar allow --write ~/notes", "Let sessions write a directory."},
	{"sandbox-sidecar allow --undo", "Take the last change back."},
	{"sandbox-sidecar agent claude", "Run an agent with what it needs, and nothing else."},
	{"sandbox-sidecar explain read ~/.ssh/id_ed25519", "Say whether a session may, and why."},
	{"sandbox-sidecar doctor", "Try attacks, and say what this machine enforces."},
}

var statuses = [][2]string{
	{"0", "It is done. Of exec and its kind: the command's own status."},
	{"1", "It is not done, or the sandbox cannot be made."},
	{"2", "The command line is wrong."},
	{"126", "The command cannot be executed."},
	{"127", "The command is not found."},
}

// files are the places of a user whose home is "~".
func files() [][2]string {
	const home = "/~"
	user := places.User{Home: home}
	var rows [][2]string
	for _, path := range user.Settings() {
		rows = append(rows, [2]string{path, "Your settings."})
	}
	rows = append(rows,
		[2]string{".zed/settings.json", "The settings of a project. They can only restrict, until you trust them."},
		[2]string{user.State(), "What is trusted, was refused and was typed. No session may write it."},
		[2]string{user.Cache(), "What sessions have written to caches of toolchains."},
	)
	for i := range rows {
		rows[i][0] = strings.TrimPrefix(rows[i][0], "/")
	}
	return rows
}

func accessNames() []string {
	var names []string
	for _, attempt := range explain.Attempts() {
		names = append(names, string(attempt))
	}
	return names
}

func schema(flags *flagSet, args []string) error {
	if err := parseNone(flags, args); err != nil {
		return err
	}
	_, err := output.Write(settings.Schema())
	return err
}

func printVersion(flags *flagSet, args []string) error {
	asJSON := flags.Bool("json", false, "print JSON, for programs")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	if *asJSON {
		return printJSON(struct {
			Version  string `json:"version"`
			Platform string `json:"platform"`
		}{versionName(), settings.Platform})
	}
	showVersion()
	return nil
}

func showVersion() { fmt.Fprintf(output, "sandbox-sidecar %s\n", versionName()) }

// versionName is the version of this program. "go install MODULE@VERSION" leaves
// it in the build information.
func versionName() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()") // "(devel)" in a checkout
	}
	return "unknown"
}

// showTrail prints the audit trail.
func showTrail(flags *flagSet, args []string) error {
	sinceText := flags.String("since", "", "`TIME`: 2h, 7d, or 2026-01-31")
	project := flags.String("project", "", "`DIR`: only what was run in this project")
	asJSON := flags.Bool("json", false, "print the lines as they were written")
	asSchema := flags.Bool("schema", false, "print the JSON Schema of a line")
	file := flags.String("settings", "", "`FILE`: settings to read instead of your own")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	if *asSchema {
		_, err := output.Write(audit.Schema())
		return err
	}
	filter := audit.Filter{}
	var err error
	if *sinceText != "" {
		if filter.Since, err = audit.ParseSince(*sinceText, time.Now()); err != nil {
			return misuse(flags, "--since: %v", err)
		}
	}
	if *project != "" {
		dir, err := filepath.Abs(*project)
		if err != nil {
			return fmt.Errorf("find project directory: %w", err)
		}
		filter.Project = realPath(dir)
	}
	store, err := openSettings(*file)
	if err != nil {
		return err
	}
	defer store.Close()
	snapshot := store.Snapshot("")
	if *file != "" {
		compiled := snapshot.Compile(settings.KindTool)
		if err := unnamed(compiled.Doubt); err != nil {
			printDiagnostics(stderr, snapshot, compiled.Diagnostics)
			return err
		}
	}
	found, torn, err := trailview.Show(trailview.Options{
		Filter: filter, Dirs: snapshot.AuditDirs(), Journal: snapshot.Audit().Journal, Lines: *asJSON, Out: stdout,
		Raw: output,
	})
	if err != nil {
		return err
	}
	if torn > 0 {
		display.Fprintf(stderr, "sandbox-sidecar: warning: broken lines that were left out: %d\n", torn)
	}
	switch {
	case found || *asJSON:
	case snapshot.Audit().On():
		fmt.Fprintln(stdout, "nothing was noted")
	default:
		fmt.Fprintln(stdout, `nothing was noted: the setting "audit" is "off"`)
	}
	return nil
}
