package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// choice is what runs besides the parts that always run. Packages are paths from
// the module's root, with "./" before them.
type choice struct {
	// why says what the choice was made by, for people.
	why        string
	user, race []string
	// whole are packages in which tests that repeat themselves do so as often as it
	// may find something; those of others do so less often. Tests of neither do not
	// run. If a change touches all tests, all of them are others.
	whole, others []string
	// vscode and neovim are the tests of the editors' plugins that run.
	vscode, neovim           suites
	oldestNeovim, properties bool
	// odd repeats the tests on a machine that is set up otherwise. There variants of
	// a test take turns by oddTurn: all of them run elsewhere in the same run.
	odd     bool
	oddTurn string
	// turn is the number by which variants of a test take turns, see harness.Turn;
	// "" if all of them run.
	turn string
}

// suites are the tests of an editor's plugin that run: all, or these files; none of
// both means that none run.
type suites struct {
	all   bool
	files []string // from the plugin's directory
	// itself: the plugin has changed, by more than its copy of the protocol's types.
	itself bool
}

// chosen reports whether any run.
func (s suites) chosen() bool { return s.all || len(s.files) > 0 }

// only are the files of the only suites that run; nil if all run, whichever of them
// are also chosen by name.
func (s suites) only() []string {
	if s.all {
		return nil
	}
	return s.files
}

// journeys are the tests that do a day's work in an editor.
var journeys = map[string][]string{
	vscode: {
		"tests/ui/story.test.ts", "tests/ui/lifetime.test.ts", "tests/ui/work.test.ts",
	},
	neovim: {"tests/test_story.lua", "tests/test_terminal.lua", "tests/test_work.lua"},
}

// touchesAll are paths whose change can matter to every test: what confines, what
// each session's start runs through, what the tests are run by.
var touchesAll = []string{
	"platform/linux/", "platform/handshake/", "platform/hosts/loopback/", "lifecycle/", "spawn/", "fsguard/",
	"go.mod", "go.sum", "Makefile", ".ci/run", "tests/harness/", "tests/as-user", "tests/prerequisites",
	"tests/run-once", "tests/skip", "tests/build-programs", "tests/on-debian", "clients/neovim/tests/tools",
	"tests/ci/", // starts all tests, and decides here what is left out
}

// The editors' plugins have tests too. They start the same programs as the packages
// below tests/, and have these names in the tables.
const (
	vscode = "clients/vscode"
	neovim = "clients/neovim"
)

// shown is what the editors' plugins speak and show: directories, with what is below
// them if they end in a slash, and files. Their tests take a third of a run, so they
// run whole only if this changes, or a plugin does. Another change is tried by the
// journeys, and by make test-all.
var shown = []string{
	"rpc/", "presentation", "display", "session", "cmd/sandbox-sidecar/", "platform/review/", "spawn/forward",
	"settings", "settings/document", "settings/starter", "settings/trust", "settings/explain",
	"docs/settings.schema.json", "clients/neovim/tests/tools", "tests/prerequisites",
}

// isShown looks a file up in the table shown.
func isShown(file string) bool {
	return slices.ContainsFunc(shown, func(entry string) bool {
		return file == entry || path.Dir(file) == entry ||
			strings.HasSuffix(entry, "/") && strings.HasPrefix(file, entry)
	})
}

