package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)

// The lists of tests that must pass name tests that exist, and every test that
// only a Mac can run.
func TestGoldens_NameEveryTestOfAMac(t *testing.T) {
	t.Parallel()
	all, ofAMac := map[string]bool{}, []string{}
	for _, dir := range []string{"lifecycle", "platform/darwin"} {
		err := filepath.WalkDir("../../"+dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, found := range testFunction.FindAllStringSubmatch(string(text), -1) {
				name := strings.TrimPrefix(filepath.Dir(path), "../../") + " " + found[1]
				all[name] = true
				if strings.HasSuffix(path, "_darwin_test.go") {
					ofAMac = append(ofAMac, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var named []string
	for _, file := range []string{"abi", "rules", "answers"} {
		for _, name := range tableLines(read(t, "testdata/"+file+".txt")) {
			named = append(named, name)
			if !all[name] {
				t.Errorf("%s.txt: there is no test %s", file, name)
			}
			evidence := strings.Contains(name, " TestEvidence_")
			if evidence == (file == "abi") {
				t.Errorf("%s.txt: another step runs %s", file, name)
			}
		}
	}
	for _, name := range ofAMac {
		if !slices.Contains(named, name) {
			t.Errorf("no golden names %s", name)
		}
	}
	if len(ofAMac) < 15 {
		t.Errorf("only %d tests of a Mac were found", len(ofAMac))
	}
}

// The patterns of the steps select the tests that their goldens name.
func TestGoldens_AreWhatTheStepsRun(t *testing.T) {
	t.Parallel()
	for _, s := range steps {
		at := slices.IndexFunc(s.command, func(arg string) bool { return arg == "-run" || arg == "-skip" })
		if s.expected.tests == "" || at < 0 {
			continue
		}
		pattern := regexp.MustCompile(s.command[at+1])
		for _, name := range tableLines(read(t, "../../"+s.expected.tests)) {
			_, test, _ := strings.Cut(name, " ")
			if pattern.MatchString(test) != (s.command[at] == "-run") {
				t.Errorf("%s does not run %s", s.name, test)
			}
		}
	}
}

// A shell can read every command of the tables.
func TestGoldens_ShellsReadTheirCommands(t *testing.T) {
	t.Parallel()
	commands := []string{"if true; then"} // must fail
	tales, err := readStory(read(t, "testdata/story.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tales {
		commands = append(commands, one.command)
	}
	records, err := readRecords(read(t, "testdata/records.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range records {
		commands = append(commands, one.command)
	}
	for i, command := range commands {
		if out, err := exec.Command("sh", "-n", "-c", command).CombinedOutput(); (err == nil) != (i > 0) {
			t.Errorf("%q: %v\n%s", command, err, out)
		}
	}
}
