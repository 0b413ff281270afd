//go:build unix

package darwin

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// What a Mac is asked, in the CI job of tests/macos. The questions are here, so
// that every system checks them against the evaluator. Files named
// evidence_*_darwin_test.go ask the kernel.

// parameterLine is a parameter in a golden file, as Profile.String writes it.
var parameterLine = regexp.MustCompile(`(?m)^([A-Z]+_[0-9]+) = (".*")$`)

// goldenProfiles reads the golden files back, by their names.
func goldenProfiles(t testing.TB) map[string]Profile {
	t.Helper()
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden profile: %v", err)
	}
	profiles := map[string]Profile{}
	for _, file := range files {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := Profile{Text: parameterLine.ReplaceAllString(string(whole), "")}
		p.Text = strings.TrimRight(p.Text, "\n") + "\n"
		for _, found := range parameterLine.FindAllStringSubmatch(string(whole), -1) {
			value, err := strconv.Unquote(found[2])
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			p.Parameters = append(p.Parameters, found[1], value)
		}
		if p.String() != string(whole) {
			t.Fatalf("%s is not read back as it was written", file)
		}
		profiles[strings.TrimSuffix(filepath.Base(file), ".golden")] = p
	}
	return profiles
}

// writtenRules are the rules of a profile as they are written, one each, without the
// version and the comments.
func writtenRules(text string) ([]string, error) {
	var rules []string
	r := reader{rest: text, used: map[string]bool{}}
	for {
		r.blanks()
		if r.rest == "" {
			return rules, nil
		}
		whole := r.rest
		// The parser wants a value for each parameter; any will do.
		r.parameters = map[string]string{}
		for _, found := range parameterUse.FindAllStringSubmatch(whole, -1) {
			r.parameters[found[1]] = "/"
		}
		list, err := r.list()
		if err != nil {
			return nil, err
		}
		if list[0] != symbol("version") {
			rules = append(rules, strings.TrimSpace(whole[:len(whole)-len(r.rest)]))
		}
	}
}

var parameterUse = regexp.MustCompile(`\(param "([^"]*)"\)`)

// alone is a profile of one rule, with the parameters that it names. What the
// rule opens is closed otherwise, and the other way round.
func alone(rule string, parameters []string) Profile {
	start := "(deny default)\n"
	if strings.HasPrefix(rule, "(deny default") || strings.HasPrefix(rule, "(allow default") {
		start = ""
	}
	return withParameters("(version 1)\n"+start+rule+"\n", parameters)
}

// withParameters adds those parameters that a text names.
func withParameters(text string, parameters []string) Profile {
	p := Profile{Text: text}
	for i := 0; i+1 < len(parameters); i += 2 {
		if strings.Contains(text, fmt.Sprintf("(param %q)", parameters[i])) {
			p.Parameters = append(p.Parameters, parameters[i], parameters[i+1])
		}
	}
	return p
}

// attempt is a profile that the kernel is asked to compile.
type attempt struct {
	golden  string
	number  int // of the rule, from 1
	how     string
	rule    string
	profile Profile
}

const (
	isAlone = "alone"
	inOrder = "in order" // with all rules before it
)

// attempts are every rule of every golden profile, alone and in order. A rule
// that more than one profile has is tried alone once.
func attempts(t testing.TB) []attempt {
	t.Helper()
	var all []attempt
	profiles := goldenProfiles(t)
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		p := profiles[name]
		rules, err := writtenRules(p.Text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		so := "(version 1)\n"
		for i, rule := range rules {
			so += rule + "\n"
			if kind := parameterUse.ReplaceAllString(rule, "(param)"); !seen[kind] {
				seen[kind] = true
				all = append(all, attempt{name, i + 1, isAlone, rule, alone(rule, p.Parameters)})
			}
			all = append(all, attempt{name, i + 1, inOrder, rule, withParameters(so, p.Parameters)})
		}
	}
	return all
}

