package sources

import (
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// depends are imports of tests that start processes, call the kernel, or read
// user ids.
var depends = []string{
	"net", "net/http", "os/exec", "os/user", "syscall", "golang.org/x/sys/unix",
	"github.com/creack/pty", module + "tests/harness",
}

// permissions are functions whose result is another for root than for an
// ordinary user.
var permissions = regexp.MustCompile(`\bos\.(Get[eu]?uid|Getegid|Getgid|Chmod|Chown|Lchown)\b`)

// The run of ".ci/run" as an ordinary user leaves out the packages of the file
// run-once.
// Each must exist, have tests, and depend on no user.
func TestRunOnce_ListsPackagesThatDependOnNoUser(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../run-once")
	if err != nil {
		t.Fatal(err)
	}
	linux := build.Default
	linux.GOOS = "linux"
	tests := map[string]int{}
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); line[0] != '#' {
			if len(fields) < 3 {
				t.Errorf("no reason in %q", line)
				continue
			}
			tests[fields[0]] = 0
		}
	}
	goFiles(t, func(file string) {
		dir := path.Dir(file)
		if _, listed := tests[dir]; !listed || !strings.HasSuffix(file, "_test.go") {
			return
		}
		if built, err := linux.MatchFile(path.Join("../..", dir), path.Base(file)); err != nil || !built {
			return // the second run is on Linux only
		}
		source, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		tests[dir] += strings.Count(string(source), "\nfunc Test")
		if found := permissions.Find(source); found != nil {
			t.Errorf("%s uses %s: it depends on the user, so its package cannot be in run-once", file, found)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			if imported, _ := strconv.Unquote(spec.Path.Value); slices.Contains(depends, imported) {
				t.Errorf("%s imports %s: it may depend on the user, so its package cannot be in run-once",
					file, imported)
			}
		}
	})
	for dir, count := range tests {
		if count == 0 {
			t.Errorf("run-once lists %s, which has no test", dir)
		}
	}
}

// A test that is silently left out is as good as deleted. Only the second run
// of ".ci/run" sets the variable that harness.Once reads.
func TestRunOnce_OnlyTheSecondRunLeavesTestsOut(t *testing.T) {
	t.Parallel()
	const variable = "SIDECAR_SECOND" + "_RUN"
	for file, want := range map[string]int{
		"../../.ci/run": 0, "../../Makefile": 0, "../../.github/workflows/ci.yml": 0,
		"../../.github/workflows/macos.yml": 0,
		"../as-user":                        2, "../ci/parts.go": 1, "../harness/once.go": 2,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(text), variable); got != want {
			t.Errorf("%s names %s %d times, want %d", file, variable, got, want)
		}
	}
	goFiles(t, func(file string) {
		source, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), variable) && file != "tests/harness/once.go" &&
			file != "tests/ci/parts.go" {
			t.Errorf("%s names %s", file, variable)
		}
	})
}
