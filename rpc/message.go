package rpc

import (
	"fmt"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Messages are sentences that a client shows as they are: one line, and every
// part that a session or a repository chose went through package display.

// maxWithSetting is the length up to which a message names the setting too.
const maxWithSetting = 160

// DenialMessage says what was refused, or what happened to a protected path,
// and, if that is short, which setting grants it.
func DenialMessage(denial spawn.Denial, suggestion settings.Suggestion) string {
	message := denialSentence(string(denial.Access), denial.Target, denial.Process, denial.Count)
	if suggestion.Key == "" {
		return message
	}
	if long := message + " To allow it: " + suggestion.Instruction() +
		"."; utf8.RuneCountInString(long) <= maxWithSetting {
		return long
	}
	return message
}

// AlarmMessage says what happened to a protected path.
func AlarmMessage(alarm spawn.Alarm) string {
	return denialSentence(string(alarm.Kind), alarm.Path, "", 1)
}

// QuestionMessage says what a program waits for.
func QuestionMessage(denial spawn.Denial) string {
	return fmt.Sprintf("%s wants to %s, and waits for your answer.", program(denial.Process, "A program"),
		accessPhrase(string(denial.Access), denial.Target))
}

// DenialText is a denial for a list in a terminal, without a verb and a full
// stop.
func DenialText(denial spawn.Denial) string {
	text := fmt.Sprintf("%s %s", denial.Access, display.Quote(denial.Target))
	if denial.Process != "" {
		text += " by " + display.Quote(denial.Process)
	}
	if denial.Count > 1 {
		text += fmt.Sprintf(", %d times", denial.Count)
	}
	return text
}

func denialSentence(access, target, process string, count int) string {
	path := display.Quote(target)
	switch access {
	case "protected_write":
		return fmt.Sprintf("The sandbox refused to change the protected path %s%s.", path, times(count))
	case "protected_created":
		return fmt.Sprintf("The protected path %s was created while a sandboxed session ran. Check it before you use it.",
			path)
	case "protected_replaced":
		return fmt.Sprintf("The protected path %s was replaced while a sandboxed session ran. Sessions may write to it now.",
			path)
	case "protected_written":
		return fmt.Sprintf("The protected path %s was written in a sandboxed session. Check it before you use it.", path)
	}
	return fmt.Sprintf("The sandbox refused to let %s %s%s.", program(process, "a program"), accessPhrase(access, target),
		times(count))
}

func program(name, unknown string) string {
	if name == "" {
		return unknown
	}
	return display.Quote(name)
}

func accessPhrase(access, target string) string {
	target = display.Quote(target)
	switch access {
	case "read", "write", "create", "remove":
		return access + " " + target
	case "execute":
		return "run " + target
	case "connect_unix", "connect":
		return "connect to " + target
	case "bind":
		return "listen on " + target
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

// projectMessage says how a project's settings stand.
func projectMessage(p settings.Project) string {
	file := display.Quote(p.File)
	switch {
	case !p.Exists:
		return fmt.Sprintf("There is no %s.", file)
	case p.Problem != "":
		return fmt.Sprintf("%s cannot be trusted: %s.", file, display.Line(p.Problem))
	case p.Trusted:
		return fmt.Sprintf("%s is trusted until it changes.", file)
	case len(p.Asks) > 0:
		return fmt.Sprintf("%s asks for more than your sandbox settings allow, and gets none of it.", file)
	}
	return fmt.Sprintf("%s is not trusted: it can only restrict.", file)
}

// explanationMessage says whether something is allowed, and why.
func explanationMessage(x settings.Explanation) string {
	verdict := "Refused"
	if x.Allowed {
		verdict = "Allowed"
	}
	return fmt.Sprintf("%s: %s.", verdict, display.Line(x.Reason))
}

// FindingMessage says what changed while a session ran, and why it matters.
func FindingMessage(f spawn.Finding) string {
	return fmt.Sprintf("%s was %s: %s", display.Quote(f.Path), f.How, display.Line(f.Why))
}
