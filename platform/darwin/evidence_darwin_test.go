package darwin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/libsystem"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

// tryArgument makes this binary compile one profile and answer questions under
// it. A process can be confined only once, and some texts end it.
const tryArgument = "evidence-try"

// tryRequest and tryReply are JSON on the standard input and output.
type (
	tryRequest struct {
		Text       string
		Parameters []string
		Questions  []tryQuestion
		// Die ends the process in the place of a compiler that aborts.
		Die bool
	}
	tryQuestion struct {
		Operation string
		Filter    int
		Argument  string
	}
	tryReply struct {
		Error   string // of compiling
		Answers []string
	}
)

// On the main thread, before anything else runs, as in a stage.
func init() {
	if len(os.Args) == 2 && os.Args[1] == tryArgument {
		os.Exit(compileOne())
	}
}

func compileOne() int {
	var request tryRequest
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if request.Die {
		panic("asked to")
	}
	var reply tryReply
	if err := libsystem.Confine(request.Text, request.Parameters); err != nil {
		reply.Error = err.Error()
	} else {
		for _, q := range request.Questions {
			answer, err := libsystem.Check(os.Getpid(), q.Operation, q.Filter, q.Argument)
			reply.Answers = append(reply.Answers, word(answer == 0, err))
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(reply); err != nil {
		return 2
	}
	return 0
}

// try compiles a profile in a child. The outcome is ok, error or abort, with what
// was said.
func try(t *testing.T, request tryRequest) (outcome, said string, answers []string) {
	t.Helper()
	input, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, platformtest.Self(t), tryArgument)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &stdout, &stderr
	ended := command.Run()
	var reply tryReply
	if err := json.Unmarshal(stdout.Bytes(), &reply); ended != nil || err != nil {
		first, _, _ := strings.Cut(stderr.String(), "\n")
		return "abort", fmt.Sprintf("%v: %s", ended, first), nil
	}
	if reply.Error != "" {
		return "error", reply.Error, nil
	}
	return "ok", "", reply.Answers
}

// table is a file of rows that a CI job uploads, below the directory that
// SIDECAR_EVIDENCE names. Without one, the rows are in the test's log alone.
type table struct{ text strings.Builder }

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.Join(strings.Fields(cell), " ")
	}
	t.text.WriteString(strings.Join(cells, "\t") + "\n")
}

func (t *table) write(test *testing.T, name string) {
	test.Helper()
	dir := os.Getenv("SIDECAR_EVIDENCE")
	if dir == "" {
		test.Logf("%s:\n%s", name, t.text.String())
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(t.text.String()), 0o644); err != nil {
		test.Error(err)
	}
}

// The three outcomes can be told apart.
func TestEvidence_OutcomesDiffer(t *testing.T) {
	t.Parallel()
	for want, request := range map[string]tryRequest{
		"ok":    {Text: "(version 1)(allow default)"},
		"error": {Text: "(version 1)(allow no-such-operation)"},
		"abort": {Die: true},
	} {
		if outcome, said, _ := try(t, request); outcome != want {
			t.Errorf("%s: %s %s", want, outcome, said)
		}
	}
}

// Every rule of every golden profile compiles, alone and after those before it.
func TestEvidence_EveryRuleCompiles(t *testing.T) {
	t.Parallel()
	rows := &table{}
	defer rows.write(t, "rules.tsv")
	rows.row("golden", "rule", "how", "outcome", "said", "text")
	for _, a := range attempts(t) {
		outcome, said, _ := try(t, tryRequest{Text: a.profile.Text, Parameters: a.profile.Parameters})
		rows.row(a.golden, fmt.Sprint(a.number), a.how, outcome, said, a.rule)
		if outcome != "ok" {
			t.Errorf("%s, rule %d %s: %s: %s: %s", a.golden, a.number, a.how, outcome, said, a.rule)
		}
	}
}

// The golden profiles themselves, so that a fault can be tried again by hand:
// sandbox-exec takes the text, and -D each parameter.
func TestEvidence_ProfilesAreKept(t *testing.T) {
	t.Parallel()
	profiles := goldenProfiles(t)
	scene, _ := evidenceScene(t, follow(t, realDir(t)))
	profiles["evidence"] = scene
	all := &table{}
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		fmt.Fprintf(&all.text, "; ---- %s\n%s\n", name, profiles[name])
	}
	all.write(t, "profiles.txt")
}

// asked is a question as sandbox_check takes it.
func asked(t *testing.T, q question) tryQuestion {
	t.Helper()
	switch {
	case len(q.attributes) == 0:
		return tryQuestion{q.operation, libsystem.FilterNone, ""}
	case len(q.attributes) == 1 && q.attributes["path"] != "":
		return tryQuestion{q.operation, libsystem.FilterPath, q.attributes["path"]}
	case len(q.attributes) == 1 && q.attributes["global-name"] != "":
		return tryQuestion{q.operation, libsystem.FilterGlobalName, q.attributes["global-name"]}
	}
	t.Fatalf("sandbox_check cannot be asked about %s", q)
	return tryQuestion{}
}

// The kernel answers about an everyday session as the evaluator does.
func TestEvidence_TheKernelAnswersAsTheEvaluator(t *testing.T) {
	t.Parallel()
	rows := &table{}
	defer rows.write(t, "answers.tsv")
	rows.row("question", "evaluator", "kernel", "verdict")
	profile, cases := evidenceScene(t, realDir(t))
	request := tryRequest{Text: profile.Text, Parameters: profile.Parameters}
	for _, c := range cases {
		request.Questions = append(request.Questions, asked(t, c.question))
	}
	outcome, said, answers := try(t, request)
	if outcome != "ok" || len(answers) != len(cases) {
		rows.row("the profile", "ok", outcome+" "+said, "differs")
		t.Fatalf("%s: %s: %d answers", outcome, said, len(answers))
	}
	for i, c := range cases {
		want := word(c.want, nil)
		same := "same"
		if answers[i] != want {
			same = "differs"
			t.Errorf("%s: evaluator %s, kernel %s", c.question, want, answers[i])
		}
		rows.row(c.question.String(), want, answers[i], same)
	}
}

// The kernel reads the language as the evaluator does. Where the evaluator's
// models disagree, the row says which of them this kernel follows.
func TestEvidence_TheKernelReadsTheLanguage(t *testing.T) {
	t.Parallel()
	rows := &table{}
	defer rows.write(t, "language.tsv")
	rows.row("case", "evaluator", "kernel", "verdict")
	dir := realDir(t)
	if err := os.Mkdir(dir+"/a", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir + "/a/b", dir + "/ab"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range languageCases(dir) {
		want := answerWord(Profile{Text: c.text}, c.question)
		outcome, said, answers := try(t, tryRequest{Text: c.text, Questions: []tryQuestion{asked(t, c.question)}})
		got := outcome
		if outcome == "ok" {
			got = answers[0]
		}
		compared := "same"
		switch {
		case want == "differs":
			compared = "measured"
		case got != want:
			compared = "differs"
			t.Errorf("%s: evaluator %s, kernel %s %s", c.name, want, got, said)
		}
		rows.row(c.name, want, got+" "+said, compared)
	}
}