// Every line of a golden profile that is a rule is among what a Mac compiles, and
// the last attempt of each profile is the whole of it.
func TestEvidence_TriesEveryRule(t *testing.T) {
	t.Parallel()
	all := attempts(t)
	tried := map[string]bool{}
	last := map[string]attempt{}
	for _, a := range all {
		if _, err := readProfile(a.profile); err != nil {
			t.Errorf("%s, rule %d %s: %v", a.golden, a.number, a.how, err)
		}
		if a.how == isAlone {
			tried[parameterUse.ReplaceAllString(a.rule, "(param)")] = true
		} else {
			last[a.golden] = a
		}
	}
	lines := 0
	for name, p := range goldenProfiles(t) {
		for line := range strings.Lines(p.Text) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "(allow ") && !strings.HasPrefix(line, "(deny ") {
				continue
			}
			lines++
			rules, err := writtenRules(line)
			if err == nil && !tried[parameterUse.ReplaceAllString(rules[0], "(param)")] {
				t.Errorf("%s: no attempt has %s", name, line)
			}
		}
		whole, err := readProfile(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readProfile(last[name].profile); err != nil || len(got) != len(whole) {
			t.Errorf("%s: the last attempt has %d rules of %d: %v", name, len(got), len(whole), err)
		}
	}
	t.Logf("%d attempts for %d lines", len(all), lines)
	if lines < 100 || len(all) < lines {
		t.Errorf("%d attempts for %d lines", len(all), lines)
	}
}

// languageCase is a profile about which the models of the evaluator may
// disagree, and a question about it.
type languageCase struct {
	name, text string
	question   question
}

// languageCases are the evaluator's beliefs about the language, one each.
func languageCases(dir string) []languageCase {
	a, b := dir+"/a", dir+"/a/b"
	profile := func(rules string) string {
		rules = strings.ReplaceAll(strings.ReplaceAll(rules, "@B", `"`+b+`"`), "@A", `"`+a+`"`)
		return "(version 1)\n(deny default)\n" + rules + "\n"
	}
	read := file("file-read-data", b)
	return []languageCase{
		{"nothing is granted", profile(""), read},
		{"a grant", profile("(allow file-read* (subpath @A))"), read},
		{"the last rule decides", profile("(allow file-read* (subpath @A))(deny file-read* (subpath @B))"), read},
		{"the last rule decides, other way", profile("(deny file-read* (subpath @B))(allow file-read* (subpath @A))"), read},
		{
			"a wildcard after the operation itself",
			profile("(allow file-read-data (subpath @A))(deny file-read* (subpath @A))"), read,
		},
		{
			"the operation itself after a wildcard",
			profile("(allow file-read* (subpath @A))(deny file-read-data (subpath @A))"), read,
		},
		{"no filter after a filter", profile("(deny file-read-data (subpath @A))(allow file-read-data)"), read},
		{"subpath is by whole names", profile("(allow file-read* (subpath @A))"), file("file-read-data", dir+"/ab")},
		{"literal is not what is below", profile("(allow file-read* (literal @A))"), read},
		{"a pattern", profile(`(allow file-read* (regex #"/[aA]/[bB]$"))`), read},
		{"a pattern that does not match", profile(`(allow file-read* (regex #"/[aA]/[cC]$"))`), read},
		{
			"all of several", profile(`(allow file-read* (require-all (subpath @A) (regex #"/c$")))`), read,
		},
		{"any of several", profile(`(allow file-read* (require-any (subpath @A) (regex #"/c$")))`), read},
		{"hard links are writing, or are not", profile("(allow file-write* (subpath @A))"), file("file-link", b)},
		{
			"a name, granted", profile(`(allow mach-lookup (global-name "com.apple.logd"))`),
			with("mach-lookup", "global-name", "com.apple.logd"),
		},
		{
			"a name, not granted", profile(`(allow mach-lookup (global-name "com.apple.logd"))`),
			with("mach-lookup", "global-name", "com.apple.lsd.mapdb"),
		},
		{"an unknown filter", profile("(allow file-read* (no-such-filter @A))"), read},
		{"a parameter that is not given", profile(`(allow file-read* (subpath (param "P")))`), read},
		{"a list that does not end", profile("(allow file-read* (subpath @A)"), read},
		{"no version", "(deny default)\n(allow file-read*)\n", read},
	}
}

// answerWord is the evaluator's, as a word: yes, no, error, or differs if its models
// disagree.
func answerWord(p Profile, q question) string {
	allowed, err := verdict(p, q)
	if _, ok := errors.AsType[*disagreement](err); ok {
		return "differs"
	}
	return word(allowed, err)
}

func word(allowed bool, err error) string {
	switch {
	case err != nil:
		return "error"
	case allowed:
		return "yes"
	}
	return "no"
}

// A Mac would learn little from cases that all have one answer.
func TestEvidence_TheLanguageCasesHaveEveryAnswer(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	for _, c := range languageCases("/private/tmp/evidence") {
		found[answerWord(Profile{Text: c.text}, c.question)]++
	}
	for _, one := range []string{"yes", "no", "error", "differs"} {
		if found[one] == 0 {
			t.Errorf("no case is answered %q: %v", one, found)
		}
	}
}

