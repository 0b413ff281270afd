package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// ourPackages are the packages of this module.
func ourPackages(t *testing.T) []pkg {
	t.Helper()
	packages, err := listPackages(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 100 {
		t.Fatalf("only %d packages", len(packages))
	}
	return packages
}

// What a change of files can matter to.
func TestChoose(t *testing.T) {
	t.Parallel()
	packages := ourPackages(t)
	for name, test := range map[string]struct {
		files   []string
		run     []string // some that are chosen
		not     []string // some that are not
		race    []string // some that are chosen for the race detector
		whole   []string // some whose tests repeat themselves often
		editors string   // "vscode neovim oldest"; with "-journeys" if only those run, "-more" if others do, too
		// properties are many pairs of settings.
		properties bool
	}{
		"nothing": {not: []string{"tests", "settings", "tests/attack", "rpc"}},
		"a program of ours that no test starts": {
			files: []string{"cmd/gen/main.go"},
			run:   []string{"cmd/gen"},
			not:   []string{"tests/attack", "tests", "rpc"},
		},
		"a server that one package starts": {
			files: []string{"agents/mcp/server.go"},
			run:   []string{"agents/mcp", "tests/agents", "tests/doors"},
			not:   []string{"tests", "tests/attack", "rpc", "settings"},
		},
		"a leaf": {
			files:   []string{"platform/outbound/server.go"},
			run:     []string{"platform/outbound", "spawn", "tests/attack", "tests/hosts", "cmd/sandbox-sidecar"},
			race:    []string{"spawn"},
			not:     []string{"settings/gnupg", "lifecycle", "tests/lifetime"},
			whole:   []string{"platform/outbound", "spawn"},
			editors: "vscode-journeys neovim-journeys",
		},
		"what only the binary for macOS holds": {
			files: []string{"platform/darwin/profile.go"},
			run:   []string{"platform/darwin", "tests"},
			not:   []string{"tests/attack"},
		},
		"a leaf that few tests know": {
			files:      []string{"settings/gnupg/gnupg.go"},
			run:        []string{"settings/gnupg", "settings", "tests", "tests/protected", "tests/stories"},
			race:       []string{"settings", "rpc"},
			not:        []string{"tests/attack", "tests/lifetime", "tests/hosts", "lifecycle"},
			whole:      []string{"settings/gnupg"},
			properties: true,
		},
		"what every program holds": {
			files:      []string{"settings/compile/doc.go"},
			run:        []string{"settings/compile", "rpc", "tests", "tests/attack", "tests/lifetime", "tests/stories"},
			race:       []string{"settings", "rpc"},
			not:        []string{"platform/linux/seccomp"},
			editors:    "vscode-journeys neovim-journeys",
			properties: true,
		},
		"a test of a leaf": {
			files: []string{"settings/sshconfig/parse_test.go"},
			run:   []string{"settings/sshconfig"},
			not:   []string{"settings", "tests/attack"},
		},
		"what confines": {
			files:      []string{"platform/linux/stage/landlock_linux.go"},
			run:        []string{"tests/attack", "settings/gnupg", "audit"},
			race:       []string{"lifecycle/cgroup", "rpc"},
			whole:      []string{"lifecycle/journal", "settings/gnupg"},
			editors:    "vscode-journeys neovim-journeys",
			properties: true,
		},
		"a module": {
			files:      []string{"go.mod"},
			run:        []string{"tests", "settings/gnupg"},
			whole:      []string{"lifecycle/journal", "settings/gnupg"},
			editors:    "vscode-journeys neovim-journeys",
			properties: true,
		},
		"what the tests share": {
			files:      []string{"tests/harness/editor.go"},
			run:        []string{"tests/attack", "settings"},
			whole:      []string{"lifecycle/journal", "settings/gnupg"},
			editors:    "vscode-journeys neovim-journeys",
			properties: true,
		},
		"what is left out": {
			files:      []string{"tests/ci/changes.go"},
			run:        []string{"tests/attack", "settings", "rpc"},
			whole:      []string{"settings/gnupg"},
			editors:    "vscode-journeys neovim-journeys",
			properties: true,
		},
		"one package's attack": {
			files: []string{"tests/attack/attacks/lease.txtar"},
			run:   []string{"tests/attack"},
			not:   []string{"tests/hosts"},
		},
		"the hostile program": {
			files:   []string{"tests/victim/main.go"},
			run:     []string{"tests/attack", "tests/lifetime"},
			not:     []string{"settings"},
			editors: "vscode-journeys neovim-journeys",
		},
		"the hostile program of one package": {
			files: []string{"tests/hosts/victim/main.go"},
			run:   []string{"tests/hosts"},
			not:   []string{"tests/attack"},
		},
		"a page": {
			files: []string{"docs/guide.md"},
			run:   []string{"tests/sources"},
			not:   []string{"tests/hosts", "settings", "tests/lifetime"},
		},
		"an editor": {
			files:   []string{"clients/neovim/lua/sandbox_sidecar/init.lua"},
			not:     []string{"tests/attack", "tests/hosts"},
			editors: "neovim oldest",
		},
		"the other editor": {
			files:   []string{"clients/vscode/src/extension.ts"},
			not:     []string{"tests/attack", "tests/hosts"},
			editors: "vscode",
		},
		"what is said to editors": {
			files:   []string{"rpc/protocol/spawn.go"},
			run:     []string{"rpc", "tests", "tests/attack"},
			editors: "vscode neovim oldest", properties: true,
		},
		"the command that links run": {
			files:   []string{"cmd/sandbox-sidecar/shell.go", "settings/compile/doc.go"},
			run:     []string{"cmd/sandbox-sidecar", "tests"},
			editors: "vscode neovim", properties: true,
		},
		"what editors show": {
			files:   []string{"presentation/denial.go", "platform/linux/stage/landlock_linux.go"},
			run:     []string{"presentation", "tests"},
			editors: "vscode neovim", properties: true,
		},
		"a test of what editors show, with what confines": {
			files:   []string{"presentation/denial_test.go", "platform/linux/stage/landlock_linux.go"},
			run:     []string{"presentation", "tests"},
			editors: "vscode-journeys neovim-journeys", properties: true,
		},
		"one editor, with what confines": {
			files:   []string{"clients/neovim/lua/sandbox_sidecar/init.lua", "platform/linux/stage/landlock_linux.go"},
			run:     []string{"tests"},
			editors: "vscode-journeys neovim oldest", properties: true,
		},
		"an editor's tests": {
			files:   []string{"clients/vscode/tests/harness/browser.ts", "clients/neovim/tests/test_tui.lua"},
			editors: "vscode-journeys neovim-more",
		},
		"the other editor's tests": {
			files:   []string{"clients/vscode/tests/ui/ports.test.ts"},
			editors: "vscode-more",
		},
		"the editors that the tests use": {
			files:   []string{"clients/neovim/tests/tools"},
			run:     []string{"tests"},
			editors: "vscode neovim oldest", properties: true,
		},
		"the settings' schema": {
			files:   []string{"docs/settings.schema.json"},
			editors: "vscode",
		},
		"a test of what confines": {
			files: []string{"platform/linux/seccomp/filter_test.go", "spawn/testdata/x"},
			run:   []string{"platform/linux/seccomp", "spawn"},
			not:   []string{"tests", "tests/attack", "settings"},
		},
		"a new file at the top": {
			files:   []string{"whatever"},
			run:     []string{"tests", "tests/attack", "tests/hosts"},
			editors: "vscode neovim",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := choose(packages, []string{"cmd/measure"}, test.files, false, "")
			has := func(list []string, dir string) bool { return slices.Contains(list, "./"+dir) }
			for _, dir := range test.run {
				if !has(c.whole, dir) && !has(c.others, dir) || !has(c.user, dir) {
					t.Errorf("%s is left out: %q, %q, as an ordinary user %q", dir, c.whole, c.others, c.user)
				}
			}
			for _, dir := range test.race {
				if !has(c.race, dir) {
					t.Errorf("%s is left out under the race detector: %q", dir, c.race)
				}
			}
			for _, dir := range test.not {
				if slices.ContainsFunc([][]string{c.whole, c.others, c.user, c.race}, func(list []string) bool {
					return has(list, dir)
				}) {
					t.Errorf("%s is chosen", dir)
				}
			}
			if has(c.user, "cmd/measure") {
				t.Error("a package that runs once is chosen")
			}
			editors := []string{}
			for name, tests := range map[string]suites{"vscode": c.vscode, "neovim": c.neovim} {
				switch {
				case tests.all:
					editors = append(editors, name)
				case len(tests.files) > len(journeys["clients/"+name]):
					editors = append(editors, name+"-more")
				case tests.chosen():
					editors = append(editors, name+"-journeys")
				}
			}
			if c.oldestNeovim {
				editors = append(editors, "oldest")
			}
			if want := strings.Fields(test.editors); !sameNames(editors, want) || c.properties != test.properties {
				t.Errorf("editors %q instead of %q, properties %t", editors, want, c.properties)
			}
			for _, dir := range test.whole {
				if !has(c.whole, dir) {
					t.Errorf("%s repeats itself less often", dir)
				}
			}
			if !has(slices.Concat(c.whole, c.others), "tests/ci") {
				t.Error("what judges the run is left out")
			}
		})
	}
}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// The tables name paths and packages that exist.
func TestTables_NameWhatExists(t *testing.T) {
	t.Parallel()
	packages := ourPackages(t)
	has := func(dir string) bool {
		return slices.ContainsFunc(packages, func(p pkg) bool { return p.Dir == dir })
	}
	for name, table := range map[string]map[string][]string{"reach": reach, "readers": readers} {
		for file, dirs := range table {
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
				t.Errorf("the table %s: %v", name, err)
			}
			for _, dir := range dirs {
				if !has(dir) && (name == "readers" || dir != vscode && dir != neovim) {
					t.Errorf("the table %s has the package %q for %s", name, dir, file)
				}
			}
		}
	}
	for name, table := range map[string][]string{"touchesAll": touchesAll, "shown": shown} {
		for _, file := range table {
			if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
				t.Errorf("the table %s: %v", name, err)
			}
		}
	}
	once, err := runOnce("../run-once")
	if err != nil || len(once) < 5 {
		t.Errorf("%q: %v", once, err)
	}
	for _, dir := range slices.Concat(once, []string{"cmd/sandbox-sidecar", "cmd/sandbox-sidecar-mcp", "clients/tty"}) {
		if !has(dir) {
			t.Errorf("no package is %s", dir)
		}
	}
	for _, dir := range concurrent {
		if !has(strings.TrimSuffix(dir, "/")) {
			t.Errorf("no package is %s", dir)
		}
	}
}

