package tests

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Everything here happens inside the sandbox: a terminal must work there as it
// does elsewhere.

// terminals matches the name of a terminal.
const terminals = `/dev/(?:pts/|ttys)\d+`

// bash starts one that prints only its prompt "$ ".
func bash(t *testing.T, e *harness.Editor) *harness.Session {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		harness.Skip(t, "bash", err.Error())
	}
	s := e.Spawn(protocol.SpawnParams{Shell: &protocol.Shell{
		Program: "bash",
		Args:    []string{"--norc", "--noprofile", "--noediting"},
	}})
	s.Type("PS1='$ '; PS2=; echo re''ady\n")
	s.Await(`ready\r\n\$ $`)
	return s
}

func TestTerminal_AProgramSeesATerminal(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)})
	s := e.Spawn(protocol.SpawnParams{Command: `for fd in 0 1 2; do test -t $fd && echo "$fd is a tty"; done; stty ` +
		`size; echo "TERM=$TERM"; tty; exec 3<>/dev/tty && echo controlling >&3`, Cols: 101, Rows: 37})
	s.Exit()
	want := regexp.MustCompile(`^0 is a tty\n1 is a tty\n2 is a tty\n37 101\nTERM=xterm-256color\n` + terminals +
		`\ncontrolling\n$`)
	if !want.MatchString(s.Output()) {
		t.Errorf("got %q", s.Output())
	}
}

func TestTerminal_IsInBlockingMode(t *testing.T) {
	t.Parallel()
	harness.Procfs(t)
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)})
	s := e.Spawn(protocol.SpawnParams{Command: "cat /proc/self/fdinfo/0 /proc/self/fdinfo/1 /proc/self/fdinfo/2"})
	s.Exit()
	flags := regexp.MustCompile(`flags:\s+(\d+)`).FindAllStringSubmatch(s.Output(), -1)
	if len(flags) != 3 {
		t.Fatalf("got %q", s.Output())
	}
	for fd, match := range flags {
		const nonblock = 0o4000
		if bits, err := strconv.ParseInt(match[1], 8, 64); err != nil || bits&nonblock != 0 {
			t.Errorf("descriptor %d has flags %s: O_NONBLOCK makes programs fail with EAGAIN", fd, match[1])
		}
	}
}

func TestTerminal_PsAgrees(t *testing.T) {
	t.Parallel()
	ps, err := exec.LookPath("ps")
	if err != nil {
		harness.Skip(t, "ps", err.Error())
	}
	if info, err := os.Stat(ps); err == nil && info.Mode()&fs.ModeSetuid != 0 {
		harness.Skip(t, "ps", "it is setuid, and no such program runs in a sandbox")
	}
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)})
	s := e.Spawn(protocol.SpawnParams{Command: `echo "tty=$(tty)"; echo "ps=/dev/$(ps -o tty= -p $$)"; echo ` +
		`"sid=$(ps -o sid= -p $$ | tr -d ' ')"; echo "tpgid=$(ps -o tpgid= -p $$ | tr -d ' ')"; echo $$`})
	s.Exit()
	values := regexp.MustCompile(`^tty=(\S+)\nps=(\S+)\nsid=(\d+)\ntpgid=(\d+)\n(\d+)\n$`).FindStringSubmatch(
		s.Output())
	if values == nil || values[1] != values[2] || values[3] != values[5] || values[4] != values[5] ||
		values[5] != strconv.Itoa(s.PID) {
		t.Errorf("pid %d: got %q", s.PID, s.Output())
	}
}

func TestJobControl_InterruptReachesTheForegroundAlone(t *testing.T) {
	t.Parallel()
	s := bash(t, harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)}))
	s.Type("sleep 1001 &\n")
	s.Await(`\[1\] \d+\r\n`)
	s.Type("sh -c 'echo run''ning; exec sleep 1002'\n")
	s.Await("running")
	s.Type("\x03")
	s.Type("echo stat''us $?; kill -0 %1 && echo al''ive\n")
	if status := s.Await(`status (\d+)\r\n`)[1]; status != "130" {
		t.Errorf("the foreground ended with status %s, want 130", status)
	}
	s.Await(`alive\r\n\$ $`)
	// At an empty prompt the shell itself survives.
	s.Type("\x03")
	s.Await(`\$ \^C\r\n\$ $`) // the interrupt may flush input from before that
	s.Type("echo st''ill\n")
	s.Await("still")
}