// reach has the packages below tests/ and the editors' plugins that a change can
// matter to, by the path of the change; the longest path counts. They start
// programs instead of importing them. So a change of what the programs hold, or of
// a file in no package, matters to all of them, unless this table says otherwise.
var reach = map[string][]string{
	// What answers people and agents, or is held by programs of few tests.
	"clients": nil, "clients/tty": {"tests"},
	"agents/acp":                      slices.Concat(agentsTests, []string{"tests"}),
	"agents/mcp":                      agentsTests,
	"cmd/sandbox-sidecar-mcp":         agentsTests,
	"cmd/sandbox-sidecar/commandline": {"tests", "tests/recording", vscode, neovim},
	"cmd/sandbox-sidecar/trailview":   {"tests/audit", "tests/hosts", "tests/managed", vscode, neovim},
	"settings/starter": {
		"tests", "tests/agents", "tests/denials", "tests/managed", "tests/ordinary", "tests/recording", "tests/stories",
		vscode, neovim,
	},
	"audit": {
		"tests", "tests/audit", "tests/denials", "tests/hosts", "tests/hung", "tests/lifetime", "tests/managed", vscode,
		neovim,
	},
	// What grants or protects one kind of thing.
	"settings/gnupg": {"tests", "tests/explain", "tests/protected", "tests/sockets", "tests/stories"},
	"settings/sshconfig": {
		"tests", "tests/attack", "tests/denials", "tests/explain", "tests/groups", "tests/hosts", "tests/ordinary",
		"tests/protected", "tests/shells", "tests/sockets", "tests/stories",
	},
	"settings/managed": {"tests", "tests/managed"},
	"platform/hosts":   networksTests, "platform/outbound": networksTests,
	// Programs of one package's tests.
	"tests/agents/victim": {"tests/agents"}, "tests/hosts/victim": {"tests/hosts", "tests/machines"},
	"tests/sockets/victim": {"tests/sockets"}, "tests/syscalls/victim": {"tests/syscalls"},
	// Read by a test, or by people alone; see readers.
	"docs": nil, "README.md": nil, "CHANGELOG.md": nil, "SECURITY.md": nil, "ARCHITECTURE.md": nil,
	"CONTRIBUTING.md": nil, ".github": nil, ".gitignore": nil, ".golangci.yml": nil, ".ci": nil,
	// The editors' plugins, and what their packages hold.
	"clients/vscode": {vscode}, "clients/neovim": {neovim}, "doc": {neovim}, "lua": {neovim}, "plugin": {neovim},
	"docs/settings.schema.json": {vscode}, "LICENSE": {vscode},
}

var (
	agentsTests = []string{
		"tests/agents", "tests/audit", "tests/doors", "tests/explain", "tests/managed", "tests/shells",
	}
	networksTests = []string{
		"tests", "tests/agents", "tests/attack", "tests/audit", "tests/denials", "tests/doors", "tests/explain",
		"tests/groups", "tests/hosts", "tests/machines", "tests/managed", "tests/ordinary", "tests/shells",
		"tests/stories", vscode, neovim,
	}
)

// isProgram reports whether the packages below tests/ start the program of a
// directory. A change of a package that none of these programs holds matters to
// none of them.
func isProgram(dir string) bool {
	return isBelow(dir, "cmd/sandbox-sidecar") || dir == "cmd/sandbox-sidecar-mcp" || dir == "clients/tty" ||
		isBelow(dir, "tests") && path.Base(dir) == "victim"
}

// pkg is what "go list" says of a package of this module.
type pkg struct {
	Dir                                string // from the module's root
	ImportPath, Name                   string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
	EmbedFiles                         []string // with those of tests, from the module's root
}

// decide chooses what runs, for all or for what has changed since the last commit
// whose run was green.
func decide(ctx context.Context, all bool) (choice, error) {
	packages, err := listPackages(ctx, ".")
	if err != nil {
		return choice{}, err
	}
	once, err := runOnce("tests/run-once")
	if err != nil {
		return choice{}, err
	}
	if all {
		head, err := git(ctx, ".", "rev-parse", "HEAD")
		if err != nil {
			return choice{}, err
		}
		c := everything(packages, once, true, "everything")
		c.oddTurn = turnOf(head)
		return c, nil
	}
	since, why := lastPassed(ctx, ".")
	if since == "" {
		return everything(packages, once, false, "everything: "+why), nil
	}
	if !runsEverything() {
		return everything(packages, once, false, "everything: "+passedFile+" is known only of root on Debian"), nil
	}
	files, err := changedSince(ctx, ".", since)
	if err != nil {
		return choice{}, err
	}
	head, err := git(ctx, ".", "rev-parse", "HEAD")
	if err != nil {
		return choice{}, err
	}
	c := choose(packages, once, files, false, fmt.Sprintf("what the change of %d files since %.12s can matter to",
		len(files), since))
	if slices.ContainsFunc(files, matters) {
		present, err := suitesIn(ctx, vscode)
		if err != nil {
			return choice{}, err
		}
		c = c.inTurns(files, present, head)
	}
	return c, nil
}

