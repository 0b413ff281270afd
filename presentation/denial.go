package presentation

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// maxWithSetting is the length in characters up to which a message also names
// the setting that would allow the access.
const maxWithSetting = 160

// Suggest says what would allow a denied access. If the settings allow it and
// the session could not get it, the hint says why.
func Suggest(snapshot *compile.Snapshot, kind settings.Kind, denial spawn.Denial) (explain.Suggestion, error) {
	if denial.Detail != "" {
		return explain.Suggestion{Hint: advice(denial)}, nil
	}
	if denial.Name != "" && leadsHere(denial.Target) {
		return explain.Suggestion{Hint: OfThisMachine}, nil
	}
	s, err := explain.Suggest(snapshot, kind, string(denial.Access), denial.Target, denial.Process)
	if denial.Datagram && (s.Allowed || s.Key != "" && s.Entry()) {
		return explain.Suggestion{Hint: OnlyTCP}, err
	}
	if denial.Opened {
		return explain.Suggestion{Hint: OnlyToSignIn}, err
	}
	if denial.Greeting != "" && s.Allowed {
		return explain.Suggestion{Hint: OnlyPlainTLS}, err
	}
	if err == nil && s.Allowed && denial.Lacking != "" {
		s.Hint = denial.Lacking
	}
	if command := WayOn(denial); err == nil && s.Protected && command != "" {
		s.Hint = command
	}
	if err == nil && denial.Worktree == spawn.WorktreePlace && s.Key == "" && !s.Allowed {
		s.Hint = worktreeElsewhere
	}
	return s, err
}

// installers are programs that write hooks of git, and the commands that do so
// outside the sandbox.
var installers = map[string]string{"pre-commit": "pre-commit install", "git-lfs": "git lfs install --local"}

// WayOn is what a user does about a refused change of a protected path, for
// programs that many use: hooks of git, files that git itself replaces, and working
// trees that it makes. It is "" if that is not known.
func WayOn(denial spawn.Denial) string {
	switch command, known := installers[denial.Process]; {
	case denial.Worktree == spawn.WorktreePlace:
		return worktreeElsewhere
	case denial.Worktree == spawn.WorktreeContent:
		return worktreeOutside
	case ofWorktrees(denial.Target):
		return agentsWorktree
	case denial.Process == "git" && !strings.Contains(denial.Target+"/", "/.git/") && replaces(string(denial.Access)):
		return halfWay
	case known && strings.Contains(denial.Target, "/hooks/"):
		return "run once outside the sandbox: " + command
	case strings.Contains(denial.Target, "/.husky/_"):
		return "husky writes hooks only outside the sandbox; inside, set HUSKY=0, as in: HUSKY=0 npm install"
	}
	return ""
}

// worktreeElsewhere is for a working tree that git could not make at its place. git
// makes the branch first, so with -b the same command fails outside, too. It makes
// none for --detach, and for a branch that is there.
const worktreeElsewhere = `git may have made the branch: "git worktree add tree BRANCH" in the project, or ` +
	`make one outside`

// worktreeOutside is for one that git could not fill, because a file in it is
// protected. git has removed it again, and left a branch that it made.
const worktreeOutside = `if you trust it, outside: "git worktree add PATH BRANCH"; git may have made the branch`

// agentsWorktree is for a directory in which an agent keeps working trees, beside
// what it acts on.
const agentsWorktree = `make it elsewhere in the project, as with "git worktree add tree", or outside and open that`

// agentsDirs are the directories in which agents keep theirs, as "worktrees".
var agentsDirs = []string{".claude", ".codex", ".gemini"}

// ofWorktrees reports whether a path is such a directory, or lies in one.
func ofWorktrees(path string) bool {
	return slices.ContainsFunc(agentsDirs, func(dir string) bool {
		return strings.Contains(path+"/", "/"+dir+"/worktrees/")
	})
}

// halfWay says how to finish a command of git that could not replace a file. git
// goes on with the other files, and gives up after them. git stash keeps what
// the user has changed, too. A checkout does not give up: it keeps the old file.
const halfWay = `if you trust it, outside: "git stash -u" and the same again; if git went on: "git restore" this file`

// replaces reports whether git does this to put another file in place.
func replaces(access string) bool {
	return access == "remove" || access == "create" || access == "write"
}

// OfThisMachine is the advice for a name that leads to this machine itself, and
// not to the localhost of a session.
const OfThisMachine = `it leads to this machine, whose services are "localhost:PORT" in "allowed_hosts"`

