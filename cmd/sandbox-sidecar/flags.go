//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/commandline"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

// flagSet are the flags of a command.
type flagSet struct {
	*flag.FlagSet
	command commandline.Command
	// help prints the help of the command.
	help func()
}

func newFlags(c command) *flagSet {
	flags := &flagSet{FlagSet: flag.NewFlagSet(c.Name, flag.ContinueOnError), command: c.Command}
	flags.SetOutput(io.Discard) // parse prints what is wrong
	flags.Bool(commandline.VersionFlag, false, "print the version")
	flags.help = func() {
		flags.command.Flags = flags.FlagSet
		described(false).CommandHelp(output, flags.command)
	}
	return flags
}

// parse prints what is wrong with the arguments and returns errUsage, or prints
// what --help or --version asks for and returns exitStatus(0).
func parse(flags *flagSet, args []string) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.help()
		return exitStatus(0)
	case err != nil:
		return misuse(flags, "%s%s", dashed(err), meant(flags, err))
	case flags.Lookup(commandline.VersionFlag).Value.String() == "true":
		showVersion()
		return exitStatus(0)
	}
	return notEmpty(flags)
}

// notEmpty refuses a flag with an empty value. In a script, that is a variable
// that is not set, and what the flag should decide would be as without it.
func notEmpty(flags *flagSet) error {
	var name string
	flags.Visit(func(f *flag.Flag) {
		if f.Value.String() == "" {
			name = f.Name
		}
	})
	if name == "" {
		return nil
	}
	return misuse(flags, "%s is empty", commandline.Dashes(name))
}

// parseNone is parse for a command that takes flags only.
func parseNone(flags *flagSet, args []string) error {
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return misuse(flags, "unexpected argument %s", quoted(flags.Arg(0)))
	}
	return nil
}

// parseCommand is parse for a command that runs another.
func parseCommand(flags *flagSet, args []string) error {
	if err := parse(flags, args); err != nil {
		return err
	}
	switch {
	case flags.NArg() == 0:
		return misuse(flags, "no command given")
	case flags.Arg(0) == "":
		return misuse(flags, "the command is empty")
	}
	return nil
}

// misuse prints the usage, and then what is wrong with the arguments: the last line
// is what people and programs look at.
func misuse(flags *flagSet, format string, args ...any) error {
	described(false).Usage(stderr, flags.command)
	display.Fprintf(stderr, "sandbox-sidecar %s: %s\n", flags.Name(), fmt.Sprintf(format, args...))
	return errUsage
}

// unknownFlag begins the error of package flag about a flag that is not declared.
const unknownFlag = "flag provided but not defined: -"

// namesFlag matches an error of package flag up to the flag that it names. A value
// before that is quoted.
var namesFlag = regexp.MustCompile(`^(flag provided but not defined: |flag needs an argument: |` +
	`invalid (?:boolean )?value "(?:[^"\\]|\\.)*" for (?:flag )?)-([^:]+)`)

// dashed is an error of package flag with the flag as it is typed.
func dashed(err error) string {
	text := err.Error()
	at := namesFlag.FindStringSubmatchIndex(text)
	if at == nil {
		return text
	}
	return text[:at[3]] + commandline.Dashes(text[at[4]:at[5]]) + text[at[5]:]
}

// meant is which flag may have been meant by one that the error says is unknown.
func meant(flags *flagSet, err error) string {
	name, is := strings.CutPrefix(err.Error(), unknownFlag)
	if !is {
		return ""
	}
	flags.command.Flags = flags.FlagSet
	if nearest := flags.command.NearestFlag(name); nearest != "" {
		return ": did you mean " + commandline.Dashes(nearest) + "?"
	}
	return ""
}

// meantWord is which word of the command may have been meant by another.
func meantWord(flags *flagSet, word string) string {
	if nearest := flags.command.NearestWord(word); nearest != "" {
		return ": did you mean " + quoted(nearest) + "?"
	}
	return ""
}

// refuseInside is the error of a command that changes what counts outside, if this
// is inside a session: whoever asks there, only the user outside decides.
func refuseInside(words string) error {
	if !inSession() {
		return nil
	}
	return fmt.Errorf("inside a session nothing is changed: run `sandbox-sidecar %s` in a terminal outside", words)
}