// inTurns is a choice for a change of files that touches all tests: what repeats
// itself does so less often, and takes turns by the commit. Root runs every package
// once. present are the suites of VS Code's extension, which takes the longest.
func (c choice) inTurns(files, present []string, commit string) choice {
	turn := crc32.ChecksumIEEE([]byte(commit))
	c.user = inTurn(c.user, turn, func(name string) bool {
		return name != "./tests/ci" && (isBelow(name, "./tests") || !hasChanged(c.user, name, files))
	})
	// The heaviest of both, rpc and most attacks, have different turns.
	c.race = inTurn(c.race, turn+1, func(name string) bool { return !hasChanged(c.race, name, files) })
	c.whole, c.others = nil, slices.Sorted(slices.Values(slices.Concat(c.whole, c.others)))
	c.turn = turnOf(commit)
	c.vscode = c.vscode.inTurn(present, turn)
	return c
}

// turnOf is the turn of a test's variants, see harness.Turn. It differs from that of
// the packages, or a package would have the same variants each time that it is an
// ordinary user's.
func turnOf(commit string) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(commit))/thirds), 10)
}

// thirds is how many turns packages take that run a second time.
const thirds = 3

// inTurn are the packages that run a second time, as an ordinary user or for data
// races. Those for which takesTurns holds take turns: each turn has a third of them.
func inTurn(packages []string, turn uint32, takesTurns func(name string) bool) (chosen []string) {
	for _, name := range packages {
		if takesTurns(name) {
			if turn++; turn%thirds != 0 {
				continue
			}
		}
		chosen = append(chosen, name)
	}
	return chosen
}

// hasChanged reports whether one of the files is a package's.
func hasChanged(packages []string, name string, files []string) bool {
	return slices.ContainsFunc(files, func(file string) bool { return packageOf(packages, file) == name })
}

// packageOf is the package that a file is below, the deepest if it is below several;
// "" for none.
func packageOf(packages []string, file string) (name string) {
	for _, each := range packages {
		if isBelow("./"+file, each) && len(each) > len(name) {
			name = each
		}
	}
	return name
}

// everything chooses all tests. rounds is as in choose.
func everything(packages []pkg, once []string, rounds bool, why string) choice {
	c := choose(packages, once, []string{"go.mod"}, rounds, why)
	c.vscode, c.neovim, c.oldestNeovim = suites{all: true}, suites{all: true}, true
	return c
}

