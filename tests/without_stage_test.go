//go:build linux

package tests

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// odd is how an editor starts its sidecar.
type odd struct {
	// before is shell that runs before the sidecar.
	before string
	// stage is true if its sessions need a stage.
	stage bool
}

// oddities are surroundings that a session's program must not notice. In each
// the sidecar is started twice: once also ignores a signal, and so starts every
// program by a stage.
var oddities = map[string]odd{
	"usual":         {},
	"limits":        {before: "ulimit -Sn 512; ulimit -Su 3000; ulimit -c 0;"},
	"a hard limit":  {before: "ulimit -u 20000;"},
	"creation mask": {before: "umask 027;"},
	"descriptors":   {before: "exec 3</dev/null 7</etc/passwd 9>/dev/null 250</;"},
	"ignored":       {before: "trap '' HUP INT QUIT USR1 CHLD PIPE TTOU;", stage: true},
	"SIGCHLD":       {before: "block=--block-signal=CHLD;"},
	"blocked":       {before: "block=--block-signal=CHLD,USR1,TERM;", stage: true},
}

// both start a sidecar in the same surroundings. The second uses stages.
func both(t *testing.T, w *harness.World, place odd) (list []*outside) {
	t.Helper()
	for _, more := range []string{"", "trap '' TSTP;"} {
		o := &outside{}
		o.Editor = harness.Start(t, w, harness.Options{Settings: harness.Off(), Wrap: func(c *exec.Cmd) {
			script := place.before + more + ` exec env $block "$0" "$@"`
			c.Path, c.Args = "/bin/bash", append([]string{"bash", "-c", script, c.Path}, c.Args[1:]...)
			o.command = c
		}})
		list = append(list, o)
	}
	s := list[0].Shell()
	s.Close(0)
	if s.Tracking.Mechanism != "cgroup" { // then every program is started by a stage
		harness.Skip(t, "process_tracking", "sessions are held by "+s.Tracking.Mechanism)
	}
	return list
}

// outside is a sidecar that sandboxes nothing.
type outside struct {
	*harness.Editor
	command *exec.Cmd
}

// direct reports whether it has started a program without a stage.
func (o *outside) direct() bool { return strings.Contains(o.Log.String(), "started without a stage") }

// try starts a program. It returns what is known of the program, its output, and
// how it ended; or why it was not started. Numbers that differ from one session to
// the next are replaced.
func (o *outside) try(p protocol.SpawnParams) string {
	result, err := harness.Try(o.Editor, protocol.Spawn, p)
	if err != nil {
		return "error: " + err.Error()
	}
	s := o.Session(result)
	if !p.Pipe {
		s.Type("\x04")
	}
	exit := s.Exit()
	closed := s.Close(0)
	ended, err := json.Marshal(exit)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%s\nended: %s, killed %d\nsandbox: %+v\ntracking: %+v", s.Output(), ended,
		closed.Killed, result.Sandbox, result.Tracking)
	text = strings.ReplaceAll(text, result.SessionID, "SESSION")
	number := func(n int, name string) {
		if strings.Contains(text, "Max processes") {
			return // a limit may be that number
		}
		text = regexp.MustCompile(`\b`+strconv.Itoa(n)+`\b`).ReplaceAllString(text, name)
	}
	number(result.PID, "LEADER")
	number(o.command.Process.Pid, "SIDECAR")
	for _, one := range changing {
		text = one.pattern.ReplaceAllString(text, one.name)
	}
	return text
}

// changing is what no two processes have in common, in the files of /proc and
// elsewhere. Of /proc/PID/stat the parent, group, session and the terminal's
// foreground group are left.
var changing = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`(?m)^(Vm|Rss|Hugetlb|voluntary|nonvoluntary|Cpus|Mems|THP|x86|FDSize|SigQ)[^\n]*\n`), ""},
	{regexp.MustCompile(`/dev/pts/\d+`), "TERMINAL"},
	{regexp.MustCompile(`pipe:\[\d+\]`), "PIPE"},
	{regexp.MustCompile(`sandbox-sidecar-\w+-\d+`), "TREE"},
	{regexp.MustCompile(`(\(cat\) R \w+ \w+ \w+) \d+ (-?\w+) .*`), "$1 TERMINAL $2"},
}

// seen are programs that show what they have got. Those that read show it only
// once the reply has arrived.
var seen = map[string][]string{
	"status":      {"/bin/cat", "-", "/proc/self/status"},
	"limits":      {"/bin/cat", "-", "/proc/self/limits"},
	"group":       {"/bin/cat", "-", "/proc/self/stat", "/proc/self/cgroup"},
	"arguments":   {"/bin/cat", "/proc/self/cmdline", "", "a b", "\xff\n"},
	"scheduling":  {"/bin/cat", "/proc/self/oom_score_adj", "/proc/self/timerslack_ns", "/proc/self/personality"},
	"descriptors": {"/bin/ls", "-l", "--time-style=+", "/proc/self/fd"},
	"environment": {"env"},
	"directory":   {"/bin/readlink", "/proc/self/cwd"},
	"program":     {"readlink", "/proc/self/exe"},
	"terminal":    {"/bin/sh", "-c", "tty | tr -d 0-9; stty -a; ps -o tty=,pgid=,sid=,tpgid= -p $$ | tr -d ' 0-9'"},
	"a signal":    {"/bin/sh", "-c", "kill -QUIT $$"},
	"a status":    {"/bin/sh", "-c", "exit 7"},
	"left behind": {
		"/bin/bash", "-c", "(trap '' HUP; exec setsid sleep 1000) & until grep -q sleep /proc/$!/comm; do sleep 0.01; done",
	},
	"missing":     {"no-such-program", ""},
	"missing at":  {"/no/such/program", ""},
	"directory /": {"/", ""},
}

