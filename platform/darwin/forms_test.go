package darwin

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unlisted are the symbols of a profile's text that the table lacks.
func unlisted(text string) []string {
	var missing []string
	for _, rule := range ruleLines(text) {
		for _, name := range rule.symbols() {
			if _, listed := symbolSince[name]; !listed && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

// goldens are the texts of the golden profiles, by their files.
func goldens(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d goldens: %v", len(files), err)
	}
	texts := map[string]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(data)
	}
	return texts
}

// A symbol that no public profile uses may be unknown to every compiler.
func TestSymbols_OfTheGoldensHavePublicSources(t *testing.T) {
	t.Parallel()
	for file, text := range goldens(t) {
		if missing := unlisted(text); missing != nil {
			t.Errorf("%s: no row in symbols: %s", file, strings.Join(missing, ", "))
		}
	}
	source := regexp.MustCompile(`^[\w.-]+/[\w.-]+ [\w./-]+$`)
	seen := map[string]bool{}
	for _, symbol := range symbols {
		inList := strings.HasPrefix(symbol.name, "(")
		if !source.MatchString(symbol.source) || seen[symbol.name] || inList == (symbol.kind == isOperation) ||
			symbol.since != 0 && symbol.since < 12 {
			t.Errorf("row of %q: %+v", symbol.name, symbol)
		}
		seen[symbol.name] = true
	}
	used := map[string]bool{}
	for _, text := range append(slices.Collect(maps.Values(goldens(t))), specimen().Text) {
		for _, rule := range ruleLines(text) {
			for _, name := range rule.symbols() {
				used[name] = true
			}
		}
	}
	for _, symbol := range symbols {
		if !used[symbol.name] {
			t.Errorf("no profile has %s", symbol.name)
		}
	}
}

func TestUnlisted_FindsWhatNoTableHas(t *testing.T) {
	t.Parallel()
	text := "(version 1)\n(deny default (with telepathy))\n" +
		`(allow file-read* file-teleport (require-all (subpath "/") (mood "good")))` + "\n"
	want := []string{"(with telepathy)", "file-teleport", `(mood "…")`}
	if got := unlisted(text); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Every line of a profile is a rule that the parser reads and writes unchanged.
func TestParseRule_ReadsEveryLineOfTheGoldens(t *testing.T) {
	t.Parallel()
	rules := 0
	for file, text := range goldens(t) {
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if !strings.HasPrefix(line, "(allow") && !strings.HasPrefix(line, "(deny") {
				continue
			}
			rule, ok := parseRule(line)
			if !ok || rule.String() != line {
				t.Errorf("%s: %t, %q, want %q", file, ok, rule, line)
			}
			rules++
		}
	}
	if rules < 100 {
		t.Errorf("only %d rules", rules)
	}
	for _, line := range []string{
		"", "; allow", "(version 1)", `KEY = "(allow x)"`, `(allow file-read* (subpath "/")`,
	} {
		if rule, ok := parseRule(line); ok {
			t.Errorf("%q is no rule, but %+v", line, rule)
		}
	}
}

func TestForm(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`(allow sysctl-read)`: `(allow sysctl-read)`,
		`(allow file-read* (literal "/") (literal (param "A_1")) (subpath "/x"))`: `(allow file-read* (literal "…") ` +
			`(subpath "…"))`,
		`(allow x (require-all (regex #"^/a b(c)$") (extension "e")))`: `(allow x (require-all (regex "…") (extension "…")))`,
		`(deny y (local unix-socket (subpath (param "K"))))`:           `(deny y (local unix-socket (subpath "…")))`,
	} {
		rule, ok := parseRule(line)
		if got := rule.form(); got != want || !ok {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// If a compiler takes the specimen, it takes every profile.
func TestSpecimen_HasEveryForm(t *testing.T) {
	t.Parallel()
	p := specimen()
	has := map[string]bool{}
	for _, rule := range ruleLines(p.Text) {
		has[rule.form()] = true
	}
	for file, text := range goldens(t) {
		for _, rule := range ruleLines(text) {
			if form := rule.form(); !has[form] && form != "(allow default)" && form != "(deny default)" {
				t.Errorf("%s: the specimen has no rule of the form %s", file, form)
			}
		}
	}
	if _, err := readProfile(p); err != nil {
		t.Error(err)
	}
	if missing := unlisted(p.Text); missing != nil {
		t.Errorf("no row in symbols: %s", strings.Join(missing, ", "))
	}
	if !slices.Contains(p.Parameters, specimenTerminal) {
		t.Error("the specimen opens no terminal, so no try can type into it")
	}
}

// What the language's first version opens is closed, and what sessions need of it
// is open again. The control is the profile without the line.
func TestProfile_ClosesByNameWhatTheDefaultLeavesOpen(t *testing.T) {
	t.Parallel()
	profile := profileOf(t, samples()["terminal"], mac())
	const key, source, library = "/Users/u/.ssh/id_rsa", "/Users/u/p/main.go", "/usr/lib/libobjc.dylib"
	closed := map[string]question{
		"file-link": file("file-link", key), "file-clone": file("file-clone", key),
		"file-map-executable": file("file-map-executable", key),
		"file-test-existence": file("file-test-existence", key),
		"process-info*":       with("process-info-pidinfo", "target", "others"), "nvram*": {"nvram-get", nil},
	}
	for _, operation := range openByVersion {
		no, known := closed[operation]
		if !known || ask(t, profile, no) {
			t.Errorf("allowed, or not tried: %s: %s", operation, no)
		}
		if allowed, err := verdict(without(profile, "(deny "+operation+")"), no); err == nil && !allowed {
			t.Errorf("the control denies %s", no)
		}
	}
	for _, yes := range []question{
		file("file-link", source), file("file-clone", source), file("file-map-executable", library),
		file("file-test-existence", source), with("process-info-pidinfo", "target", "self"),
	} {
		if !ask(t, profile, yes) {
			t.Errorf("denied: %s", yes)
		}
	}
}
