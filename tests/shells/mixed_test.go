//go:build linux

package shells

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// generatedCalls is how many commands are generated. SIDECAR_GROUP_CALLS names
// another number: 10000 take about half an hour.
func generatedCalls(t *testing.T) int {
	t.Helper()
	switch given := os.Getenv("SIDECAR_GROUP_CALLS"); {
	case given != "":
		n, err := strconv.Atoi(given)
		harness.Must(t, err)
		return n
	case testing.Short():
		return 30
	}
	return 150
}

// atOnce is how many commands run at a time.
const atOnce = 100

// highest is the highest descriptor that the caller of a command may have, and that
// the command looks for.
const highest = 70

// moment is when the link of a command is killed.
type moment int

const (
	never      moment = iota
	starting          // at some moment of its start
	afterLines        // once its output has so many lines
)

// fate is what a generated command does, and how it ends.
type fate struct {
	number int
	lines  [2][]string // on standard output, and on standard error
	order  []int       // of the streams, for each line
	status int
	dies   bool // by SIGKILL, which it sends itself
	leaves bool // a process in the background
	opens  int  // a descriptor of its own; 0: none
	// extra are the numbers of descriptors that its caller has.
	extra []int

	killed moment
	signal unix.Signal
	after  int     // lines
	delay  float64 // of the time that a command takes
}

// newFate makes one.
func newFate(number int, random *rand.Rand) fate {
	f := fate{
		number: number, status: random.IntN(256), dies: random.IntN(6) == 0, leaves: random.IntN(6) == 0,
		extra: []int{3 + random.IntN(highest-2)}, signal: unix.SIGKILL,
	}
	for range random.IntN(4) {
		f.extra = append(f.extra, 3+random.IntN(highest-2))
	}
	if random.IntN(4) == 0 {
		f.opens = 3 + random.IntN(7)
	}
	for i := range random.IntN(40) {
		stream := random.IntN(2)
		f.order = append(f.order, stream)
		line := fmt.Sprintf("%d-%d-%s", number, i, strings.Repeat("x", random.IntN(200)))
		f.lines[stream] = append(f.lines[stream], line)
	}
	if random.IntN(3) == 0 {
		f.killed, f.delay = starting, 1.5*random.Float64()
		if random.IntN(2) == 0 {
			f.killed, f.after = afterLines, random.IntN(len(f.lines[0])+1)
		}
		// A process in the background need not end by another signal.
		if signals := []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP}; !f.leaves && random.IntN(2) == 0 {
			f.signal = signals[random.IntN(len(signals))]
		}
	}
	return f
}

// script is the command line. It begins with the ids of its processes, and names the
// descriptors above 2 that it has. background is the process that it may leave.
func (f fate) script(background string) string {
	var text strings.Builder
	fmt.Fprintln(&text, "echo pid $$; echo parent $PPID")
	if f.leaves {
		fmt.Fprintln(&text, background, ">/dev/null 2>&1 & echo left $!")
	}
	fmt.Fprintf(&text, "fd=3; while test $fd -le %d; do test -e /proc/self/fd/$fd && echo descriptor $fd; "+
		"fd=$((fd+1)); done\n", highest)
	if f.opens > 0 {
		fmt.Fprintf(&text, "exec %d</dev/null\n", f.opens)
	}
	next := [2]int{}
	for _, stream := range f.order {
		fmt.Fprintf(&text, "echo %s >&%d\n", f.lines[stream][next[stream]], stream+1)
		next[stream]++
	}
	switch {
	case f.killed != never:
		fmt.Fprintln(&text, "exec", background)
	case f.dies:
		fmt.Fprintln(&text, "kill -9 $$")
	default:
		fmt.Fprintf(&text, "exit %d\n", f.status)
	}
	return text.String()
}

// printed is what a command has printed on standard output: the ids of its
// processes, 0 if it has not printed them, and the rest.
type printed struct {
	pid, parent, left int
	rest              string
}

