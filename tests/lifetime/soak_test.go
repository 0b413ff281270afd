//go:build linux

package lifetime

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// soakSpawns is the number of spawns of a soak. SIDECAR_SOAK names another one:
// 100000 take about an hour.
func soakSpawns(t *testing.T) int {
	t.Helper()
	switch given := os.Getenv("SIDECAR_SOAK"); {
	case given != "":
		n, err := strconv.Atoi(given)
		if err != nil {
			t.Fatalf("SIDECAR_SOAK: %v", err)
		}
		return n
	case testing.Short():
		return 40
	}
	return 100
}

// Sandboxed tools and unsandboxed terminals come and go, while processes of the
// sidecar's are killed at any moment of their lives: forked children, stages,
// leaders, subreapers, domain killers, watchdogs. The sidecar collects garbage
// all the time. Each request is answered, and a spawn fails only if
// something was killed meanwhile. Afterwards the sidecar works, and holds
// nothing that it did not hold before. In the end it is killed itself, while
// sessions start.
func TestKillsAtAnyMomentLeaveNothing(t *testing.T) {
	t.Parallel()
	modes := trackingModes(t)
	for i, mode := range modes {
		spawns := roundsOf(t, soakSpawns(t), i, modes)
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			newSoak(t, mode.wrap(t)).run(spawns)
		})
	}
}

// soak is a sidecar with what has happened to it.
type soak struct {
	*harness.Editor
	t       *testing.T
	sidecar int
	// usual is how long a spawn takes without a kill.
	usual time.Duration
	// kills counts the kills that were begun.
	kills atomic.Int64

	mu       sync.Mutex // guards the maps
	killed   map[string]int
	outcomes map[string]int
}

func newSoak(t *testing.T, wrap func(*exec.Cmd)) *soak {
	t.Helper()
	s := &soak{t: t, killed: map[string]int{}, outcomes: map[string]int{}}
	// GOGC=10: more collections than spawns. The log would be long.
	s.Editor, s.sidecar = reaped(t, harness.NewWorld(t), harness.Defaults(harness.Sandbox{"apply_to": "tool"}),
		func(command *exec.Cmd) {
			command.Env = append(command.Env, "GOGC=10")
			for i, arg := range command.Args {
				if arg == "debug" {
					command.Args[i] = "error"
				}
			}
		}, wrap)
	return s
}

// soakKinds are sandboxed and unsandboxed, by the settings of newSoak.
var soakKinds = []protocol.Kind{protocol.Tool, protocol.Terminal}

const soakWorkers = 4

func (s *soak) run(spawns int) {
	t := s.t
	t.Helper()
	s.works()
	begun := time.Now()
	s.works()
	s.usual = time.Since(begun) / time.Duration(2*len(soakKinds))
	before := s.holds()

	begun = time.Now()
	s.rounds(spawns)
	took := time.Since(begun)
	t.Logf("%d spawns in %.0f s, %.1f a second; killed %v; outcomes %v", spawns, took.Seconds(),
		float64(spawns)/took.Seconds(), s.killed, s.outcomes)

	if listed := harness.Call(s.Editor, protocol.List, protocol.Empty{}).Sessions; len(listed) != 0 {
		t.Errorf("%d sessions are in the list", len(listed))
	}
	var more []string
	if !harness.Within(func() bool {
		s.works() // so that there are a watchdog and a stage on standby, as before
		more = s.holds().more(before)
		return len(more) == 0
	}) {
		s.dump()
		t.Fatalf("the sidecar holds more than before: %q", more)
	}
	t.Logf("before: %v", before)
	t.Logf("after:  %v", s.holds())
	s.die()
}

// works fails the test if a plain session of each kind does not start and end.
func (s *soak) works() {
	s.t.Helper()
	for range 2 {
		for _, kind := range soakKinds {
			session := s.Spawn(protocol.SpawnParams{Kind: kind, Command: "true"})
			if exit := session.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 {
				s.t.Errorf("a %s ends with %+v", kind, exit)
			}
			if kind == protocol.Tool && session.Sandbox.Protections["filesystem"].Status != protocol.Enforced {
				s.t.Errorf("a %s is confined so: %+v", kind, session.Sandbox)
			}
			session.Close(0)
		}
	}
}

func (s *soak) rounds(spawns int) {
	var workers sync.WaitGroup
	var next atomic.Int64
	for range soakWorkers {
		workers.Go(func() {
			for round := next.Add(1); round <= int64(spawns) && !s.t.Failed(); round = next.Add(1) {
				s.round(int(round))
				if round%1000 == 0 {
					s.t.Logf("%d spawns, %d kills", round, s.kills.Load())
				}
			}
		})
	}
	workers.Wait()
}