// choose chooses what runs for the change of files. rounds means that tests that
// repeat themselves do so in every package that is touched; otherwise those below
// tests/ do so only if they have changed themselves.
func choose(packages []pkg, once, files []string, rounds bool, why string) choice {
	touched := touchedBy(packages, files)
	c := choice{
		why: why, properties: touched["settings"], odd: rounds,
	}
	if touched[vscode] {
		c.vscode = suitesOf(packages, files, vscode)
	}
	if touched[neovim] {
		c.neovim = suitesOf(packages, files, neovim)
	}
	for _, p := range packages {
		if !touched[p.Dir] {
			continue
		}
		name := "./" + p.Dir
		changed := slices.ContainsFunc(files, func(file string) bool { return isBelow(file, p.Dir) })
		if rounds || changed || !isBelow(p.Dir, "tests") {
			c.whole = append(c.whole, name)
		} else {
			c.others = append(c.others, name)
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		if !slices.Contains(once, p.Dir) {
			c.user = append(c.user, name)
		}
		if isConcurrent(p.Dir) {
			c.race = append(c.race, name)
		}
	}
	c.oldestNeovim = c.neovim.all && slices.ContainsFunc(files, func(file string) bool {
		return isBelow(file, "rpc/protocol") || owningEditor(file) == neovim
	})
	return c
}

// suitesOf are the tests of an editor's plugin that a change of files can matter to,
// if it can matter to any. A change of the tests alone cannot break the plugin.
func suitesOf(packages []pkg, files []string, editor string) suites {
	chosen := suites{files: slices.Clone(journeys[editor])}
	for _, file := range files {
		below := strings.TrimPrefix(file, editor+"/")
		switch {
		case matters(file) && isShown(file):
			chosen.all = true
		case below != file && isSuite.MatchString(below):
			chosen.files = append(chosen.files, below)
		case below != file && isBelow(below, "tests"):
		case owningEditor(file) == editor:
			chosen.all, chosen.itself = true, chosen.itself || !isGenerated.MatchString(below)
		case isTestFile(file) || !reaches(file, editor):
		case ownerOf(packages, file) == nil && !matters(file), isShown(file):
			chosen.all = true
		}
	}
	slices.Sort(chosen.files)
	chosen.files = slices.Compact(chosen.files)
	return chosen
}

// suitesIn are the suites of VS Code's extension in its directory.
func suitesIn(ctx context.Context, dir string) ([]string, error) {
	found, err := git(ctx, dir, "ls-files", "tests/unit/*.test.ts", "tests/ui/*.test.ts")
	return strings.Fields(found), err
}

// isGenerated matches the protocol's types in the language of an editor.
var isGenerated = regexp.MustCompile(`(^|/)protocol(\.gen\.ts|_gen\.lua)$`)

// inTurn are the suites of a plugin that has not changed itself: those that are
// chosen by name, the unit tests, and a third of the others, which take turns.
// present are the plugin's suites.
func (s suites) inTurn(present []string, turn uint32) suites {
	if !s.all || s.itself {
		return s
	}
	files := slices.Clone(s.files)
	for _, name := range present {
		switch {
		case slices.Contains(s.files, name):
		case strings.HasPrefix(name, "tests/unit/"):
			files = append(files, name)
		default:
			if turn++; turn%thirds == 0 {
				files = append(files, name)
			}
		}
	}
	return suites{files: files}
}

// isSuite matches the files of an editor's tests, from the plugin's directory.
var isSuite = regexp.MustCompile(`^tests/(test_.*\.lua|(ui|unit)/.*\.test\.ts)$`)

// matters reports whether a file is in touchesAll.
func matters(file string) bool {
	return slices.ContainsFunc(touchesAll, func(prefix string) bool { return strings.HasPrefix(file, prefix) })
}

// owningEditor is the editor's plugin that a file is part of; "" for none.
func owningEditor(file string) string {
	switch {
	case isBelow(file, vscode):
		return vscode
	case isBelow(file, neovim), slices.Contains([]string{"lua", "plugin", "doc"}, file):
		return neovim
	}
	return ""
}

// touchedBy returns what a change of files can matter to: the directories of the
// packages that hold or embed them, that import such packages, whose tests read
// them, and of those below tests/ that start programs of them; the editors'
// plugins as well.
func touchedBy(packages []pkg, files []string) map[string]bool {
	touched := map[string]bool{"tests/ci": true} // it judges the rest
	changed := map[string]bool{}                 // import paths of packages that importers see changed
	held := heldByPrograms(packages)
	for _, file := range files {
		if !isTestFile(file) && matters(file) {
			for _, p := range packages {
				touched[p.Dir] = true
			}
			touched[vscode], touched[neovim] = true, true
			return touched
		}
		for _, reader := range readersOf(file) {
			touched[reader] = true
		}
		for _, p := range packages {
			if slices.Contains(p.EmbedFiles, file) {
				touched[p.Dir] = true
				changed[p.ImportPath] = true
			}
		}
		owner := ownerOf(packages, file)
		if owner != nil {
			touched[owner.Dir] = true
			changed[owner.ImportPath] = changed[owner.ImportPath] || !isTestFile(file)
			if isTestFile(file) || !held[owner.ImportPath] {
				continue
			}
		}
		for _, dir := range startPrograms(packages) {
			touched[dir] = touched[dir] || reaches(file, dir)
		}
	}
	for _, p := range packages {
		if touched[p.Dir] || len(changed) == 0 {
			continue
		}
		reached := closure(packages, slices.Concat(p.Imports, p.TestImports, p.XTestImports))
		for path, is := range changed {
			touched[p.Dir] = touched[p.Dir] || is && reached[path]
		}
	}
	return touched
}

// startPrograms are the packages below tests/ and the editors' plugins.
func startPrograms(packages []pkg) (dirs []string) {
	for _, p := range packages {
		if isBelow(p.Dir, "tests") {
			dirs = append(dirs, p.Dir)
		}
	}
	return append(dirs, vscode, neovim)
}

// heldByPrograms are the import paths of all that the programs are made of.
func heldByPrograms(packages []pkg) map[string]bool {
	var roots []string
	for _, p := range packages {
		if p.Name == "main" && isProgram(p.Dir) {
			roots = append(roots, p.ImportPath)
		}
	}
	return closure(packages, roots)
}

// closure is packages with all that they import, directly or not. The tests of an
// imported package do not count.
func closure(packages []pkg, roots []string) map[string]bool {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.ImportPath] = p.Imports
	}
	seen := map[string]bool{}
	for next := slices.Clone(roots); len(next) > 0; {
		last := next[len(next)-1]
		next = next[:len(next)-1]
		if !seen[last] {
			seen[last] = true
			next = append(next, imports[last]...)
		}
	}
	return seen
}