func TestJobControl_QuitAndEndOfFile(t *testing.T) {
	t.Parallel()
	s := bash(t, harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)}))
	s.Type("ulimit -c 0; sh -c 'echo run''ning; exec sleep 1002'\n")
	s.Await("running")
	s.Type("\x1c")
	s.Type("echo stat''us $?\n")
	s.Await("status 131")
	s.Type("cat; echo cat''end\n")
	s.Type("line\n")
	s.Await(`line\r\nline\r\n`)
	s.Type("\x04")
	s.Await("catend")
	s.Type("\x04")
	if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 {
		t.Errorf("end of file at the prompt: %+v", exit)
	}
}

func TestJobControl_SuspendAndResume(t *testing.T) {
	t.Parallel()
	s := bash(t, harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)}))
	s.Type("sh -c 'echo run''ning; exec cat'\n")
	s.Await("running")
	s.Type("\x1a")
	s.Await(`Stopped`)
	s.Type("fg; echo fg''end\n")
	s.Type("again\n")
	s.Await(`(?s)again\r\n.*again\r\n`) // echoed, and repeated
	s.Type("\x04")
	s.Await("fgend")

	// The job forks nothing: a child that is stopped between vfork and exec
	// would block its parent, and the shell would not see the stop.
	s.Type("mkfifo gate; sh -c 'echo sec''ond; read x <gate; echo fin''ished'\n")
	s.Await("second")
	s.Type("\x1a")
	s.Await(`(?s)Stopped.*Stopped`)
	s.Type("bg; echo >gate\n")
	s.Await("finished")
	s.Type("wait; echo al''l\n")
	s.Await("all")
}

func TestJobControl_ABackgroundReaderStops(t *testing.T) {
	t.Parallel()
	s := bash(t, harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)}))
	s.Type("cat &\n")
	s.Await(`\[1\] \d+\r\n`)
	s.Type("until jobs | grep -q 'Stop''ped'; do sleep 0.02; done; echo st''opped-by-ttin\n")
	s.Await("stopped-by-ttin")
	s.Type("fg\n")
	s.Type("mine\n")
	s.Await(`(?s)mine\r\n.*mine\r\n`) // echoed, and repeated
	s.Type("\x04")
	s.Type("echo ba''ck\n")
	s.Await("back")
}

func TestJobControl_APipelineIsOneJob(t *testing.T) {
	t.Parallel()
	s := bash(t, harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)}))
	s.Type("seq 100000 | sort -n | tail -n 1 | sed s/^/last=/\n")
	s.Await(`last=100000\r\n`)
	s.Type("sh -c 'echo run''ning; exec sleep 1000' | cat | cat\n")
	s.Await("running")
	s.Type("\x03")
	s.Type("echo stat''us ${PIPESTATUS[*]}\n")
	if got := s.Await(`status ([\d ]+)\r\n`)[1]; got != "130 130 130" {
		t.Errorf("the pipeline ended with %s, want 130 three times", got)
	}
}

func TestTerminal_AnotherOneCanBeOpenedInside(t *testing.T) {
	t.Parallel()
	if output, err := exec.Command("script", "--version").CombinedOutput(); err != nil ||
		!strings.Contains(string(output), "util-linux") {
		harness.Skip(t, "script", fmt.Sprintf("not that of util-linux: %v %s", err, output))
	}
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)})
	s := e.Spawn(protocol.SpawnParams{Command: `echo "outer=$(tty)"; script -qec 'echo "inner=$(tty)"; stty -echo; ` +
		`read line; echo "read $line"' /dev/null`})
	s.Await("inner=.*\r\n")
	s.Type("through both\n")
	s.Exit()
	both := regexp.MustCompile(`(?s)outer=(/dev/pts/\d+)\n.*inner=(/dev/pts/\d+)\n.*read through both`)
	values := both.FindStringSubmatch(s.Output())
	if values == nil || values[1] == values[2] {
		t.Errorf("got %q", s.Output())
	}
}