// round spawns a session, kills something before or after the answer, or
// nothing, and closes the session.
func (s *soak) round(round int) {
	params := protocol.SpawnParams{
		SessionID: uuid.NewString(), Kind: soakKinds[round%2], Cwd: s.World.Project, Command: "true",
	}
	if round%5 < 2 { // in turns with the kinds
		params.Command = roundLine(s.Editor)
	}
	var killing sync.WaitGroup
	kills := s.kills.Load()
	if rand.IntN(2) == 0 {
		killing.Go(func() {
			time.Sleep(rand.N(2 * s.usual))
			s.kill()
		})
	}
	answers := s.whenStalled(round)
	result, err := harness.Try(s.Editor, protocol.Spawn, params)
	answers()
	code := answered(s.t, "spawn", err)
	refused := code == protocol.CodeSpawnFailed || code == protocol.CodeSandboxUnavailable
	if disturbed := s.kills.Load() != kills; err != nil && (!disturbed || !refused) {
		s.t.Errorf("round %d, a %s: %v, kills meanwhile: %t", round, params.Kind, err, disturbed)
	}
	if err == nil {
		session := s.Session(result)
		if params.Command == "true" {
			session.Exit()
		} else {
			time.Sleep(rand.N(s.usual))
		}
		// On an overloaded machine a close may be answered before the end. What
		// is left at last shows whether it came.
		if closed := session.Close(0); closed.Remaining != 0 {
			s.t.Logf("round %d, a %s, is closed with %+v", round, params.Kind, closed)
		}
	}
	killing.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[fmt.Sprintf("%s %d", params.Kind, code)]++
}

// slowSpawn is how long a spawn of a long soak may take.
const slowSpawn = 5 * time.Second

// whenStalled fails a long soak if a spawn takes too long, and logs what every
// thread waits for. A machine may be so busy that the threads wait for a
// processor most of that time; then there is nothing to find.
func (s *soak) whenStalled(round int) (stop func()) {
	if os.Getenv("SIDECAR_SOAK") == "" {
		return func() {}
	}
	begun, delayed := time.Now(), s.delayed()
	var mu sync.Mutex // guards the timer, and answered
	var timer *time.Timer
	answered := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(slowSpawn, func() {
		mu.Lock()
		defer mu.Unlock()
		if answered {
			return // by then the test may have ended
		}
		took, waits, starved := time.Since(begun), s.waits(), s.delayed()-delayed
		if starved > took/2 && took < mostStarved {
			s.t.Logf("round %d: no answer for %v, but no processor for %v", round, took, starved)
			timer.Reset(slowSpawn)
			return
		}
		s.t.Errorf("round %d: no answer for %v, no processor for %v\n%s", round, took, starved, waits)
		s.dump()
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		answered = true
		timer.Stop()
		if took := time.Since(begun); took > slowSpawn {
			s.t.Logf("round %d: answered after %v", round, took)
		}
	}
}

// mostStarved is how long a spawn may take on a machine without a free
// processor.
const mostStarved = 5 * time.Minute

// tasks are the threads of the sidecar and its descendants, below /proc.
func (s *soak) tasks() (all []string) {
	for _, pid := range append(descendants(s.sidecar), s.sidecar) {
		list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		all = append(all, list...)
	}
	return all
}

// delayed is how long those threads have waited for a processor.
func (s *soak) delayed() (sum time.Duration) {
	for _, task := range s.tasks() {
		text, _ := os.ReadFile(filepath.Join(task, "schedstat"))
		if fields := strings.Fields(string(text)); len(fields) == 3 {
			delay, _ := strconv.ParseInt(fields[1], 10, 64)
			sum += time.Duration(delay)
		}
	}
	return sum
}

// waits is what those threads wait for.
func (s *soak) waits() string {
	var list strings.Builder
	for _, task := range s.tasks() {
		fmt.Fprintln(&list, task)
		for _, file := range []string{"comm", "wchan", "syscall", "schedstat", "stack"} {
			text, _ := os.ReadFile(filepath.Join(task, file))
			fmt.Fprintf(&list, "  %s: %s\n", file, strings.TrimSpace(string(text)))
		}
	}
	return list.String()
}

// dump ends the sidecar with the stacks of its goroutines in the log.
func (s *soak) dump() { _ = unix.Kill(s.sidecar, unix.SIGQUIT) }

// kill kills a descendant of the sidecar. The watchdog is one in twenty: the
// next one starts after a second.
func (s *soak) kill() {
	byRole := map[string][]int{}
	for _, pid := range descendants(s.sidecar) {
		role := roleOf(pid)
		byRole[role] = append(byRole[role], pid)
	}
	roles := slices.Sorted(maps.Keys(byRole))
	if i := slices.Index(roles, "watchdog"); i >= 0 && rand.IntN(20) > 0 {
		roles = slices.Delete(roles, i, i+1)
	}
	if len(roles) == 0 {
		return
	}
	role := roles[rand.IntN(len(roles))]
	pid := byRole[role][rand.IntN(len(byRole[role]))]
	s.kills.Add(1)
	if !killDescendant(pid, s.sidecar) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed[role]++
}

// die kills the sidecar while sessions start. The watchdog leaves nothing of
// them.
func (s *soak) die() {
	t := s.t
	t.Helper()
	s.works()
	harness.Eventually(t, "there is a watchdog", func() bool { return len(harness.Watchdogs(s.World)) == 1 })
	var spawns sync.WaitGroup
	for i := range 2 * soakWorkers {
		spawns.Go(func() {
			// the sidecar dies, perhaps without an answer
			_, _ = harness.Try(s.Editor, protocol.Spawn, protocol.SpawnParams{
				Kind: soakKinds[i%2], Cwd: s.World.Project, Command: roundLine(s.Editor),
			})
		})
	}
	time.Sleep(rand.N(3 * s.usual))
	kill(t, s.sidecar, unix.SIGKILL)
	spawns.Wait()
	mustLeaveNobody(t, s.Client)
	harness.NoTrace(t, s.World, s.sidecar)
}

// descendants are the processes below a process, at most three levels of them.
func descendants(pid int) (all []int) {
	level := []int{pid}
	for range 3 {
		var below []int
		for _, parent := range level {
			lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
			for _, list := range lists {
				text, _ := os.ReadFile(list)
				for field := range strings.FieldsSeq(string(text)) {
					if child, err := strconv.Atoi(field); err == nil {
						below = append(below, child)
					}
				}
			}
		}
		all, level = append(all, below...), below
	}
	return all
}

// roleOf is what a descendant of a sidecar is: a role of the sidecar's program,
// or another program's name.
func roleOf(pid int) string {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := splitArgs(cmdline)
	switch {
	case len(args) < 2 || !strings.HasSuffix(args[0], "sandbox-sidecar") && !strings.HasPrefix(args[0], "/proc/"):
		return comm(pid)
	case args[1] == "serve":
		return "forked"
	}
	return args[1]
}

// killDescendant kills a process if it still is a descendant of the sidecar:
// another process may have its number meanwhile.
func killDescendant(pid, sidecar int) bool {
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(handle)
	for up := pid; up != sidecar; {
		fields := stat(up)
		if len(fields) < 2 || up <= 1 {
			return false
		}
		up, _ = strconv.Atoi(fields[1])
	}
	return unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) == nil
}