// ownerOf is the package in whose directory, or below it, a file is; nil if
// there is none.
func ownerOf(packages []pkg, file string) (owner *pkg) {
	for i, p := range packages {
		if isBelow(file, p.Dir) && (owner == nil || len(p.Dir) > len(owner.Dir)) {
			owner = &packages[i]
		}
	}
	return owner
}

// isTestFile reports whether a file of a package is only there for its tests.
func isTestFile(file string) bool {
	return strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/")
}

// reaches looks a package below tests/, or an editor's plugin, up in the table
// reach.
func reaches(file, dir string) bool {
	for at := file; at != "."; at = path.Dir(at) {
		if dirs, known := reach[at]; known {
			return slices.Contains(dirs, dir)
		}
	}
	return true
}

func isBelow(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}

// listPackages asks the go command for the packages of this module.
func listPackages(ctx context.Context, root string) (all []pkg, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	list := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,Name,Imports,TestImports,XTestImports,"+
		"TestGoFiles,XTestGoFiles,EmbedFiles,TestEmbedFiles,XTestEmbedFiles", "./...")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", stderrOf(err))
	}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			pkg
			TestEmbedFiles, XTestEmbedFiles []string
		}
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("list packages: %w", err)
		}
		if p.Dir, err = filepath.Rel(root, p.Dir); err != nil {
			return nil, err
		}
		p.EmbedFiles = slices.Concat(p.EmbedFiles, p.TestEmbedFiles, p.XTestEmbedFiles)
		for i, name := range p.EmbedFiles {
			p.EmbedFiles[i] = path.Join(p.Dir, filepath.ToSlash(name))
		}
		all = append(all, p.pkg)
	}
}

// runOnce reads the packages of the file run-once.
func runOnce(name string) (dirs []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			dirs = append(dirs, fields[0])
		}
	}
	return dirs, nil
}

// passedFile holds the last commit whose run was green. As far as the tables know,
// nothing has changed since then that can matter to what a run leaves out, except
// for the other suites of an editor whose journeys ran, and for the packages whose
// turn as an ordinary user it was not. "make test-all" runs these.
const passedFile = ".ci/passed"

var isHash = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// lastPassed is that commit; "" with the reason if it cannot be compared with.
func lastPassed(ctx context.Context, checkout string) (commit, why string) {
	text, err := os.ReadFile(filepath.Join(checkout, passedFile))
	if err != nil {
		return "", "there is no " + passedFile
	}
	commit = strings.TrimSpace(string(text))
	if !isHash.MatchString(commit) {
		return "", passedFile + " names no commit"
	}
	if _, err := git(ctx, checkout, "merge-base", "--is-ancestor", "--end-of-options", commit, "HEAD"); err != nil {
		return "", fmt.Sprintf("%s names %.12q, which is no ancestor of this commit", passedFile, commit)
	}
	return commit, ""
}

// changedSince lists the files that differ from a commit, with those that git
// does not track yet.
func changedSince(ctx context.Context, checkout, commit string) (files []string, err error) {
	for _, args := range [][]string{
		{"diff", "--name-only", "--no-renames", "-z", commit, "--"},
		{"ls-files", "--others", "--exclude-standard", "-z"},
	} {
		out, err := git(ctx, checkout, args...)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(out, "\x00") {
			if name != "" && name != passedFile {
				files = append(files, name)
			}
		}
	}
	return files, nil
}

// withoutGit leaves out variables that name another repository, as in a hook.
func withoutGit(environ []string) []string {
	return slices.DeleteFunc(environ, func(variable string) bool { return strings.HasPrefix(variable, "GIT_") })
}

// git runs git in a directory, and returns what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	command.Env = withoutGit(os.Environ())
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], stderrOf(err))
	}
	return string(out), nil
}

// stderrOf adds what a failed command has said.
func stderrOf(err error) error {
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		line, _, _ := bufio.NewReader(strings.NewReader(string(failed.Stderr))).ReadLine()
		return fmt.Errorf("%w: %s", err, line)
	}
	return err
}
