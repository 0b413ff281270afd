//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

// mostRetries bounds how often --yes tries again if the file has changed meanwhile.
const mostRetries = 10

// allowing is one run of allow.
type allowing struct {
	flags    *flagSet
	project  projectFlags
	store    *settings.Store // of sessions without a command line of their own
	snapshot *compile.Snapshot
	dir      string // the project's
	others   map[refusals.Under]*settings.Store
	scope    settings.Scope
	kept     []refusals.Refusal // newest first
	yes      bool
	retries  int    // after changes of others
	pattern  string // what is allowed is all that it matches; "" if that is a refusal
}

// allow lists what sessions of a project were refused, and writes the setting
// that allows one of it.
func allow(flags *flagSet, args []string) error {
	dir := flags.String("project", "", "`DIR`: project directory; without it, the current directory")
	ofProject := flags.Bool("in-project", false, "write the project's settings instead of your own")
	file := flags.String("settings", "", "`FILE`: settings to change instead of your own")
	yes := flags.Bool("yes", false, "do not ask")
	undo := flags.Bool("undo", false, "take the last change back")
	write := flags.Bool("write", false, "PATH is to be written")
	execute := flags.Bool("execute", false, "PATH is to be executed")
	asJSON := flags.Bool("json", false, "print the list as JSON, for programs")
	var words []string
	// Flags may follow the words, as people write them.
	for rest := args; ; rest = flags.Args()[1:] {
		if err := parse(flags, rest); err != nil {
			return err
		}
		if flags.NArg() == 0 {
			break
		}
		words = append(words, flags.Arg(0))
	}
	switch {
	case len(words) > 1:
		return misuse(flags, "unexpected argument %s", quoted(words[1]))
	case *undo && len(words) > 0:
		return misuse(flags, "--undo takes the last change back, whatever it was: leave out %s", quoted(words[0]))
	case len(words) == 1 && words[0] == "":
		return misuse(flags, "what to allow is empty")
	case *undo && (*write || *execute || *ofProject):
		return misuse(flags, "--undo takes the last change back, whatever it was: leave the other flags out")
	case len(words) == 0 && !*undo && (*write || *execute || *yes):
		return misuse(flags, "--write, --execute and --yes are for what to allow: name it")
	case *write && *execute:
		return misuse(flags, "--write and --execute: one of both")
	case *asJSON && (len(words) > 0 || *undo):
		return misuse(flags, "--json is for the list of what was refused")
	}
	if inSession() { // which may not read what is listed
		switch {
		case *undo:
			words = []string{"--undo"}
		case len(words) == 0:
			return errors.New("inside a session nothing is listed; in a terminal outside: sandbox-sidecar allow")
		}
		return fmt.Errorf("inside a session nothing is written; in a terminal outside: sandbox-sidecar allow %s",
			display.Text(words[0]))
	}
	a := &allowing{flags: flags, yes: *yes, scope: settings.ScopeUser}
	if *ofProject {
		a.scope = settings.ScopeProject
	}
	if err := a.open(*dir, *file); err != nil {
		return err
	}
	defer a.close()
	switch {
	case *undo:
		return a.undo()
	case *asJSON:
		return a.listJSON()
	case len(words) == 0:
		return a.list()
	}
	access := explain.Read
	switch {
	case *write:
		access = explain.Write
	case *execute:
		access = explain.Execute
	}
	refusal, err := a.find(words[0], access, *write || *execute)
	if err != nil {
		return err
	}
	return a.allow(refusal)
}

// open opens the settings and what is kept of the project. Settings that are
// wrong are an error, which names the line. They are those of a sandboxed session,
// whatever they say: without a sandbox nothing is refused.
func (a *allowing) open(dir, file string) error {
	a.project = projectFlags{project: dir, kind: string(settings.KindTerminal), settings: file, sandbox: true}
	store, snapshot, _, err := a.project.open(a.flags)
	if err != nil {
		return err
	}
	a.store, a.snapshot, a.dir = store, snapshot, a.project.project
	compiled := snapshot.Compile(settings.KindTool)
	if compiled.Doubt != nil {
		printDiagnostics(stderr, snapshot, compiled.Diagnostics)
		store.Close()
		return &doubtError{doubt: compiled.Doubt}
	}
	a.kept, err = refusals.Read(places.Of(os.Getenv).Refusals(), compiled.Policy.Project)
	if err != nil {
		store.Close()
	}
	return err
}

