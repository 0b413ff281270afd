package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// untried are the sets that the story has no row of, and why.
var untried = map[string]string{
	"nix": "the machines have no Nix",
	"php": "the machines have no PHP, and Homebrew builds it from forty packages",
}

// The story has rows with default settings and with each set of toolchains.
func TestStory_HasEveryToolchain(t *testing.T) {
	t.Parallel()
	tales, err := readStory(read(t, "testdata/story.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rows, refused := map[string]int{}, 0
	for _, one := range tales {
		for _, name := range one.toolchains {
			if !slices.Contains(toolchain.Languages(), name) {
				t.Errorf("%s: %s is no toolchain", one.name, name)
			}
			rows[name]++
		}
		if len(one.toolchains) == 0 {
			rows[""]++
		}
		if one.outside == ok && one.inside == fails {
			refused++
		}
		if one.outside == fails {
			t.Errorf("%s: what fails outside shows nothing inside", one.name)
		}
	}
	for _, name := range toolchain.Languages() {
		if (rows[name] == 0) != (untried[name] != "") {
			t.Errorf("%s: %d rows, and the reason for none is %q", name, rows[name], untried[name])
		}
	}
	if len(tales) < 80 || rows[""] < 40 || refused < 15 {
		t.Errorf("%d rows, %d with default settings, %d that are refused", len(tales), rows[""], refused)
	}
}

func TestStory_RefusesMistakes(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no row":          "# nothing\n",
		"a cell too few":  "a | default | ok | true\n",
		"another outcome": "a | default | ok | maybe | true\n",
		"a name twice":    "a | default | ok | ok | true\na | default | ok | ok | true\n",
		"no name":         " | default | ok | ok | true\n",
	} {
		if tales, err := readStory(text); err == nil {
			t.Errorf("%s: %+v", name, tales)
		}
	}
	tales, err := readStory("a | go+tty | ok | fails | x |\n\ty | z\n")
	if err != nil || len(tales) != 1 || !tales[0].tty || !slices.Equal(tales[0].toolchains, []string{"go"}) ||
		tales[0].command != "x | y | z" {
		t.Errorf("%+v: %v", tales, err)
	}
}

// A step is red if a test fails, is skipped, or has not run.
func TestJudge_FindsWhatHasNotPassed(t *testing.T) {
	t.Parallel()
	const events = `
{"Action":"output","Package":"` + module + `a","Test":"TestFails","Output":"why\n"}
{"Action":"fail","Package":"` + module + `a","Test":"TestFails"}
{"Action":"pass","Package":"` + module + `a","Test":"TestPasses"}
{"Action":"skip","Package":"` + module + `a","Test":"TestSkips"}
{"Action":"fail","Package":"` + module + `a"}
some text
{"Action":"pass","Package":"neovim"}`
	golden := []string{"a TestPasses", "a TestSkips", "a TestGone", "neovim", "vscode"}
	var got []string
	for _, r := range judgeTests(golden, strings.NewReader(events)) {
		got = append(got, r.what+": "+r.got+" "+r.said)
	}
	want := []string{
		"a TestPasses: pass ", "a TestSkips: skip ", "a TestGone: not run ", "neovim: pass ", "vscode: not run ",
		"a: fail ", "a TestFails: fail why",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