// under starts the sidecar from a shell that first runs some commands, as an
// unusual editor might.
func under(commands string) func(*exec.Cmd) {
	return func(command *exec.Cmd) {
		command.Args = append([]string{"sh", "-c", commands + `; exec "$0" "$@"`, command.Path}, command.Args[1:]...)
		command.Path = "/bin/sh"
	}
}

func TestTerminal_NoSignalIsIgnoredOrBlocked(t *testing.T) {
	t.Parallel()
	harness.Procfs(t)
	e := harness.Start(t, harness.NewWorld(t),
		harness.Options{Wrap: under(`trap "" HUP INT QUIT PIPE TERM TSTP TTIN TTOU USR1`)})
	for _, kind := range []protocol.Kind{protocol.Terminal, protocol.Tool} {
		s := e.Spawn(protocol.SpawnParams{Kind: kind, Command: "grep", Args: []string{"^Sig[BI]", "/proc/self/status"}})
		s.Exit()
		if got, want := s.Output(), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"; got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
	// Without a shell: dash catches SIGINT, and forgets one that comes before
	// it has started its command.
	s := e.Spawn(protocol.SpawnParams{Command: "sleep", Args: []string{"1000"}})
	harness.Call(e, protocol.Signal, protocol.SignalParams{SessionID: s.SessionID, Signal: "SIGINT"})
	if exit := s.Exit(); exit.Signal == nil || *exit.Signal != "SIGINT" {
		t.Errorf("SIGINT: got %+v", exit)
	}
}

func TestTerminal_UmaskAndLimitsAreTheEditors(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t),
		harness.Options{Wrap: under("umask 027; ulimit -S -n 500; ulimit -H -n 1000; ulimit -S -c 0")})
	out, status := e.Tool("umask; ulimit -S -n; ulimit -H -n; ulimit -S -c")
	if want := "0027\n500\n1000\n0\n"; out != want || status != 0 {
		t.Errorf("got %q and status %d, want %q", out, status, want)
	}
}

func TestTerminal_ALargePasteArrives(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil)})
	s := bash(t, e)
	var want, paste strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&paste, "echo this is line %d of a long paste >>pasted\n", i)
		fmt.Fprintf(&want, "this is line %d of a long paste\n", i)
	}
	s.Type(paste.String() + "echo do''ne\n")
	s.Await(`\$ done\r\n`)
	if got := harness.Read(t, filepath.Join(w.Project, "pasted")); got != want.String() {
		t.Errorf("%d bytes arrived, want %d", len(got), want.Len())
	}
}

func TestTerminal_EachSessionHasItsOwn(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)})
	seen := map[string]bool{}
	for range 5 {
		s := e.Spawn(protocol.SpawnParams{Command: "tty; stty size; exec sleep 1000", Cols: 80 + len(seen)})
		seen[s.Await(terminals + `\r\n24 \d+`)[0]] = true
	}
	if len(seen) != 5 {
		t.Errorf("terminals are shared: %v", seen)
	}
	if left, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", e.Process())); err == nil && len(left) > 100 {
		t.Errorf("the sidecar has %d descriptors open for 5 sessions", len(left))
	}
}

// The sandbox is off until the user turns it on. A terminal says so in its first
// line, unless a settings file has decided it.
func TestTerminal_SaysIfNobodyTurnedTheSandboxOn(t *testing.T) {
	t.Parallel()
	const said = "not sandboxed: no settings file turns the sandbox on. Run: sandbox-sidecar init"
	for settings, want := range map[string]bool{`{}`: true, harness.Off(): false, harness.Settings(nil): false} {
		e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: settings})
		for kind, prints := range map[protocol.Kind]bool{protocol.Terminal: want, protocol.Tool: false} {
			session := e.Spawn(protocol.SpawnParams{Kind: kind, Command: "/bin/echo", Args: []string{"ran"}})
			session.Exit()
			first, _, _ := strings.Cut(session.Output(), "\n")
			if strings.Contains(first, said) != prints || !strings.Contains(session.Output(), "ran") {
				t.Errorf("%s: a %s prints %q", settings, kind, session.Output())
			}
		}
	}
}