func (a *allowing) close() {
	a.store.Close()
	for _, store := range a.others {
		store.Close()
	}
}

// under opens the settings as they count with a command line.
func (a *allowing) under(line refusals.Under) (*settings.Store, error) {
	if line == (refusals.Under{}) {
		return a.store, nil
	}
	if store := a.others[line]; store != nil {
		return store, nil
	}
	if line.Agent != "" {
		if _, err := settings.FindAgent(line.Agent, a.dir, os.Environ()); err != nil {
			return nil, err
		}
	}
	project := a.project
	project.mode, project.agent, project.network = line.Mode, line.Agent, line.Network
	store, _, _, err := project.open(a.flags)
	if err != nil {
		return nil, err
	}
	if a.others == nil {
		a.others = map[refusals.Under]*settings.Store{}
	}
	a.others[line] = store
	return store, nil
}

// offer is what allow would do about a refusal, and the settings that it would
// change.
func (a *allowing) offer(refusal refusals.Refusal) (offer, *settings.Store) {
	store, err := a.under(refusal.Under)
	if err != nil {
		return offer{why: err.Error()}, nil
	}
	return offerFor(store, store.Snapshot(a.dir), wish{
		scope: a.scope, kind: settings.Kind(refusal.Kind), denial: denialOf(refusal), line: refusal.Under,
		pattern: a.pattern,
	}), store
}

// undo takes the last change back.
func (a *allowing) undo() error {
	file, undone, err := a.store.Undo()
	if files := settings.FilesToWrite(a.snapshot); errors.Is(err, settings.ErrNothingToUndo) && len(files) > 0 {
		return fmt.Errorf("%w: what is allowed still, take out of %s yourself", err, quoted(files[len(files)-1]))
	}
	if errors.Is(err, settings.ErrChanged) {
		return fmt.Errorf("take back: %s has changed since: take %s out of %q yourself", quoted(file),
			quoted(undone.Value), undone.Setting())
	}
	if err != nil {
		return err
	}
	display.Fprintf(stdout, "taken back: %s of %q in %s\n", quoted(undone.Value), undone.Setting(), quoted(file))
	a.printRunning("what it had allowed")
	return nil
}

// denialOf is a refusal as exec has it.
func denialOf(r refusals.Refusal) spawn.Denial {
	return spawn.Denial{Denial: r.Denial, Lacking: r.Lacking, Number: r.Number}
}

// find returns what a user names: a number of the list, a path or a host. What
// sessions were refused there last counts, else the access.
func (a *allowing) find(word string, access explain.Attempt, given bool) (refusals.Refusal, error) {
	if number, err := strconv.Atoi(word); err == nil && number >= 0 {
		if given {
			return refusals.Refusal{}, misuse(a.flags,
				"--write and --execute are for a path: %d is a refusal, of one access", number)
		}
		for _, refusal := range a.kept {
			if refusal.Number == number {
				return refusal, nil
			}
		}
		return refusals.Refusal{}, fmt.Errorf("%d is no refusal of this project: `sandbox-sidecar allow` lists them",
			number)
	}
	word, err := a.hostOfURL(word)
	if err != nil {
		return refusals.Refusal{}, err
	}
	target, isPath, err := a.target(word)
	if err != nil {
		return refusals.Refusal{}, err
	}
	if !isPath && given {
		return refusals.Refusal{}, misuse(a.flags, "--write and --execute are for a path: %s is a host", quoted(target))
	}
	switch {
	case !isPath:
		access = explain.Connect
	case !given && isSocket(target):
		access = explain.ConnectUnix // reading opens no socket
	}
	at := slices.IndexFunc(a.kept, func(r refusals.Refusal) bool {
		return r.Target == target && r.Detail == "" && !r.Datagram && (!given || string(r.Access) == string(access))
	})
	if at >= 0 {
		// What a session tried last need not be what the user means.
		last := a.kept[at].Access
		if changes := []platform.Refused{
			platform.RefusedWrite, platform.RefusedCreate, platform.RefusedRemove, platform.RefusedExecute,
		}; isPath && !given && a.yes && slices.Contains(changes, last) {
			return refusals.Refusal{}, misuse(a.flags,
				"a session tried to %s it: with --yes say --write or --execute, or its number", last)
		}
		return a.kept[at], nil
	}
	wanted := refusals.Refusal{Kind: string(settings.KindTerminal)}
	wanted.Denial = platform.Denial{Access: platform.Refused(access), Target: target, Count: 1}
	return wanted, nil
}

