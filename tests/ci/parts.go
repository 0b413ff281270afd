package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// part is a command that runs tests or checks.
type part struct {
	name    string
	as      string // who runs it, for make ci-list
	command []string
	env     []string
	// packages are those of Go tests; "./..." is all of them.
	packages []string
	// again lists commands that run failed tests again; nil if it has no tests.
	again func(failed []test) [][]string
	// quiet means that its text for people is only shown if it fails.
	quiet bool
}

// lanes are the parts of a run on this machine. Parts of one lane run one after
// the other. The Go tests wait for VS Code's: beside each other those took an hour,
// and a browser that waits is not idle. The checks take the processor time that is
// left.
func lanes(c choice) [][]part {
	all := [][]part{nil, nil, {checkPart()}}
	add := func(lane int, wanted bool, p part) {
		if wanted {
			all[lane] = append(all[lane], p)
		}
	}
	add(0, c.vscode.chosen(), vscodePart(c.vscode))
	all[0] = append(all[0], goParts(c)...)
	add(0, isRoot() && len(c.user) > 0, userPart(c.user, c.turn))
	add(1, c.neovim.chosen(), neovimPart("newest", c.neovim))
	add(1, c.oldestNeovim, neovimPart("oldest", suites{all: true}))
	add(1, len(c.race) > 0, racePart(c.race))
	add(1, isRoot() && c.odd, oddPart(c.user, c.oddTurn))
	add(2, c.properties, propertiesPart(c.odd))
	return all
}

// named finds parts by their names. Each is a lane of its own.
func named(names []string, c choice) (found [][]part, err error) {
	var known []string
	for _, p := range slices.Concat(lanes(c)...) {
		known = append(known, p.name)
		if slices.Contains(names, p.name) {
			found = append(found, []part{p})
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no part is called %q; the parts are: %s", name, strings.Join(known, ", "))
		}
	}
	return found, nil
}

func isRoot() bool { return os.Getuid() == 0 }

// runsEverything reports whether this machine and user can run every part.
func runsEverything() bool {
	skipped, err := exec.Command("tests/on-debian", "true").Output()
	return isRoot() && err == nil && len(skipped) == 0
}

// packageTime is the time limit of a package's tests. timed prolongs it by the time
// for which they wait for a processor, so that only a test that hangs reaches it.
const packageTime = 30 * time.Minute

// low is a priority at which a part leaves most of the processors to the others. At
// the lowest it would have none beside a program that never waits.
var low = []string{"nice", "-n", "5"}

// patience is packageTime for tests of many generated settings.
const patience = time.Hour

// within are the flag and the variable that set the time limit of a package's tests.
func within(limit time.Duration) (flag, variable string) {
	if len(timing()) == 0 {
		return limit.String(), limitVariable + "="
	}
	return "0", limitVariable + "=" + limit.String()
}

// goTests is a part of Go tests. prefix are words before "go test". No result comes
// from the cache, which does not know as which user a test ran.
func goTests(name, as string, prefix, env, flags, packages []string) part {
	limit, variable := within(packageTime)
	start := []string{"go", "test", "-json", "-vet=off", "-count=1", "-timeout", limit}
	command := slices.Concat(prefix, start, timing(), flags)
	return part{
		name: name, as: as, env: append([]string{variable}, env...), packages: packages, // the last one counts
		command: slices.Concat(command, withStormsLast(packages)),
		again: func(failed []test) [][]string {
			var commands [][]string
			for _, t := range failed {
				commands = append(commands,
					slices.Concat(command, []string{"-run", pattern(t.Name), t.Package}))
			}
			return commands
		},
	}
}

// storms is the package whose processes fork and take memory as fast as they can.
const storms = "./tests/lifetime"

// withStormsLast are packages in the order in which they start: beside storms,
// others would wait for a processor.
func withStormsLast(packages []string) []string {
	if !slices.Contains(packages, storms) {
		return packages
	}
	others := slices.DeleteFunc(slices.Clone(packages), func(name string) bool { return name == storms })
	return append(others, storms)
}

// pattern is the value of -run that selects one test or subtest.
func pattern(name string) string {
	elements := strings.Split(name, "/")
	for i, element := range elements {
		elements[i] = "^" + regexp.QuoteMeta(element) + "$"
	}
	return strings.Join(elements, "/")
}

// fewRounds is for tests that repeat themselves: they do so less often.
var fewRounds = []string{"-short"}

// goParts are the chosen Go tests, as whoever starts the run.
func goParts(c choice) (parts []part) {
	as := "whoever starts it"
	if isRoot() {
		as = "root"
	}
	env := []string{"CGO_ENABLED=0", "SIDECAR_TURN=" + c.turn}
	var flags []string
	if c.properties {
		flags = []string{"-skip", begins(repeated)} // part properties runs them
	}
	if len(c.whole) > 0 {
		parts = append(parts, goTests("go", as, nil, env, flags, c.whole))
	}
	if len(c.others) > 0 {
		parts = append(parts, goTests("go-others", as, nil, env, slices.Concat(fewRounds, flags), c.others))
	}
	return parts
}

// computed are how the names of tests begin that only compute, for many generated
// settings: a user does not matter to them.
var computed = []string{"TestMeet_", "TestRequired_Nothing", "TestForbidden_Grants", "TestExplain_TheSetting"}