// A change that touches all tests: root runs every package, with fewer rounds. An
// ordinary user and the race detector run what has changed and a third of the rest,
// an ordinary user a third of all below tests/. Another commit has others.
func TestInTurns(t *testing.T) {
	t.Parallel()
	packages := []string{
		"./rpc", "./spawn", "./spawn/b", "./tests", "./tests/a", "./tests/b", "./tests/c", "./tests/ci",
	}
	files := []string{"spawn/x.go", "tests/a/a_test.go", "CHANGELOG.md"}
	present := []string{
		"tests/ui/a.test.ts", "tests/ui/b.test.ts", "tests/ui/c.test.ts", "tests/ui/d.test.ts", "tests/unit/e.test.ts",
	}
	all := choice{
		user: packages, race: packages, whole: packages[:3], others: packages[3:],
		vscode: suites{all: true, files: []string{"tests/ui/a.test.ts"}}, neovim: suites{all: true},
	}
	runs := map[string]int{}
	const commits = 200
	for i := range commits {
		c := all.inTurns(files, present, strconv.Itoa(i))
		if c.whole != nil || !slices.Equal(c.others, packages) || c.turn == "" {
			t.Fatalf("commit %d: %+v", i, c)
		}
		if n := len(c.user); n < 3 || n > 4 || len(c.race) < 3 || len(c.race) > 4 {
			t.Errorf("commit %d: %q, for races %q", i, c.user, c.race)
		}
		if c.vscode.all || len(c.vscode.files) != 3 || !c.neovim.all {
			t.Errorf("commit %d: suites %+v and %+v", i, c.vscode, c.neovim)
		}
		for _, name := range c.vscode.files {
			runs[name]++
		}
		for _, name := range c.user {
			runs[name]++
		}
		for _, name := range c.race {
			runs["race "+name]++
		}
	}
	for i, name := range present {
		always := i == 0 || i == len(present)-1
		if got := runs[name]; always && got != commits || !always && (got < commits/6 || got > commits/2) {
			t.Errorf("%s runs for %d of %d commits", name, got, commits)
		}
	}
	itself := all
	itself.vscode.itself = true
	if c := itself.inTurns(files, present, "1"); !c.vscode.all {
		t.Errorf("a changed extension: %+v", c.vscode)
	}
	for _, name := range packages {
		for name, always := range map[string]bool{
			name:           name == "./spawn" || name == "./tests/ci",
			"race " + name: name == "./spawn" || name == "./tests/a",
		} {
			if got := runs[name]; always && got != commits || !always && (got < commits/6 || got > commits/2) {
				t.Errorf("%s runs for %d of %d commits", name, got, commits)
			}
		}
	}
}

