package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// readers has the packages whose tests read files that are not theirs, by the path
// of a file or directory; all rows above a file count. "." is the whole checkout.
// What test processes read themselves is recorded in each run, and a run is red if
// it is missing here. What is read before m.Run, or by a process that a test starts,
// is not recorded: scripts and programs are in reach.
var readers = map[string][]string{
	".": {"cmd/gen", "tests/messages", "tests/sources"},
	// The binaries for macOS, which a test builds on Linux.
	"platform/darwin": {"tests", "tests/macos"},
	"platform/proxy":  {"tests"},
	// What the CI job of a Mac runs.
	"lifecycle": {"tests/macos"},
	".github":   {"tests/macos"}, ".ci/run": {"tests/macos"},
	"clients/neovim/tests/on-mac": {"tests/macos"}, "clients/vscode/tests/on-mac": {"tests/macos"},

	".ci/packages": {"tests"},
	"README.md":    {"settings", "tests/recording"},

	"tests/ordinary": {"tests/machines"},

	"docs/agents.md":         {"cmd/sandbox-sidecar/shells", "settings/agents"},
	"docs/design/session.md": {"tests/doors"},
	"docs/differences.md":    {"tests/suites"},
	"docs/guide.md":          {"tests"},

	"docs/design/what-runs-outside.md": {"tests/attack"},

	"docs/performance":    {"tests/bench"},
	"docs/performance.md": {"tests/bench"},
	"docs/recording.svg":  {"tests/recording"},
	"docs/settings.md":    {"settings", "settings/compile"},
	"docs/team.md":        {"tests/audit"},
	"docs/tools.md":       {"tests/ordinary"},
}

// readersOf looks the packages up whose tests read a file.
func readersOf(file string) (dirs []string) {
	for at := file; ; at = path.Dir(at) {
		dirs = append(dirs, readers[at]...)
		if at == "." {
			return dirs
		}
	}
}

// readFormat is how timed prints a path, from the module's root, that a test
// process has read.
const readFormat = "read: %q\n"

// readLog has a test process write what it reads to a file (go help testflag has
// it for the go command alone). reads returns that, and removes the file.
func readLog(args []string) (logged []string, reads func() ([]string, error), err error) {
	file, err := os.CreateTemp("", "sidecar-reads-")
	if err != nil {
		return nil, nil, err
	}
	if err := file.Close(); err != nil {
		return nil, nil, err
	}
	logged = slices.Insert(slices.Clone(args), 1, "-test.testlogfile="+file.Name())
	return logged, func() ([]string, error) {
		defer os.Remove(file.Name())
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(file.Name())
		if err != nil {
			return nil, err
		}
		return readsIn(string(text), dir), nil
	}, nil
}

// readsIn are the paths, from the module's root, of a test log: lines like
// "open FILE", "stat FILE" and "chdir DIR". dir is where the process has started,
// its package. What lies in that package is left out, and what does not exist.
// Of directories only those count whose entries were read.
func readsIn(log, dir string) []string {
	root := real(moduleRoot(dir))
	if root == "" {
		return nil
	}
	found := map[string]bool{}
	at := dir
	for line := range strings.Lines(log) {
		verb, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !filepath.IsAbs(name) {
			name = filepath.Join(at, name)
		}
		switch verb {
		case "chdir":
			at = name
			continue
		case "open", "stat":
		default:
			continue
		}
		name, err := filepath.Rel(root, real(name)) // lua, plugin and doc are symlinks
		if err != nil || !filepath.IsLocal(name) || found[name] {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, name))
		if err == nil && (verb == "open" || !info.IsDir()) {
			found[filepath.ToSlash(name)] = true
		}
	}
	own, err := filepath.Rel(root, real(dir))
	if err != nil {
		return nil
	}
	maps.DeleteFunc(found, func(name string, _ bool) bool { return name == own || path.Dir(name) == own })
	return slices.Sorted(maps.Keys(found))
}

// real is a path without symlinks, if it exists.
func real(name string) string {
	if followed, err := filepath.EvalSymlinks(name); err == nil {
		return followed
	}
	return name
}

// moduleRoot is the directory at or above dir that has go.mod; "" for none.
func moduleRoot(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); !errors.Is(err, fs.ErrNotExist) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// judgeReads says which tests have read a file whose change would leave them out; ""
// if there are none. reads are by package and path.
func judgeReads(ctx context.Context, checkout string, reads map[string]map[string]bool) (why string, err error) {
	packages, err := listPackages(ctx, checkout)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(packages, func(p pkg) bool { return p.Dir == "tests/ci" && len(reads[p.ImportPath]) > 0 }) {
		return "no test process has written down what it reads", nil // those of tests/ci always do
	}
	list, err := git(ctx, checkout, "ls-files", "-z")
	if err != nil {
		return "", err
	}
	missing := leftOut(packages, strings.Split(list, "\x00"), reads)
	if len(missing) == 0 {
		return "", nil
	}
	return "the table readers of tests/ci lacks what tests read:\n" + strings.Join(missing, "\n"), nil
}

// leftOut lists the files of the repository that tests have read, and whose change
// would leave these tests out.
func leftOut(packages []pkg, files []string, reads map[string]map[string]bool) (missing []string) {
	tracked := map[string]bool{".": true}
	for _, file := range files {
		for at := file; at != "" && !tracked[at]; at = path.Dir(at) {
			tracked[at] = true
		}
	}
	touched := map[string]map[string]bool{}
	for _, p := range packages {
		for _, name := range slices.Sorted(maps.Keys(reads[p.ImportPath])) {
			if !tracked[name] {
				continue
			}
			if touched[name] == nil {
				touched[name] = touchedBy(packages, []string{name})
			}
			if !touched[name][p.Dir] {
				missing = append(missing, fmt.Sprintf("%s reads %s", p.Dir, name))
			}
		}
	}
	return missing
}