// holdings are an inventory, and the descriptors by their kind.
type holdings struct {
	inventory
	kinds map[string]int
	files int // below the home
	rss   string
}

var digits = regexp.MustCompile(`\d+`)

// previousJournal is a kind of descriptors: a journal that was compacted stays
// open until the next one is.
const previousJournal = "/new-journal-N.journal (deleted)"

// holds waits until the sidecar has come to rest, and returns what it holds.
func (s *soak) holds() (got holdings) {
	take := func() holdings {
		h := holdings{inventory: take(s.t, s.sidecar, s.World), kinds: map[string]int{}}
		// One that was killed is not replaced while sessions may use its overlays.
		h.children -= len(harness.CacheHolders(s.sidecar))
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.sidecar))
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil {
				h.kinds[strings.TrimPrefix(digits.ReplaceAllString(to, "N"), s.World.Home)]++
			}
		}
		_ = filepath.WalkDir(s.World.Home, func(string, os.DirEntry, error) error { h.files++; return nil })
		return h
	}
	got = take()
	harness.Eventually(s.t, "the sidecar comes to rest", func() bool {
		time.Sleep(200 * time.Millisecond)
		last := got
		got = take()
		return len(got.more(last)) == 0 && len(last.more(got)) == 0
	})
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.sidecar))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS") {
			got.rss = strings.Join(strings.Fields(line), " ")
		}
	}
	return got
}

// more lists what there is more of than before. The children must be as many:
// the descriptors of a stage on standby that has ended could hide others.
// Threads do not count, because Go keeps those that it once needed.
func (h holdings) more(before holdings) (all []string) {
	add := func(what string, now, then int) { all = append(all, fmt.Sprintf("%s: %d, %d before", what, now, then)) }
	for _, kind := range slices.Sorted(maps.Keys(h.kinds)) {
		then := before.kinds[kind]
		if strings.HasSuffix(kind, previousJournal) {
			then = 1
		}
		if h.kinds[kind] > then {
			add("descriptors of "+kind, h.kinds[kind], then)
		}
	}
	for _, count := range []struct {
		what      string
		now, then int
	}{
		{"cgroups", h.cgroups, before.cgroups},
		{"files of state", h.state, before.state},
		{"files", h.files, before.files},
		{"zombies", h.zombies, 0},
	} {
		if count.now > count.then {
			add(count.what, count.now, count.then)
		}
	}
	if h.children != before.children {
		add("children", h.children, before.children)
	}
	return all
}

func (h holdings) String() string {
	return fmt.Sprintf("%v, %d files, %s, %v", h.inventory, h.files, h.rss, h.kinds)
}