func parse(out string) (p printed) {
	for _, id := range []struct {
		word string
		into *int
	}{{"pid ", &p.pid}, {"parent ", &p.parent}, {"left ", &p.left}} {
		line, after, whole := strings.Cut(out, "\n")
		if number, found := strings.CutPrefix(line, id.word); found && whole {
			*id.into, _ = strconv.Atoi(number)
			out = after
		}
	}
	p.rest = out
	return p
}

// text is what a command prints on a stream.
func (f fate) text(stream int) string {
	text := ""
	for _, line := range f.lines[stream] {
		text += line + "\n"
	}
	return text
}

// Generated commands of one agent, a hundred at once, have each their own output,
// errors, status and descriptors. Some have links that are killed at any step: their
// commands end with all that these have left, and the others go on.
func TestTogether_GeneratedCommandsAreNotMixedUp(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	_, random := harness.Generated(t, 1, 7)
	for i, machine := range harness.Machines(t) {
		var fates []fate
		for number := range generatedCalls(t) {
			fates = append(fates, newFate(number, random))
		}
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Defaults(nil))
			m := &mixture{
				world: w, t: t, wrap: machine.Wrap,
				background: fmt.Sprintf("sleep 9%d%d", os.Getpid(), i), // found by its command line
			}
			m.run(fates)
		})
	}
}

// mixture runs generated commands.
type mixture struct {
	*world
	t          *testing.T
	wrap       func(*exec.Cmd)
	background string
	usual      time.Duration // that a command takes alone
	init       int           // of the sandbox
	alone      atomic.Int64  // commands that got a sandbox of their own, as all was busy
}

// link is a link with a command line. The owner of the sandbox is the test.
func (m *mixture) link(line string) *exec.Cmd {
	command := m.command(m.world.link("bash"), "-c", line)
	command.Env = append(command.Env, fmt.Sprintf("SANDBOX_GROUP_OWNER=%d", os.Getpid()))
	if m.wrap != nil {
		m.wrap(command)
	}
	return command
}

// parent is that of the agent's next command.
func (m *mixture) parent() int {
	m.t.Helper()
	begun := time.Now()
	out, err := m.link("echo $PPID").Output()
	harness.Must(m.t, err)
	m.usual = time.Since(begun)
	return pidOf(m.t, strings.TrimSpace(string(out)))
}

func (m *mixture) run(fates []fate) {
	t := m.t
	t.Helper()
	// The first command starts the keeper, which must take none of its descriptors.
	m.one(fate{number: len(fates), extra: []int{3, 5, highest}, order: []int{0}, lines: [2][]string{{"first"}}})
	m.init = m.parent()
	if out, err := m.link("test -e /proc/self/fd/9 && echo descriptor 9").Output(); err == nil {
		harness.Breach(t, "a command has a descriptor 9: %s", out)
	}
	out, err := m.link("exec 9</dev/null; test -e /proc/self/fd/9 && echo descriptor 9").Output()
	if err != nil || string(out) != "descriptor 9\n" {
		t.Errorf("control: %v: a descriptor is not seen: %q", err, out)
	}
	turns := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for _, f := range fates {
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			m.one(f)
		})
	}
	running.Wait()
	if after := m.parent(); after != m.init {
		t.Errorf("the first command has the init %d, and the last one %d", m.init, after)
	}
	t.Logf("%d of %d commands had a sandbox of their own", m.alone.Load(), len(fates))
	name := strings.Replace(m.background, " ", "\x00", 1)
	harness.MustEnd(t, "nothing is left of commands whose links were killed", func() bool {
		return len(harness.Find(name)) == 0
	})
	ps := m.command(harness.Binary(t), "ps")
	if m.wrap != nil {
		m.wrap(ps)
	}
	if out, err := ps.CombinedOutput(); err != nil || strings.Contains(string(out), "no session runs") {
		t.Errorf("control: ps: %v: %s", err, out)
	}
	m.endKeeper()
	m.mustBeQuiet()
}