func isSocket(path string) bool {
	info, err := fsguard.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// anyName stands for each name that a pattern of hosts matches.
const anyName = "any-name"

// hostOfURL is the host and the port of a URL, and else the word as it is. The
// schemes of "allowed_hosts" stay.
func (a *allowing) hostOfURL(word string) (string, error) {
	scheme, rest, is := strings.Cut(word, "://")
	if !is {
		return word, nil
	}
	scheme = strings.ToLower(scheme)
	port, known := map[string]string{"https": "443", "http": "80", "tcp": "", "tls": ""}[scheme]
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.IndexAny(host, "?#"); at >= 0 {
		host, path = host[:at], host[at:]
	}
	host = host[strings.LastIndex(host, "@")+1:]
	switch {
	case !known || host == "":
		return "", misuse(a.flags, "%s is no URL of a host that is known: write HOST:PORT", quoted(word))
	case path != "":
		display.Fprintf(stdout, "note: that opens all of %s, not only what the URL names\n", quoted(host))
	}
	if port == "" {
		return scheme + "://" + host, nil
	}
	if explicit, err := url.Parse("//" + host); err == nil && explicit.Port() == "" {
		host = strings.TrimSuffix(host, ":") + ":" + port
	}
	return host, nil
}

// target is the path or the host that a word names. A word without a slash may
// be both, and one without a dot and a port is neither: "docs" can be a mistake.
func (a *allowing) target(word string) (target string, path bool, err error) {
	name := word
	if rest, is := strings.CutPrefix(word, "*."); is {
		name = anyName + "." + rest
	}
	host, notHost := explain.ParseTarget(explain.Connect, name)
	url := strings.Contains(word, "://")
	plain := url || !strings.ContainsRune(word, '/') && !strings.HasPrefix(word, "~") && !strings.HasPrefix(word, ".")
	_, missing := fsguard.Lstat(filepath.Join(a.here(), word))
	if notHost == nil && !strings.ContainsAny(word, ".:") && word != "localhost" {
		notHost = errors.New("a host has a dot or a port, a path a slash")
	}
	switch {
	case plain && !url && notHost == nil && missing == nil:
		return "", false, misuse(a.flags, "%s is a file here and may be a host: write %s or %s", quoted(word),
			display.Text("./"+word), display.Text(host))
	case plain && notHost == nil:
		if name != word || strings.HasPrefix(word, "tls://") {
			entry, err := hosts.ParseAllowed(word)
			if err != nil {
				return "", false, misuse(a.flags, "%s: %v", quoted(word), err)
			}
			a.pattern = entry.String()
		}
		return a.machines(host), false, nil
	case plain && (url || missing != nil):
		return "", false, misuse(a.flags, "%s is no number, file or host: %v", quoted(word), notHost)
	case strings.HasPrefix(word, "~"):
		if word, err = a.snapshot.Host.Expand(word, ""); err != nil {
			return "", false, misuse(a.flags, "%v", err)
		}
	case !filepath.IsAbs(word):
		word = filepath.Join(a.here(), word)
	}
	word = filepath.Clean(word)
	if real := realPath(word); real != "" {
		word = real
	}
	return word, true, nil
}

// machines is the target for a host that a user names outside: there localhost
// is the machine's, for which sessions without the network have another name.
func (a *allowing) machines(host string) string {
	port, is := strings.CutPrefix(host, "localhost:")
	if !is || a.snapshot.Reasons(settings.KindTerminal).Policy.Network.Allowed {
		return host
	}
	return hosts.HostName + ":" + port
}

// here is the working directory; "" if there is none.
func (a *allowing) here() string {
	dir, _ := workingDir()
	return dir
}

// allow shows what it writes, asks, and writes it.
func (a *allowing) allow(refusal refusals.Refusal) error {
	denial := denialOf(refusal)
	offer, store := a.offer(refusal)
	if a.pattern != "" {
		denial.Target = a.pattern
	}
	switch {
	case offer.suggestion.Allowed && offer.why == "":
		display.Fprintf(stdout, "allowed already, for sessions that start from now on: %s\n",
			presentation.DenialLine(denial))
		return nil
	case offer.proposal == nil:
		display.Fprintf(stderr, "sandbox-sidecar: not allowed: %s\n", presentation.DenialLine(denial))
		for _, line := range offer.lines() {
			display.Fprintf(stderr, "sandbox-sidecar: %s\n", line)
		}
		return exitStatus(1)
	}
	display.Fprintf(stdout, "%s: %s\n", quoted(offer.proposal.File), offer.suggestion.InstructionInFull())
	printLines("- ", offer.proposal.Gone)
	printLines("+ ", offer.proposal.Lines)
	careful := offer.suggestion.Hint
	if careful != "" {
		display.Fprintf(stdout, "%s\n", note(careful))
	}
	if err := a.confirm(careful != ""); err != nil {
		return err
	}
	err := store.Confirm(offer.proposal)
	if errors.Is(err, settings.ErrChanged) && a.yes && a.retries < mostRetries {
		a.retries++ // another shell was first, and what it has written counts by now
		return a.allow(refusal)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "Allowed for sessions that start from now on. To take it back: sandbox-sidecar allow --undo")
	a.printRunning("it")
	return nil
}

// printLines prints lines of a file. They are not folded, but as in the file.
func printLines(mark string, lines []string) {
	for _, line := range lines {
		line = strings.ReplaceAll(line, "\t", "    ")
		text := strings.TrimLeft(line, " ")
		fmt.Fprintln(output, mark+line[:len(line)-len(text)]+display.Shorten(display.Escape(text), display.MaxLine))
	}
}

// confirm asks whether to write. Only the whole word counts, typed on the
// terminal: what opens something outside is never written by --yes.
func (a *allowing) confirm(careful bool) error {
	switch {
	case a.yes && !careful:
		return nil
	case a.yes, careful && !hasTerminal():
		return errTyped
	case !hasTerminal():
		return misuse(a.flags, "there is no terminal to ask on: use --yes")
	case output.err != nil:
		return output.err // nobody has seen it
	}
	answer := ""
	terminal := dialogue{terminal: os.Stdin}
	terminal.hold(func() {
		if terminal.control(flushInput) != nil {
			return
		}
		fmt.Fprint(stdout, "Write this? Type yes, or press Enter to leave it: ")
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			fmt.Fprintln(stdout)
		}
		answer = strings.TrimSpace(line)
	})
	if answer != "yes" {
		fmt.Fprintln(stdout, "nothing was written")
		return exitStatus(1)
	}
	return nil
}

// hasTerminal reports whether there is somebody to ask.
func hasTerminal() bool { return isTerminal(os.Stdin) && isTerminal(os.Stdout) }

var errTyped = errors.New("nothing was written: that leads out of the sandbox, so it needs your yes on a terminal")

// printRunning names the sessions that a change is too late for.
func (a *allowing) printRunning(what string) {
	var names []string
	for _, refusal := range a.kept {
		l := refusal.Leader
		name := fmt.Sprintf("%s (process %d)", quoted(filepath.Base(l.Program)), l.PID)
		if l.Running() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		display.Fprintf(stdout, "Sessions that run keep their policy without %s: %s\n", what, strings.Join(names, ", "))
	}
}
