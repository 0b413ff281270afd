package presentation

import (
	"context"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Question is what the user is asked about a denial, without the session's id,
// and the setting that "project" and "user" would write. It is false if the
// user must not be asked: credentials, protected paths, and accesses that no
// setting allows are not to be opened by one click. A change of one setting of
// git can be allowed, as the question names it. In a directory that an answer has
// opened there is no question, and only may counts.
func Question(snapshot *compile.Snapshot, kind settings.Kind, denial spawn.Denial) (
	question protocol.RequestAccessParams, suggestion explain.Suggestion, may bool,
) {
	if denial.Detail != "" {
		return questionOfGit(denial), explain.Suggestion{}, denial.Whole != ""
	}
	if denial.Access == "sign" {
		return questionOfKey(denial), explain.Suggestion{}, true
	}
	suggestion, err := explain.Suggest(snapshot, kind, string(denial.Access), denial.Target, denial.Process)
	ofUser := private(suggestion, denial)
	switch {
	case err == nil && denial.Opened:
		// An answer may have written the setting that allows it by now.
		may = !ofUser && (suggestion.Allowed || askable(suggestion)) &&
			explain.Unseen(snapshot, kind, string(denial.Access), denial.Target)
		return protocol.RequestAccessParams{}, explain.Suggestion{}, may
	case err != nil || !askable(suggestion):
		return protocol.RequestAccessParams{}, explain.Suggestion{}, false
	}
	question = protocol.RequestAccessParams{
		Access: string(denial.Access), Target: denial.Target, Process: process(denial),
		Hint: display.Line(suggestion.Hint), Message: questionMessage(denial),
		Choices:    []protocol.Decision{protocol.DecisionDeny},
		Suggestion: suggested(suggestion),
	}
	if !ofUser && !denial.Change {
		question.Choices = append(question.Choices, protocol.DecisionOnce, protocol.DecisionSession)
	}
	switch {
	case !ofUser && opens(snapshot, kind, denial):
		question.Directory = denial.Directory
		question.Choices = append(question.Choices, protocol.DecisionDirectory)
	case denial.Change: // nothing would allow this one
		return protocol.RequestAccessParams{}, explain.Suggestion{}, false
	}
	for _, scope := range []settings.Scope{settings.ScopeProject, settings.ScopeUser} {
		if settings.Allowable(snapshot, scope, suggestion) == nil {
			question.Choices = append(question.Choices, protocol.Decision(scope))
		}
	}
	// A no needs no question.
	return question, suggestion, len(question.Choices) > 1
}

// opens reports whether an answer may open the whole directory that a denial is in:
// whether a grant of it would be suggested, and it would open the target, too.
func opens(snapshot *compile.Snapshot, kind settings.Kind, denial spawn.Denial) bool {
	if denial.Directory == "" || !explain.Unseen(snapshot, kind, string(denial.Access), denial.Target) {
		return false
	}
	access := "write"
	if denial.Access == "read" {
		access = "read"
	}
	s, err := explain.Suggest(snapshot, kind, access, denial.Directory, denial.Process)
	return err == nil && askable(s) && s.Setting() != "toolchains"
}

// DirectoryLine says what the answer that opens the directory of a question allows;
// "" if that is no choice.
func DirectoryLine(question protocol.RequestAccessParams) string {
	if question.Directory == "" {
		return ""
	}
	do := "read"
	if question.Access != "read" {
		do = "read, write, rename and remove"
	}
	return fmt.Sprintf("the whole directory: %s everything in %s until the session ends, except known secrets", do,
		display.Quote(question.Directory))
}

// private reports whether the setting gives later sessions a directory of their
// own, where an answer would open the user's real one.
func private(suggestion explain.Suggestion, denial spawn.Denial) bool {
	switch denial.Access {
	case "write", "create", "remove":
		return suggestion.Setting() == "toolchains"
	}
	return false
}

// questionOfGit asks about a setting of git, which no setting of ours allows for
// good.
func questionOfGit(denial spawn.Denial) protocol.RequestAccessParams {
	return protocol.RequestAccessParams{
		Access: string(denial.Access), Target: denial.Target, Process: process(denial),
		Message: fmt.Sprintf("%s wants %s.", program(denial.Process, "A program"), display.Line(denial.Whole)),
		Choices: []protocol.Decision{protocol.DecisionDeny, protocol.DecisionOnce, protocol.DecisionSession},
	}
}

// questionOfKey asks about one use of a key. The settings want the question, so
// no answer changes them.
func questionOfKey(denial spawn.Denial) protocol.RequestAccessParams {
	return protocol.RequestAccessParams{
		Access: string(denial.Access), Target: denial.Target, Process: process(denial),
		Message: questionMessage(denial),
		Choices: []protocol.Decision{protocol.DecisionDeny, protocol.DecisionOnce, protocol.DecisionSession},
	}
}

// CarryOut writes the suggestion into the settings if the user decided so, and
// returns the answer for the session. It is a no if the decision was not offered.
// A yes does not count once ctx has ended, nor does "", which is no decision. An
// error means that the settings could not be written; the answer stays.
func CarryOut(ctx context.Context, store *settings.Store, projectDir string, question protocol.RequestAccessParams,
	suggestion explain.Suggestion, decision protocol.Decision,
) (spawn.Answer, error) {
	switch ended := ctx.Err() != nil; {
	case ended && decision != protocol.DecisionDeny:
		return spawn.AnswerWithdrawn, nil
	case !slices.Contains(question.Choices, decision):
		return spawn.AnswerDeny, nil
	}
	switch decision {
	case protocol.DecisionOnce:
		return spawn.AnswerOnce, nil
	case protocol.DecisionSession:
		return spawn.AnswerSession, nil
	case protocol.DecisionDirectory:
		return spawn.AnswerDirectory, nil
	case protocol.DecisionProject, protocol.DecisionUser:
		answer := spawn.AnswerDeny
		switch {
		case slices.Contains(question.Choices, protocol.DecisionSession):
			answer = spawn.AnswerSession
		case question.Directory != "": // which is what the setting grants
			answer = spawn.AnswerDirectory
		}
		return answer, store.Allow(settings.Scope(decision), projectDir, suggestion)
	}
	return spawn.AnswerDeny, nil
}

// Unwritten says that the setting could not be written which the user wanted.
// answer is what CarryOut returned with err.
func Unwritten(answer spawn.Answer, target string, err error) string {
	if answer == spawn.AnswerDeny {
		return fmt.Sprintf("%s is refused, and the setting could not be written: %v", display.Quote(target), err)
	}
	return fmt.Sprintf("%s is allowed in this session only: %v", display.Quote(target), err)
}

// questionMessage says what a program waits for.
func questionMessage(denial spawn.Denial) string {
	return fmt.Sprintf("%s wants to %s, and waits for your answer.", program(denial.Process, "A program"),
		phrase(denial))
}

// askable reports whether a suggestion grants paths, or a host.
func askable(s explain.Suggestion) bool {
	switch s.Setting() {
	case "toolchains", "additional_read_only_paths", "additional_read_write_paths", "allowed_hosts":
		return true
	}
	return false
}
