package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
		files      []string
		user, race []string // some that are chosen
		neither    []string // some that are not
		whole      []string // some whose tests repeat themselves often
		oldest     bool
		properties bool
	}{
		"nothing": {neither: []string{"tests", "settings", "tests/attack", "rpc"}},
		"a program of ours that no test starts": {
			files:   []string{"cmd/gen/main.go"},
			user:    []string{"cmd/gen"},
			neither: []string{"tests/attack", "tests", "rpc"},
		},
		"a leaf": {
			files:      []string{"platform/gitconfig/parse.go"},
			user:       []string{"platform/gitconfig", "settings", "rpc", "tests/attack", "cmd/sandbox-sidecar"},
			race:       []string{"settings", "rpc"},
			neither:    []string{"settings/gnupg", "lifecycle"},
			whole:      []string{"platform/gitconfig", "settings"},
			properties: true,
		},
		"a leaf that few tests know": {
			files:      []string{"settings/gnupg/gnupg.go"},
			user:       []string{"settings/gnupg", "settings", "tests", "tests/protected", "tests/stories"},
			race:       []string{"settings", "rpc"},
			neither:    []string{"tests/attack", "tests/lifetime", "tests/hosts", "lifecycle"},
			whole:      []string{"settings/gnupg"},
			properties: true,
		},
		"a test of a leaf": {
			files:   []string{"settings/sshconfig/parse_test.go"},
			user:    []string{"settings/sshconfig"},
			neither: []string{"settings", "tests/attack"},
		},
		"what confines": {
			files:  []string{"platform/linux/stage/landlock_linux.go"},
			user:   []string{"tests/attack", "settings/gnupg", "audit"},
			race:   []string{"lifecycle/cgroup", "rpc"},
			whole:  []string{"lifecycle/journal", "settings/gnupg"},
			oldest: true, properties: true,
		},
		"a module": {
			files:  []string{"go.mod"},
			user:   []string{"tests", "settings/gnupg"},
			whole:  []string{"lifecycle/journal", "settings/gnupg"},
			oldest: true, properties: true,
		},
		"what the tests share": {
			files:  []string{"tests/harness/editor.go"},
			user:   []string{"tests/attack", "settings"},
			whole:  []string{"lifecycle/journal", "settings/gnupg"},
			oldest: true, properties: true,
		},
		"one package's attack": {
			files:   []string{"tests/attack/attacks/lease.txtar"},
			user:    []string{"tests/attack"},
			neither: []string{"tests/hosts"},
		},
		"the hostile program": {
			files:   []string{"tests/victim/main.go"},
			user:    []string{"tests/attack", "tests/lifetime"},
			neither: []string{"settings"},
		},
		"the hostile program of one package": {
			files:   []string{"tests/hosts/victim/main.go"},
			user:    []string{"tests/hosts"},
			neither: []string{"tests/attack"},
		},
		"a page": {
			files:   []string{"docs/guide.md"},
			user:    []string{"tests"},
			neither: []string{"tests/hosts", "settings"},
		},
		"an editor": {
			files:   []string{"clients/neovim/lua/x.lua"},
			neither: []string{"tests", "tests/attack"},
			oldest:  true,
		},
		"a test of what confines": {
			files:   []string{"platform/linux/seccomp/filter_test.go", "spawn/testdata/x"},
			user:    []string{"platform/linux/seccomp", "spawn"},
			neither: []string{"tests", "tests/attack", "settings"},
		},
		"a new file at the top": {
			files: []string{"whatever"},
			user:  []string{"tests", "tests/attack", "tests/hosts"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := choose(packages, []string{"cmd/measure"}, test.files, false, "")
			for _, dir := range test.user {
				if !slices.Contains(c.user, "./"+dir) {
					t.Errorf("%s is left out as an ordinary user: %q", dir, c.user)
				}
			}
			for _, dir := range test.race {
				if !slices.Contains(c.race, "./"+dir) {
					t.Errorf("%s is left out under the race detector: %q", dir, c.race)
				}
			}
			for _, dir := range test.neither {
				if slices.Contains(c.user, "./"+dir) || slices.Contains(c.race, "./"+dir) {
					t.Errorf("%s is chosen", dir)
				}
			}
			if slices.Contains(c.user, "./cmd/measure") {
				t.Error("a package that runs once is chosen")
			}
			if c.oldestNeovim != test.oldest || c.properties != test.properties {
				t.Errorf("oldest Neovim %t, properties %t", c.oldestNeovim, c.properties)
			}
			for _, dir := range test.whole {
				if !slices.Contains(c.whole, "./"+dir) {
					t.Errorf("%s repeats itself less often", dir)
				}
			}
			if len(c.whole)+len(c.others) != len(packages) {
				t.Errorf("%d and %d packages run, of %d", len(c.whole), len(c.others), len(packages))
			}
		})
	}
}

// The tables name paths and packages that exist.
func TestTables_NameWhatExists(t *testing.T) {
	t.Parallel()
	packages := ourPackages(t)
	has := func(dir string) bool {
		return slices.ContainsFunc(packages, func(p pkg) bool { return p.Dir == dir })
	}
	for file, names := range reach {
		if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
			t.Errorf("the table reach: %v", err)
		}
		for _, name := range names {
			if !has(path.Join("tests", name)) {
				t.Errorf("the table reach has the package %q for %s", name, file)
			}
		}
	}
	for _, file := range touchesAll {
		if _, err := os.Stat(filepath.Join("../..", file)); err != nil {
			t.Errorf("the table touchesAll: %v", err)
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
		if !slices.ContainsFunc(packages, func(p pkg) bool { return isBelow(p.Dir, dir) }) {
			t.Errorf("no package is below %s", dir)
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
	c := choose(packages, once, []string{"go.mod"}, true, "")
	tested := 0
	for _, p := range packages {
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			tested++
		}
	}
	if len(c.others) > 0 {
		t.Errorf("%q repeat themselves less often", c.others)
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

// The change is what differs from the commit for which everything ran last.
func TestLastWhole(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	if since, why := lastWhole(t.Context(), dir); since != "" || !strings.Contains(why, "there is no") {
		t.Errorf("no file: %q, %q", since, why)
	}
	whole := gitIn(t, dir, "rev-parse", "HEAD")
	commit(t, dir, wholeFile, whole+"\n")
	commit(t, dir, "b c", "1")
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	since, why := lastWhole(t.Context(), dir)
	files, err := changedSince(t.Context(), dir, since)
	if slices.Sort(files); since != whole || err != nil || strings.Join(files, "|") != "a|b c|new" {
		t.Errorf("since %q (%s): %q, %v", since, why, files, err)
	}
	// A history that was written anew.
	gitIn(t, dir, "commit", "-q", "-a", "--amend", "-m", "other")
	gitIn(t, dir, "checkout", "-q", "--orphan", "other")
	commit(t, dir, "a", "3")
	if since, why := lastWhole(t.Context(), dir); since != "" || !strings.Contains(why, "no ancestor") {
		t.Errorf("no ancestor: %q, %q", since, why)
	}
	commit(t, dir, wholeFile, "--help\n")
	if since, why := lastWhole(t.Context(), dir); since != "" || !strings.Contains(why, "names no commit") {
		t.Errorf("no commit: %q, %q", since, why)
	}
}