// leadsHere reports whether the address of a name is one of this machine's alone.
func leadsHere(target string) bool {
	to, err := netip.ParseAddrPort(target)
	return err == nil && (to.Addr().Unmap().IsLoopback() || to.Addr().IsUnspecified())
}

// OnlyTCP says why no setting opens a single host for datagrams.
const OnlyTCP = "single hosts are reached by TCP alone; most programs that send datagrams fall back to it"

// OnlyToSignIn says what a placeholder is for.
const OnlyToSignIn = `a key of "credentials" is sent to its own "hosts", in a header that signs in`

// OnlyPlainTLS says why no entry lets a greeting of TLS pass.
const OnlyPlainTLS = `of TLS "allowed_hosts" passes the form that all servers read alike, and no entry passes another`

// Denial is the notification of a denial. The suggestion is the
// setting that would allow the access; its zero value means that none would.
func Denial(sessionID string, denial spawn.Denial, suggestion explain.Suggestion) protocol.DeniedParams {
	params := protocol.DeniedParams{
		SessionID: sessionID, Access: string(denial.Access), Target: denial.Target, Process: process(denial),
		Count: denial.Count, Source: protocol.DenialSource(denial.Source), Missed: denial.Missed,
		Detail:  display.Line(cmp.Or(denial.Detail, denial.Greeting)),
		Hint:    display.Line(suggestion.Hint),
		Message: denialMessage(denial, suggestion),
		Line:    uncounted(denial),
	}
	if suggestion.Key != "" {
		params.Suggestion = suggested(suggestion)
	}
	return params
}

// Alarm is the notification of what happened to a protected path.
func Alarm(sessionID string, alarm spawn.Alarm) protocol.DeniedParams {
	return protocol.DeniedParams{
		SessionID: sessionID, Access: string(alarm.Kind), Target: alarm.Path, Count: 1, Message: alarmMessage(alarm),
	}
}

// DenialLine is a denial for a list in a terminal, without a verb and a full
// stop.
func DenialLine(denial spawn.Denial) string {
	if denial.Unasked {
		denial.Unasked = false
		return fmt.Sprintf("%s (not asked: %d questions were refused in a minute)", DenialLine(denial),
			spawn.MostRefusals)
	}
	if denial.Detail != "" {
		return fmt.Sprintf("git's %s%s", display.Line(denial.Detail), times(denial.Count))
	}
	text := string(denial.Access) + " " + display.Quote(denial.Target) + asked(denial.Name) + greeted(denial.Greeting)
	if denial.Access == "sign" {
		text = phrase(denial)
	}
	if denial.Process != "" {
		text += " by " + display.Quote(denial.Process)
	}
	if denial.Background {
		text += " in the background"
	}
	if denial.Count > 1 {
		text += fmt.Sprintf(", %d times", denial.Count)
	}
	return text
}

// PromptLine is what a shell shows about a denial before its next prompt. step says
// what to do; "" for nothing.
func PromptLine(denial spawn.Denial, step string) string {
	text := "sandbox-sidecar: refused: " + DenialLine(denial)
	if step != "" {
		text += " (" + step + ")"
	}
	return display.Fold(text, 2)
}

// uncounted is DenialLine without the count.
func uncounted(denial spawn.Denial) string {
	denial.Count = 1
	return DenialLine(denial)
}

// AlarmLine is what happened to a protected path, for a line in a terminal,
// without a full stop.
func AlarmLine(alarm spawn.Alarm) string {
	return strings.TrimSuffix(alarmMessage(alarm), ".")
}

// Findings are files that changed while a session ran, as terminal/close lists
// them.
func Findings(list []spawn.Finding) []protocol.Finding {
	out := []protocol.Finding{}
	for _, f := range list {
		out = append(out, protocol.Finding{
			Path: f.Path, Others: f.Others, Change: string(f.How), Why: f.Why, Message: FindingLine(f),
		})
	}
	return out
}

// advice is what the user may do about a denial that has a detail.
func advice(denial spawn.Denial) string {
	if denial.Command != "" {
		return "if you want this, run outside the sandbox: " + display.Line(denial.Command)
	}
	return "if you want this, do it outside the sandbox"
}

// suggested is a setting that would allow an access.
func suggested(s explain.Suggestion) *protocol.Suggestion {
	return &protocol.Suggestion{
		Setting: s.Key, Value: s.JSON(), Message: s.Instruction(), Instruction: s.InstructionInFull(),
	}
}