// The journeys are tests that exist, or the editors' parts would try nothing.
func TestJourneys_Exist(t *testing.T) {
	t.Parallel()
	for editor, files := range journeys {
		for _, file := range files {
			if _, err := os.Stat(filepath.Join("../..", editor, file)); err != nil || !isSuite.MatchString(file) {
				t.Errorf("%s of %s: %v", file, editor, err)
			}
		}
	}
}

// Every suite of VS Code's extension has its turn.
func TestSuitesIn_AreAll(t *testing.T) {
	t.Parallel()
	harness.Once(t, "it asks git about the checkout, of which an ordinary user has a copy")
	dir := filepath.Join("../..", vscode)
	got, err := suitesIn(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, kind := range []string{"ui", "unit"} {
		found, err := filepath.Glob(filepath.Join(dir, "tests", kind, "*.ts"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", kind, found, err)
		}
		for _, file := range found {
			want = append(want, filepath.Join("tests", kind, filepath.Base(file)))
		}
	}
	if !sameNames(got, want) {
		t.Errorf("suites %q, want %q", got, want)
	}
	for _, file := range got {
		if !isSuite.MatchString(file) {
			t.Errorf("%s is no suite", file)
		}
	}
}

// Whatever runs everything leaves nothing out but what runs once.
func TestChoose_EverythingIsAllPackagesWithTests(t *testing.T) {
	t.Parallel()
	packages := ourPackages(t)
	once, err := runOnce("../run-once")
	if err != nil {
		t.Fatal(err)
	}
	c := everything(packages, once, true, "")
	tested := 0
	for _, p := range packages {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			tested++
		}
	}
	if len(c.others) > 0 || len(c.whole) != len(packages) || !c.vscode.all || !c.neovim.all ||
		!c.oldestNeovim || !c.properties {
		t.Errorf("%q repeat themselves less often, %d packages of %d do so: %+v", c.others, len(c.whole),
			len(packages), c)
	}
	// Without a commit to compare with, nothing is left out either.
	few := everything(packages, once, false, "")
	if len(few.whole)+len(few.others) != len(packages) || !few.vscode.all || !few.neovim.all || !few.oldestNeovim {
		t.Errorf("nothing to compare with: %+v", few)
	}
	if len(c.user) != tested-len(once) || len(c.race) < 20 {
		t.Errorf("%d packages of %d, %d run once; %d under the race detector", len(c.user), tested, len(once), len(c.race))
	}
}

// repository makes one with a commit.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	commit(t, dir, "a", "1")
	return dir
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	command.Dir = dir
	command.Env = withoutGit(os.Environ())
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func commit(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-q", "-m", name)
}

// The change is what differs from the last commit whose run was green.
func TestLastPassed(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	if since, why := lastPassed(t.Context(), dir); since != "" || !strings.Contains(why, "there is no") {
		t.Errorf("no file: %q, %q", since, why)
	}
	whole := gitIn(t, dir, "rev-parse", "HEAD")
	commit(t, dir, passedFile, whole+"\n")
	commit(t, dir, "b c", "1")
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	since, why := lastPassed(t.Context(), dir)
	files, err := changedSince(t.Context(), dir, since)
	if slices.Sort(files); since != whole || err != nil || strings.Join(files, "|") != "a|b c|new" {
		t.Errorf("since %q (%s): %q, %v", since, why, files, err)
	}
	// A history that was written anew.
	gitIn(t, dir, "commit", "-q", "-a", "--amend", "-m", "other")
	gitIn(t, dir, "checkout", "-q", "--orphan", "other")
	commit(t, dir, "a", "3")
	if since, why := lastPassed(t.Context(), dir); since != "" || !strings.Contains(why, "no ancestor") {
		t.Errorf("no ancestor: %q, %q", since, why)
	}
	commit(t, dir, passedFile, "--help\n")
	if since, why := lastPassed(t.Context(), dir); since != "" || !strings.Contains(why, "names no commit") {
		t.Errorf("no commit: %q, %q", since, why)
	}
}

// What tests do by a name is in the row of what does it.
func TestReach_HasWhoUsesIt(t *testing.T) {
	t.Parallel()
	packages := ourPackages(t)
	for row, words := range map[string]string{
		"agents/acp":         `"acp"`,
		"agents/mcp":         `"mcp"[^:]`,
		"settings/starter":   `"init", "--|init --yes`,
		"settings/gnupg":     `GNUPGHOME|"gpg"`,
		"settings/sshconfig": `\{"ssh"|"ssh", "gpg"`,
		"settings/managed":   `etc/sandbox-sidecar`,
		"platform/hosts":     `"network_hosts"|allowed_hosts`,
	} {
		pattern := regexp.MustCompile(words)
		uses := map[string]bool{}
		for _, dir := range startPrograms(packages) {
			err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, entry fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return err
				case entry.IsDir() && slices.Contains([]string{"node_modules", "dist", "dist-test"}, entry.Name()):
					return fs.SkipDir
				case entry.IsDir():
					return nil
				}
				text, err := os.ReadFile(path)
				if err == nil && pattern.Match(text) && strings.Contains(path, "test") {
					name := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
					if owner := ownerOf(packages, name+"/x"); owner != nil {
						name = owner.Dir
					}
					if editor := owningEditor(name); editor != "" {
						name = editor
					}
					uses[name] = true
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(uses) == 0 {
			t.Errorf("%s: nothing uses it by %s", row, words)
		}
		for dir := range uses {
			if !slices.Contains(reach[row], dir) && !slices.Contains(notTheProgram, dir) {
				t.Errorf("%s is used in %s", row, dir)
			}
		}
	}
}

// notTheProgram only has the words.
var notTheProgram = []string{
	"tests/bench", "tests/ci", "tests/harness", "tests/kernels", "tests/messages", "tests/sources",
}