// userPart is run by root: an ordinary user has no cgroup of its own unless one
// is delegated, and cannot try what only root can. Where udev runs, everybody may
// open /dev/fuse.
func userPart(packages []string, turn string) part {
	missing := os.Getenv("SIDECAR_MISSING") + " process_tracking root sudo systemd"
	if info, err := os.Stat("/dev/fuse"); err != nil || info.Mode().Perm() != 0o666 {
		missing += " fuse"
	}
	return goTests("user", "an ordinary user", []string{"tests/as-user"},
		[]string{"SIDECAR_MISSING=" + missing, "SIDECAR_SECOND_RUN=1", "SIDECAR_TURN=" + turn},
		slices.Concat(fewRounds, []string{"-skip", begins(computed)}), packages)
}

// oddPart is userPart for what starts the program, on a machine that is set up
// otherwise; see tests/odd-machine.
func oddPart(packages []string, turn string) part {
	packages = slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		return !isBelow(name, "./tests") || name == "./tests/ci"
	})
	p := userPart(packages, turn)
	return goTests("user-odd", "an ordinary user, otherwise set up", []string{"tests/odd-machine", "tests/as-user"},
		p.env, fewRounds, packages)
}

// racePart leaves out the property tests: they run on one goroutine and can show
// no race. Tests that repeat themselves do so less often, as each round is slower.
func racePart(packages []string) part {
	return goTests("race", "the race detector", nil, []string{"CGO_ENABLED=1"},
		slices.Concat(fewRounds, []string{"-race", "-skip", begins(generated)}), packages)
}

// generated are how the names of tests of many generated settings begin.
var generated = []string{
	"TestMeet_AProject", "TestMeet_OnARealTree", "TestExplain_Agrees", "TestExplain_TheSetting", "TestRequired_Nothing",
	"TestRequired_Holds", "TestForbidden_Grants", "TestSpawn_NamesEveryKey",
}

// repeated are those of them that part properties runs.
var repeated = []string{
	"TestMeet_AProjectNeverGrantsMoreThanTheUser", "TestExplain_AgreesWithTheKernel", "TestExplain_AgreesWithASession",
}

// begins is a pattern of names that begin like one of these.
func begins(names []string) string { return "^(" + strings.Join(names, "|") + ")" }

// concurrent are the directories of the packages whose code runs concurrently, with
// what is below them if they end in a slash. What settings/compile makes is used
// concurrently by settings and rpc, whose tests show its races.
var concurrent = []string{
	"rpc/", "spawn/", "lifecycle/", "settings", "settings/source", "settings/resolve", "settings/git",
	"settings/trust", "platform/linux/notify/", "platform/linux/sockets/",
}

// isConcurrent looks a package up in concurrent.
func isConcurrent(dir string) bool {
	return slices.ContainsFunc(concurrent, func(entry string) bool {
		return dir == entry || strings.HasPrefix(dir+"/", entry) && strings.HasSuffix(entry, "/")
	})
}

// propertiesPart tries many generated settings, and if everything runs ten times as
// many or more. Each run has others, so all runs together have far more.
func propertiesPart(all bool) part {
	pairs, policies := 2000, 12
	if all {
		pairs, policies = 20000, 300
	}
	limit, variable := within(patience)
	return goTests("properties", "a low priority", low,
		[]string{
			"CGO_ENABLED=0", fmt.Sprint("SIDECAR_PAIRS=", pairs), fmt.Sprint("SIDECAR_EXPLAIN_POLICIES=", policies),
			variable,
		},
		[]string{"-run", begins(repeated), "-timeout", limit},
		[]string{"./settings/...", "./tests/explain"})
}

// checkPart is the checks that take minutes. .ci/run runs the others first.
func checkPart() part {
	return part{
		name: "check", as: "a low priority", command: slices.Concat(low, []string{"make", "check-slow"}),
		env: []string{"CGO_ENABLED=0"}, quiet: true,
	}
}

func vscodePart(tests suites) part {
	run := []string{"tests/on-debian", "clients/vscode/tests/run"}
	return part{
		name: "vscode", as: "the editor", command: withOrphans(run), quiet: true,
		env: []string{"SIDECAR_EVENTS=1", "SUITES=" + strings.Join(tests.only(), " ")},
		again: func(failed []test) [][]string {
			var titles []string
			for _, t := range failed {
				titles = append(titles, regexp.QuoteMeta(t.Name))
			}
			return [][]string{append(slices.Clone(run), "-g", "^("+strings.Join(titles, "|")+")")}
		},
	}
}

func neovimPart(which string, tests suites) part {
	name := map[string]string{"newest": "neovim", "oldest": "neovim-oldest"}[which]
	run := []string{"tests/on-debian", "clients/neovim/tests/run"}
	chosen := slices.Clone(run)
	for _, file := range tests.only() {
		chosen = append(chosen, filepath.Join(neovim, file))
	}
	return part{
		name: name, as: "the editor", command: withOrphans(chosen), quiet: true,
		env: []string{"SIDECAR_EVENTS=1", "NEOVIMS=" + which},
		again: func(failed []test) [][]string {
			var files []string
			for _, t := range failed {
				file, _, _ := strings.Cut(t.Name, " | ")
				files = append(files, filepath.Join("clients/neovim/tests", file))
			}
			slices.Sort(files)
			return [][]string{append(slices.Clone(run), slices.Compact(files)...)}
		},
	}
}