// process names the process of a denial; nil if the kernel did not say which it
// was.
func process(denial spawn.Denial) *protocol.Process {
	if denial.PID == 0 {
		return nil
	}
	return &protocol.Process{PID: denial.PID, Name: denial.Process}
}

// denialMessage says what was refused and, if that stays short, which setting
// would allow it.
func denialMessage(denial spawn.Denial, suggestion explain.Suggestion) string {
	if denial.Unasked {
		denial.Unasked = false
		return fmt.Sprintf("%s You were not asked, because %d questions were refused in a minute.",
			denialMessage(denial, explain.Suggestion{}), spawn.MostRefusals)
	}
	if denial.Detail != "" {
		return fmt.Sprintf("The sandbox refused git's %s%s.", display.Line(denial.Detail), times(denial.Count))
	}
	message := denialSentence(string(denial.Access), denial)
	if suggestion.Key == "" {
		return message
	}
	long := message + " To allow it: " + suggestion.Instruction() + "."
	if utf8.RuneCountInString(long) <= maxWithSetting {
		return long
	}
	return message
}

// alarmMessage says what happened to a protected path.
func alarmMessage(alarm spawn.Alarm) string {
	if alarm.Why != "" {
		return fmt.Sprintf("Since a sandboxed session began git has new content for %s: %s. Check it before you run "+
			"git outside.", display.Quote(alarm.Path), display.Line(alarm.Why))
	}
	var happened spawn.Denial
	happened.Target, happened.Count = alarm.Path, 1
	return denialSentence(string(alarm.Kind), happened)
}

// maxNamed bounds the paths that a line names of a group.
const maxNamed = 3

// FindingLine says what changed while a session ran, and why it matters, without
// a full stop.
func FindingLine(f spawn.Finding) string {
	if len(f.Others) == 0 {
		return fmt.Sprintf("%s was %s: %s", display.Quote(f.Path), f.How, display.Line(f.Why))
	}
	named := []string{display.Quote(f.Path)}
	for _, path := range f.Others[:min(len(f.Others), maxNamed-1)] {
		named = append(named, display.Quote(path))
	}
	text := strings.Join(named, ", ")
	if more := f.Total - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%d %s were %s: %s (%s)", f.Total, f.Group, f.How, text, display.Line(f.Why))
}

func denialSentence(access string, denial spawn.Denial) string {
	path, count := display.Quote(denial.Target), denial.Count
	switch access {
	case "protected_write":
		return fmt.Sprintf("The sandbox refused to change the protected path %s%s.", path, times(count))
	case "protected_created":
		return fmt.Sprintf("The protected path %s was created while a sandboxed session ran. Check it "+
			"before you use it.", path)
	case "protected_replaced":
		return fmt.Sprintf("The protected path %s was replaced while a sandboxed session ran. Sessions may "+
			"write to it now.", path)
	case "protected_written":
		return fmt.Sprintf("The protected path %s was written in a sandboxed session. Check it before you use it.",
			path)
	}
	return fmt.Sprintf("The sandbox refused to let %s %s%s.", program(denial.Process, "a program"), phrase(denial),
		times(count))
}

// program names a program; unknown stands for one without a name.
func program(name, unknown string) string {
	if name == "" {
		return unknown
	}
	return display.Quote(name)
}

// asked is the name that led to an address, behind that.
func asked(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (the address of %s)", display.Quote(name))
}

// greeted says what of the first bytes was refused, behind the target.
func greeted(greeting string) string {
	if greeting == "" {
		return ""
	}
	return fmt.Sprintf(" by %s", display.Line(greeting))
}

// phrase is an access as a verb with its object: `read "/a"`.
func phrase(denial spawn.Denial) string {
	access, target := string(denial.Access), display.Quote(denial.Target)
	switch access {
	case "read", "write", "create", "remove":
		return access + " " + target
	case "execute":
		return "run " + target
	case "connect_unix", "connect":
		return "connect to " + target + asked(denial.Name) + greeted(denial.Greeting)
	case "bind":
		return "listen on " + target
	case "sign":
		if denial.Name == "" {
			return "use the key " + target
		}
		return fmt.Sprintf("use the key %s (%s)", target, display.Line(denial.Name))
	case "agent":
		return "have the ssh-agent " + target
	case "signal":
		return "signal process " + target
	}
	return fmt.Sprintf("use %s (%s)", target, display.Text(access))
}

func times(count int) string {
	if count < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", count)
}