// A program notices nothing of a start without a stage: not in signals, limits,
// descriptors, environment, terminal, group or parent, and neither does the user
// in an error.
func TestWithoutAStageNothingIsDifferent(t *testing.T) {
	t.Parallel()
	const turns = 4
	for i, name := range slices.Sorted(maps.Keys(oddities)) {
		place := oddities[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t)
			roads := both(t, w, place)
			for j, what := range slices.Sorted(maps.Keys(seen)) {
				argv := seen[what]
				for k, pipe := range []bool{false, true} {
					if !harness.Turn(t, i+j+2*k, turns) {
						continue
					}
					if pipe && what == "limits" {
						continue // nothing would make the program wait for the reply, before which they are sealed
					}
					compare(t, what, roads, protocol.SpawnParams{
						Cwd: w.Project, Command: argv[0], Args: argv[1:], Pipe: pipe,
						Env: map[string]string{"B": "1", "A": "2\n3"},
					})
				}
			}
			if got := roads[0].direct(); got == place.stage {
				t.Errorf("a program was started without a stage: %t", got)
			}
			if roads[1].direct() {
				t.Error("this test's own way to have stages does not work")
			}
		})
	}
}

func compare(t *testing.T, what string, roads []*outside, p protocol.SpawnParams) {
	t.Helper()
	if direct, stage := roads[0].try(p), roads[1].try(p); direct != stage {
		t.Errorf("%s, a pipe %t:\n%s\n\nby a stage:\n%s", what, p.Pipe, direct, stage)
	} else if testing.Verbose() {
		t.Logf("%s, a pipe %t:\n%s", what, p.Pipe, direct)
	}
}

// What cannot be executed is reported as before, in every way to fail.
func TestWithoutAStageErrorsAreTheSame(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	roads := both(t, w, odd{})
	machine, err := os.ReadFile("/bin/cat")
	if err != nil {
		t.Fatal(err)
	}
	interpreter := strings.Index(string(machine), "/lib")
	broken := []byte(strings.Replace(string(machine), "/lib", "/gone", 1)[:len(machine)])
	copy(broken, machine[:interpreter])
	programs := map[string]struct {
		content string
		mode    os.FileMode
	}{
		"text":          {"hello\n", 0o755},
		"empty":         {"", 0o755},
		"a-script":      {"#!/bin/sh\necho ran\n", 0o755},
		"no-such":       {"#!/no/such/interpreter\n", 0o755},
		"directory-int": {"#!/\n", 0o755},
		"no-mode":       {string(machine), 0o644},
		"unreadable":    {string(machine), 0o111},
		"setuid":        {string(machine), 0o755 | os.ModeSetuid},
		"header":        {string(machine[:64]), 0o755},
		"half":          {string(machine[:2000]), 0o755},
		"no-linker":     {string(broken), 0o755},
		"program":       {string(machine), 0o755},
		"dir/first":     {string(machine), 0o644},
		"dir/second":    {"#!/no/such/interpreter\n", 0o755},
		"dir2/first":    {string(machine), 0o755},
		"dir2/second":   {string(machine), 0o755},
	}
	for name, file := range programs {
		path := w.ProjectPath(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, file.mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("loop", w.ProjectPath("loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("program", w.ProjectPath("link")); err != nil {
		t.Fatal(err)
	}
	path := map[string]string{
		"PATH": w.ProjectPath("gone") + "::dir2:" + w.ProjectPath("dir") + ":" + w.ProjectPath("dir2"),
	}
	for i, command := range []string{
		"text", "empty", "a-script", "no-such", "directory-int", "no-mode", "unreadable", "setuid", "header", "half",
		"no-linker", "program", "loop", "link", "dir", "program/x",
	} {
		for j, p := range []protocol.SpawnParams{
			{Command: w.ProjectPath(command)},
			{Command: "./" + command},
			{Command: command},
			{Command: command, Env: map[string]string{"PATH": w.Project}},
		} {
			if !harness.Turn(t, i+j, 2) {
				continue
			}
			p.Cwd, p.Args = w.Project, []string{"/proc/self/comm"}
			compare(t, p.Command, roads, p)
		}
	}
	for _, command := range []string{"first", "second", "..", ""} {
		compare(t, command+" in PATH", roads, protocol.SpawnParams{
			Cwd: w.Project, Command: command, Args: []string{"/proc/self/comm"}, Env: path,
		})
	}
	long := strings.Repeat("x", 200_000)
	for name, p := range map[string]protocol.SpawnParams{
		"no directory":     {Cwd: w.ProjectPath("gone"), Command: "/bin/cat"},
		"a file":           {Cwd: w.ProjectPath("text"), Command: "/bin/cat"},
		"a long argument":  {Cwd: w.Project, Command: "/bin/cat", Args: []string{long}},
		"a long variable":  {Cwd: w.Project, Command: "/bin/cat", Env: map[string]string{"X": long}},
		"a zero":           {Cwd: w.Project, Command: "/bin/cat", Args: []string{"a\x00b"}},
		"a zero in a name": {Cwd: w.Project, Command: "/bin/c\x00at", Args: []string{"a"}},
	} {
		p.ProjectDir = w.Project
		if p.Args == nil {
			p.Args = []string{"-"}
		}
		compare(t, name, roads, p)
	}
}