// endKeeper ends the process that keeps the sandbox: its owner, the test, goes on.
func (m *mixture) endKeeper() {
	m.t.Helper()
	place, _, _ := m.kept()
	for _, pid := range m.keepersOf(os.Getpid()) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(line),
			"\x00"+place[strings.LastIndexByte(place, '/')+1:]+"\x00") {
			_ = unix.Kill(pid, unix.SIGTERM)
		}
	}
}

// one runs one command to its end.
func (m *mixture) one(f fate) {
	t := m.t
	t.Helper()
	command := m.link(f.script(m.background))
	reader, writer, err := os.Pipe()
	harness.Must(t, err)
	defer reader.Close()
	command.ExtraFiles = make([]*os.File, highest)
	for _, number := range f.extra {
		command.ExtraFiles[number-3] = writer
	}
	var out, said harness.Buffer
	command.Stdout, command.Stderr = &out, &said
	err = command.Start()
	writer.Close()
	harness.Must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // ProcessState says it
	}()
	switch f.killed {
	case starting:
		time.Sleep(time.Duration(f.delay * float64(m.usual))) // the moment is what is tried
	case afterLines:
		want := "pid "
		if f.after > 0 {
			want = f.lines[0][f.after-1] + "\n"
		}
		harness.Eventually(t, fmt.Sprintf("command %d prints %q", f.number, want), func() bool {
			return strings.Contains(out.String(), want)
		})
	}
	if f.killed != never {
		_ = command.Process.Signal(f.signal)
	}
	if !deadline.New(harness.Timeout).Wait(ended) {
		_ = command.Process.Kill()
		t.Errorf("%+v has not ended", f)
		return
	}
	m.mustBe(f, command.ProcessState.Sys().(syscall.WaitStatus), out.String(), withoutOurs(said.String()))
	// The command's own copies are closed by its end. Any other is a leak.
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = reader.Read(make([]byte, 1))
	}()
	if !deadline.New(harness.Timeout).Wait(closed) {
		harness.Breach(t, "command %d has ended, and another process has a descriptor of its caller", f.number)
	}
}

// mustBe compares what came of a command with its fate.
func (m *mixture) mustBe(f fate, status syscall.WaitStatus, out, said string) {
	t := m.t
	t.Helper()
	p := parse(out)
	for stream, got := range []string{p.rest, said} {
		want := f.text(stream)
		if f.killed != never && strings.HasPrefix(want, got) {
			continue
		}
		if got != want {
			harness.Breach(t, "%+v printed on stream %d: %q", f, stream+1, got)
		}
	}
	switch {
	case f.killed != never:
		if !status.Signaled() || status.Signal() != f.signal {
			t.Errorf("%+v ended by %#x", f, status)
		}
		for _, id := range []int{p.pid, p.left} {
			if id > 0 {
				what := fmt.Sprintf("process %d of %+v ends", id, f)
				harness.MustEnd(t, what, func() bool { return !harness.Alive(id) })
			}
		}
		return
	case f.dies:
		if !status.Signaled() || status.Signal() != unix.SIGKILL {
			harness.Breach(t, "%+v ended by %#x", f, status)
		}
	case !status.Exited() || status.ExitStatus() != f.status:
		harness.Breach(t, "%+v ended by %#x", f, status)
	}
	if harness.Alive(p.pid) || f.leaves != (p.left > 0) {
		t.Errorf("%+v has process %d, and has left %d", f, p.pid, p.left)
	}
	if m.init > 0 && p.parent != m.init {
		m.alone.Add(1)
		return
	}
	if p.left > 0 {
		if !harness.Alive(p.left) {
			t.Errorf("process %d, which %+v has left, has ended with it", p.left, f)
		}
		_ = unix.Kill(p.left, unix.SIGKILL)
	}
}
