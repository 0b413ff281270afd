package sources

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s#]+)(?:#[^)]*)?\)`)
	attackName   = regexp.MustCompile("`([a-z]+-[a-z*-]+)`")
)

// A reader who finds a broken link trusts the rest less.
func TestDocuments_LinkToWhatExists(t *testing.T) {
	t.Parallel()
	count := 0
	for _, document := range documents(t) {
		data, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range markdownLink.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			count++
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), link[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", document, link[1])
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d links were found: the pattern for links is wrong", count)
	}
}

// SECURITY.md names the attacks behind a promise by patterns.
func TestSecurity_NamesAttacksThatExist(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, line := range strings.Split(string(data), "\n") {
		if !strings.HasPrefix(line, "| ") || !strings.Contains(line, "`") {
			continue
		}
		_, cell, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, name := range attackName.FindAllStringSubmatch(cell, -1) {
			found, err := filepath.Glob("../attack/attacks/" + name[1] + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				t.Errorf("SECURITY.md names the attack %s, and tests/attack/attacks has none like it", name[1])
			}
			count += len(found)
		}
	}
	if count < 70 {
		t.Errorf("SECURITY.md names %d attacks: its table was not understood", count)
	}
}

// ARCHITECTURE.md has a line for each package, and docs/design/README.md one for
// each page.
func TestDocuments_ListEverything(t *testing.T) {
	t.Parallel()
	architecture, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range mayImport {
		if strings.HasPrefix(name, "tests/") || strings.HasSuffix(name, "test") && strings.Count(name, "/") > 1 {
			continue
		}
		if !strings.Contains(string(architecture), "`"+name+"`") {
			t.Errorf("the code map of ARCHITECTURE.md does not have %s", name)
		}
	}
	index, err := os.ReadFile("../../docs/design/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/design/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages of docs/design: %v", len(pages), err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/design/README.md does not list %s", name)
		}
	}
}

var codeStep = regexp.MustCompile("`([a-z_/]+[.]go):([A-Za-z]+)`")

// The journeys of ARCHITECTURE.md name functions with their files.
func TestArchitecture_NamesFunctionsThatExist(t *testing.T) {
	t.Parallel()
	architecture, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := codeStep.FindAllStringSubmatch(string(architecture), -1)
	if len(steps) < 40 {
		t.Errorf("only %d steps were found: the pattern for steps is wrong", len(steps))
	}
	for _, step := range steps {
		code, err := os.ReadFile(filepath.Join("../..", step[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		function := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + step[2] + `(\[[^\]]*\])?\(`)
		if !function.Match(code) {
			t.Errorf("%s has no function %s", step[1], step[2])
		}
	}
}

// The page about settings names each file of package compile, and only functions
// that are there.
func TestSettingsPipeline_NamesStepsAndFiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/design/settings-pipeline.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../settings/compile/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is not named", name)
		}
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(code)
	}
	steps := 0
	for line := range strings.Lines(string(page)) {
		columns := strings.Split(line, "|")
		if len(columns) != 5 {
			continue
		}
		for _, found := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(columns[2], -1) {
			steps++
			function := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + found[1] + `\(`)
			if !function.MatchString(all.String()) {
				t.Errorf("settings/compile has no function %s", found[1])
			}
		}
	}
	if steps < 30 {
		t.Errorf("only %d steps were found: the table is not read", steps)
	}
}

// documents returns every Markdown file of the tree, except those of installed
// packages and the parts that cmd/gen writes into docs.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == "build" ||
			path == "../../cmd/gen/text"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// docs/design/dependencies.md has a row for each direct requirement of go.mod,
// and no other.
func TestDocuments_SayWhatEachDependencyDoes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/design/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, row := range dependencyRow.FindAllStringSubmatch(string(page), -1) {
		if rows[row[1]] {
			t.Errorf("dependencies.md has two rows for %s", row[1])
		}
		rows[row[1]] = true
	}
	required := requirements(t)
	if len(required) < 10 {
		t.Fatalf("go.mod requires %v: it was not understood", required)
	}
	for _, module := range required {
		if !rows[module] {
			t.Errorf("dependencies.md has no row for %s, which go.mod requires", module)
		}
		delete(rows, module)
	}
	for module := range rows {
		t.Errorf("dependencies.md has a row for %s, which go.mod does not require directly", module)
	}
}

// requirements are the modules that go.mod requires directly.
func requirements(t *testing.T) []string {
	t.Helper()
	file, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	block := false
	for line := range strings.Lines(string(file)) {
		code, comment, _ := strings.Cut(strings.TrimSpace(line), "//")
		fields := strings.Fields(code)
		switch {
		case len(fields) == 0:
			continue
		case fields[0] == ")":
			block = false
			continue
		case fields[0] == "require":
			fields = fields[1:]
			if block = fields[0] == "("; block {
				continue
			}
		case !block:
			continue
		}
		if strings.TrimSpace(comment) != "indirect" {
			modules = append(modules, fields[0])
		}
	}
	return modules
}
