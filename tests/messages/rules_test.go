package messages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	mostCharacters = 100 // of a first line; formatting verbs count as they are
	mostWords      = 40  // of a sentence that explains
)

// explanations are the functions, fields and variables whose texts are shown
// behind a first line or on request: details, and descriptions of settings and
// tools. Their length is that of sentences.
var explanations = regexp.MustCompile(
	`^(Detail|Mechanism|Fix|fix\w*|[Ww]hy|[Aa]bout|enforced|seen|unproven|without|open|effect|changes|namedReads|` +
		`doc|description|modelDescription|untrusted|config\..*|walk\..*\.description|details|Details)$`)

// machineText are what takes texts for programs: profiles and scripts.
var machineText = regexp.MustCompile(`^(w\.line|kinds|script|check|skeleton|os\.NewFile|OnFailure|\w*[pP]rofile\w*)$`)

// wording is a rule on words. It counts for first lines alone if details may
// break it.
type wording struct {
	name, instead string
	pattern       *regexp.Regexp
	firstLine     bool
}

var wordings = []wording{
	{
		"private word", "use the word of the field, or of the glossary in ARCHITECTURE.md",
		words(`keepers?|kins\w+|lineage|enclos\w+|estate|belongings|` +
			`prey|likeness|vigil|ledger|deeds?|treasures?|brood|hopper|breeder|rungs?|patience|keepsake`), false,
	},
	{`"mend"`, `"fix"`, words(`mend(s|ed|ing)?`), false},
	{`"killer" alone`, `"domain killer"`, regexp.MustCompile(`(?i)(^|[^n] |[^i]n )\bkiller\b`), false},
	{`"told"`, `"reported"`, words(`told|tells nobody|tells? of`), false},
	{
		`"look"`, `"check", "inspect" or "scan"`, words(`look(s|ed|ing)? (at|after|into)|a look|between two looks`),
		false,
	},
	{`"stand"`, `"is"`, words(`stands?|stood`), false},
	{
		"riddle", "say what is wrong and what to do", words(`waits? for its day|think twice|a second time|` +
			`something else than|makes? no sense|goes on|found no room|find no room|gives no rest|none of the words`),
		false,
	},
	{`ends in "cannot be"`, `"invalid …"`, regexp.MustCompile(`cannot be[.!]?$`), false},
	{
		`"where" for "if"`, `"if"`, regexp.MustCompile(`(?i)(([,;:(] |only |required |and |refused )where|` +
			`[^ ]\. Where) (the|it|this|that|no|there|args|protected|git|CMD)\b|^where the (machine|kernel|sandbox)`),
		false,
	},
	{`"(s)"`, "one text for one and one for many, or put the number last", regexp.MustCompile(
		`\pL\(e?s\)([^\pL]|$)`), false},
	{"errno", "say it in words; the cause belongs behind the first line", regexp.MustCompile(`\bE(PERM|NOENT|ACCES|` +
		`INVAL|NOSYS|XIST|BUSY|AGAIN|INTR|SRCH|IO|MFILE|NOSPC|ROFS)\b|(?i)operation not permitted|permission denied|` +
		`no such file or directory|invalid argument|function not implemented`), true},
}

// mechanisms are names that belong into details.
var mechanisms = words(`landlock|seccomp|ptrace|cgroups?|inotify|io_uring|namespaces?|seatbelt|e?bpf|pidfd\w*`)

// toPeople are what shows a text to a person at once. Errors and log lines may
// name mechanisms: they are what details are made of.
var toPeople = regexp.MustCompile(`^(display\.Fp.*|fmt\.P.*|e\.report|d\.report|diagnose|Hint|Reason|misuse|` +
	`d\.say|talk\.say|v\.say|vscode\.l10n\.t|notify\..*|vim\.notify)$`)

func words(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(` + alternatives + `)\b`)
}

// shownOnOneLine are the packages whose texts reach people through display.Line,
// which escapes line ends.
var shownOnOneLine = regexp.MustCompile(`^(lifecycle|platform/linux|settings|spawn|presentation|rpc)/.*\.go$`)

// faults are the rules that a message breaks, each with what to do.
func faults(m message) []string {
	if machineText.MatchString(m.where) {
		return nil
	}
	explains := explanations.MatchString(m.where)
	var broken []string
	first := m.firstLine()
	if n := utf8.RuneCountInString(first); n > mostCharacters && !explains {
		broken = append(broken,
			fmt.Sprintf("first line: %d characters, at most %d: put details behind it", n, mostCharacters))
	}
	oneLine := shownOnOneLine.MatchString(m.file) && m.where != "fmt.Fprintf"
	if oneLine && strings.Contains(strings.TrimSpace(m.text), "\n") {
		broken = append(broken, `line end: use "; ", because package display shows \n`)
	}
	if n := longestSentence(m.text); n > mostWords {
		broken = append(broken, fmt.Sprintf("sentence: %d words, at most %d: split it", n, mostWords))
	}
	for _, w := range wordings {
		text := m.text
		if w.firstLine {
			if explains {
				continue
			}
			text = first
		}
		if w.pattern.MatchString(text) {
			broken = append(broken, w.name+": "+w.instead)
		}
	}
	if mechanisms.MatchString(first) && toPeople.MatchString(m.where) {
		broken = append(broken, "mechanism: say what it does; its name belongs into details")
	}
	return broken
}

var sentenceEnd = regexp.MustCompile(`[.!?;]\s|\n`)

func longestSentence(text string) int {
	var counts []int
	for _, sentence := range sentenceEnd.Split(text, -1) {
		counts = append(counts, len(strings.Fields(sentence)))
	}
	return slices.Max(counts)
}