// printJSON prints a value for programs.
func printJSON(value any) error {
	encoder := json.NewEncoder(display.JSONWriter(output))
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// printError prints a line with the error and, if there is one, a line with its
// hint: lower case, no full stop.
func printError(w io.Writer, err error) {
	display.Fprintf(w, "sandbox-sidecar: %v\n", err)
	hint := ""
	var failed *spawn.Error
	var refused *settings.NotTrustedError
	var doubtful *doubtError
	var absent *absentError
	var unjoined *joinError
	switch {
	case errors.As(err, &unjoined):
		hint = unjoined.hint()
	case errors.As(err, &absent):
		hint = absent.hint()
	case errors.As(err, &doubtful):
		hint = doubtful.hint()
	case errors.As(err, &failed):
		hint = failed.Hint
	case errors.As(err, &refused):
		hint = refused.Hint
	}
	if hint != "" {
		display.Fprintf(w, "sandbox-sidecar: hint: %s\n", hint)
	}
}

// projectFlags are the flags of commands that are about one project.
type projectFlags struct {
	project, kind, settings string
	mode                    string // of --mode, or ""
	sandbox                 bool   // --sandbox
	serves                  bool   // asks for the settings again and again
	agent                   string // of --agent, or ""
	program                 string // of --program, or ""
	network                 bool   // --network
	found                   *namedAgent
}

func addProjectFlags(flags *flagSet, kind settings.Kind) *projectFlags {
	var p projectFlags
	flags.StringVar(&p.project, "project", "", "`DIR`: project directory; without it, the current directory")
	flags.StringVar(&p.kind, "kind", string(kind), "`terminal|tool`: kind of session")
	flags.StringVar(&p.settings, "settings", "", "`FILE`: settings to read instead of your own")
	return &p
}

// addModeFlags adds the flags that count more than every settings file.
func (p *projectFlags) addModeFlags(flags *flagSet) {
	flags.BoolVar(&p.sandbox, "sandbox", false, "sandbox it, whatever the settings say")
	p.addModeFlag(flags)
	flags.StringVar(&p.agent, "agent", "",
		"`NAME`: an agent, whose set counts too; a tool, unless --kind says otherwise")
	p.addAgentFlags(flags)
}

func (p *projectFlags) addModeFlag(flags *flagSet) {
	flags.StringVar(&p.mode, "mode", "", "`strict|standard|relaxed|off`: mode, whatever the settings say")
}

// addAgentFlags adds the flags of an agent that --agent or an argument names.
func (p *projectFlags) addAgentFlags(flags *flagSet) {
	flags.StringVar(&p.program, "program", "", "`FILE`: the agent's program, instead of that in PATH")
	flags.BoolVar(&p.network, "network", false, "let the agent reach what your settings allow, not its hosts alone")
}

// under is what the command line says, as a refusal keeps it. A refusal says by
// itself that there was a sandbox.
func (p *projectFlags) under() refusals.Under {
	return refusals.Under{Mode: p.mode, Agent: p.agent, Network: p.network}
}

// layer is what the command line says, as settings; nil for nothing.
func (p *projectFlags) layer(flags *flagSet) ([]byte, error) {
	if (p.program != "" || p.network) && p.agent == "" {
		return nil, misuse(flags, "--program and --network are for an agent: name one with --agent")
	}
	switch {
	case given(flags, "mode") && !slices.Contains(settings.Modes(), p.mode):
		return nil, misuse(flags, `--mode: expected "strict", "standard", "relaxed" or "off", found %s`, quoted(p.mode))
	case p.agent != "" && p.mode == string(settings.ModeOff):
		return nil, misuse(flags, "an agent and --mode off contradict each other: start it without this program")
	case p.sandbox && p.mode == string(settings.ModeOff):
		return nil, misuse(flags, "--sandbox and --mode off contradict each other")
	case p.agent != "":
		return p.agentLayer()
	case p.mode != "":
		return fmt.Appendf(nil, `{"terminal": {"sandbox": {"mode": %q}}}`, p.mode), nil
	case p.sandbox:
		return []byte(sandboxLayer), nil
	}
	return nil, nil
}

// agentLayer are the settings of --agent, with those of --mode: the agent is
// sandboxed, and reaches its hosts alone.
func (p *projectFlags) agentLayer() ([]byte, error) {
	block := map[string]any{"enabled": true, "apply_to": settings.ApplyToBoth}
	if p.mode != "" {
		block["mode"] = p.mode
	}
	if !p.network {
		block["allow_network"] = false
	}
	return json.Marshal(map[string]any{"terminal": map[string]any{"sandbox": block}})
}

// sandboxLayer are the settings of --sandbox.
const sandboxLayer = `{"terminal": {"sandbox": {"enabled": true, "apply_to": "both"}}}`

// open checks the flags and opens the settings. The caller closes the store.
func (p *projectFlags) open(flags *flagSet) (*settings.Store, *compile.Snapshot, settings.Kind, error) {
	kind := settings.Kind(p.kind)
	if p.agent != "" && !given(flags, "kind") {
		kind = settings.KindTool // as `agent` is
	}
	if kind != settings.KindTerminal && kind != settings.KindTool {
		return nil, nil, "", misuse(flags, `--kind: expected "terminal" or "tool", found %s`, quoted(p.kind))
	}
	project := filepath.Clean(p.project)
	if !filepath.IsAbs(p.project) {
		dir, err := workingDir()
		if err != nil {
			return nil, nil, "", fmt.Errorf("find project directory: %w", err)
		}
		project = filepath.Join(dir, p.project)
	}
	if info, err := fsguard.Stat(project); errors.Is(err, fsguard.ErrNoAnswer) {
		return nil, nil, "", fmt.Errorf("use project directory: %w", err)
	} else if err != nil || !info.IsDir() {
		return nil, nil, "", misuse(flags, "--project: %s is not a directory", quoted(project))
	}
	p.project = project
	layer, err := p.layer(flags)
	if err != nil {
		return nil, nil, "", err
	}
	options := settings.Options{UserPath: p.settings, Command: layer, Once: !p.serves}
	agent, err := p.findAgent(flags)
	if err != nil {
		return nil, nil, "", err
	}
	if agent != nil {
		p.sandbox, options.Agent = true, agent.layer(project)
	}
	store, err := openStore(options)
	if err != nil {
		return nil, nil, "", err
	}
	return store, store.Snapshot(project), kind, nil
}

// openSettings opens the settings without watching them; user is a file to read
// instead of the user's own, or "".
func openSettings(user string) (*settings.Store, error) {
	return openStore(settings.Options{UserPath: user, Once: true})
}

// openStore opens the settings, with what is the same for all commands.
func openStore(options settings.Options) (*settings.Store, error) {
	if options.UserPath != "" {
		var err error
		if options.UserPath, err = filepath.Abs(options.UserPath); err != nil {
			return nil, fmt.Errorf("find settings file: %w", err)
		}
	}
	options.Env, options.Guarded, options.HostsGap = os.Environ(), program(), hostsGap
	options.Complete, options.Recorder = complete, &trail
	return settings.Open(options)
}

// given reports whether a flag is on the command line.
func given(flags *flagSet, name string) bool {
	found := false
	flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