// sessionCase is a question about an everyday session, and what the evaluator has
// to answer.
type sessionCase struct {
	question question
	want     bool
}

// evidenceScene makes a project below a directory, and the profile of a session in
// it. The files exist, because the kernel may answer otherwise about those that do
// not.
func evidenceScene(t testing.TB, dir string) (Profile, []sessionCase) {
	t.Helper()
	home, p := dir+"/home", dir+"/home/p"
	for _, name := range []string{p + "/.git/hooks", p + "/src", home + "/.ssh", home + "/tools", home + "/other"} {
		if err := os.MkdirAll(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		p + "/.git/config", p + "/main.go", home + "/.zshrc", home + "/.ssh/id", home + "/other/x",
	} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	session := &policy.Policy{
		Restricted: true, Project: p, Network: policy.Network{Allowed: true}, OnDenied: policy.Report,
		Rules: []policy.Rule{
			grantRule(home+"/.zshrc", policy.Read), sessionRule(p),
			grantRule(home+"/tools", policy.Read|policy.Execute),
			grantRule("/usr/bin", policy.Read|policy.Execute),
		},
		Protected: []policy.Protected{{Path: p + "/.git/config"}, {Path: p + "/.git/hooks"}, {Path: p + "/.vscode"}},
	}
	profile := profileOf(t, Translate(session, Host{}), hereFiles{})
	var cases []sessionCase
	add := func(want bool, questions ...question) {
		for _, q := range questions {
			cases = append(cases, sessionCase{q, want})
		}
	}
	add(true, file("file-read-data", p+"/main.go"), file("file-write-data", p+"/main.go"),
		file("file-write-create", p+"/new"), file("file-write-unlink", p+"/main.go"),
		file("file-read-data", p+"/.git/config"), file("file-read-data", p+"/.git/hooks"),
		file("file-read-data", home+"/.zshrc"), file("file-read-metadata", home), file("file-read-data", "/"),
		file("process-exec", "/usr/bin/env"), file("process-exec", p+"/main.go"), file("process-exec", home+"/tools"),
		file("file-read-data", "/usr/bin/env"), file("file-read-data", "/dev/null"),
		file("file-write-data", "/dev/null"),
		file("file-read-data", "/usr/lib/dyld"), file("file-map-executable", "/usr/lib/dyld"),
		with("mach-lookup", "global-name", "com.apple.trustd.agent"),
		with("mach-lookup", "global-name", "com.apple.system.opendirectoryd.libinfo"),
		question{"process-fork", nil}, question{"pseudo-tty", nil})
	add(false, file("file-read-data", home+"/.ssh/id"), file("file-read-metadata", home+"/.ssh/id"),
		file("file-read-data", home), file("file-read-data", home+"/other/x"), file("file-write-data", home+"/.zshrc"),
		file("file-write-create", home+"/.zshenv"), file("process-exec", home+"/.zshrc"),
		file("file-write-data", p+"/.git/config"), file("file-write-unlink", p+"/.git/config"),
		file("file-write-unlink", p+"/.git"), file("file-write-unlink", p), file("file-link", p+"/.git/config"),
		file("file-write-create", p+"/.git/hooks/pre-commit"), file("file-write-create", p+"/.vscode"),
		file("file-write-create", p+"/.VSCODE/tasks.json"), file("file-write-data", "/usr/bin/env"),
		file("file-read-data", "/Library/Keychains/System.keychain"), file("file-write-create", "/private/etc/new"),
		with("mach-lookup", "global-name", "com.apple.SecurityServer"),
		with("mach-lookup", "global-name", "com.apple.coreservices.launchservicesd"),
		with("mach-lookup", "global-name", "com.apple.pasteboard.1"),
		question{"appleevent-send", nil}, question{"job-creation", nil}, question{"file-mount", nil})
	return profile, cases
}

func TestEvidence_TheEvaluatorAnswersTheCases(t *testing.T) {
	t.Parallel()
	profile, cases := evidenceScene(t, follow(t, t.TempDir()))
	for _, c := range cases {
		if got := ask(t, profile, c.question); got != c.want {
			t.Errorf("%s: %t", c.question, got)
		}
	}
	// Each case must be able to fail. Version 1 may leave some operations open.
	const closed = "(version 1)(deny default)(deny file-map-executable)"
	for text, want := range map[string]bool{"(version 1)(allow default)": false, closed: true} {
		for _, c := range cases {
			if c.want == want && ask(t, Profile{Text: text}, c.question) == c.want {
				t.Errorf("%s: %s passes", text, c.question)
			}
		}
	}
}
