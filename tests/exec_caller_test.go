//go:build linux

package tests

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// run is how a caller runs a command: directly, or by exec.
type run struct {
	world  *harness.World
	prefix []string
}

// ways are both ways to run a command.
func ways(t *testing.T) map[string]run {
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	return waysIn(t, w)
}

// waysIn are both in a world.
func waysIn(t *testing.T, w *harness.World) map[string]run {
	return map[string]run{"directly": {w, nil}, "by exec": {w, []string{harness.Binary(t), "exec", "--"}}}
}

func (r run) command(argv ...string) *exec.Cmd {
	argv = append(append([]string{}, r.prefix...), argv...)
	command := exec.Command(argv[0], argv[1:]...)
	command.Dir, command.Env = r.world.Project, append(harness.Environ(r.world), "TERM=xterm")
	return command
}

// ended waits for a command that was started, and describes its end as its
// parent sees it.
func ended(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); _ = command.Wait() }()
	if !deadline.New(harness.Timeout).Wait(done) {
		_ = command.Process.Kill()
		<-done
		return "never"
	}
	return command.ProcessState.String()
}

// TestExec_SignalsArriveAsWithoutIt sends signals to exec alone, as
// child.kill() of Node.js does.
func TestExec_SignalsArriveAsWithoutIt(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{
		"handles":       `trap 'echo got it; exit 7' NAME; echo ready; while test -d "$PWD"; do sleep 0.01; done`,
		"is ended":      `echo ready; read line; echo read`,
		"ends itself":   `echo ready; kill -NAME $$; echo alive`,
		"handles twice": `n=0; trap 'n=$((n+1)); echo got $n' NAME; echo ready; until test $n = 2; do sleep 0.01; done`,
	}
	for i, number := range []unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTERM,
	} {
		name := strings.TrimPrefix(unix.SignalName(number), "SIG")
		for j, program := range slices.Sorted(maps.Keys(scripts)) {
			if !harness.Turn(t, i+j, len(scripts)) {
				continue
			}
			t.Run(name+" "+program, func(t *testing.T) {
				t.Parallel()
				found := map[string]string{}
				for way, r := range ways(t) {
					found[way] = signalled(t, r, number, strings.ReplaceAll(scripts[program], "NAME", name))
				}
				if found["by exec"] != found["directly"] {
					t.Errorf("by exec: %s, directly: %s", found["by exec"], found["directly"])
				}
			})
		}
	}
}

// signalled runs a script, sends its process a signal whenever it is ready for
// one, and returns what it printed, and how it has ended.
func signalled(t *testing.T, r run, number unix.Signal, script string) string {
	t.Helper()
	command := r.command("dash", "-c", script)
	var out harness.Buffer
	command.Stdout = &out
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	out.Await(t, "ready")
	if !strings.Contains(script, "$$;") {
		if err := command.Process.Signal(number); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(script, "got $n") {
		out.Await(t, "got 1")
		if err := command.Process.Signal(number); err != nil {
			t.Fatal(err)
		}
	}
	end := ended(t, command)
	return out.String() + end
}

// counting prints each signal that it gets, as the only one of its process.
const counting = `
import signal
signals = {signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGUSR1}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print("ready", flush=True)
number = 0
while number != signal.SIGUSR1:
    number = signal.sigwait(signals)
    print("got", signal.Signals(number).name, flush=True)
`

// TestExec_KeyIsOneSignal types keys whose signal the terminal sends to exec and
// to the program, and then sends the same signals to exec alone.
func TestExec_KeyIsOneSignal(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "python3")
	for way, r := range ways(t) {
		p := harness.StartTerminal(t, r.command("/usr/bin/python3", "-c", counting))
		p.Await("ready")
		p.Type("\x03")
		p.Await("got SIGINT")
		p.Type("\x1c")
		p.Await("got SIGQUIT")
		if err := pty.Setsize(p.TTY, &pty.Winsize{Cols: 77, Rows: 22}); err != nil {
			t.Fatal(err)
		}
		p.Await("got SIGWINCH")
		for _, number := range []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGWINCH, unix.SIGUSR1} {
			// The kernel keeps one signal of a kind: take the key's first.
			harness.Eventually(t, way+" has taken the keys' signals", func() bool {
				status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Command.Process.Pid))
				return err == nil && bytes.Contains(status, []byte("ShdPnd:\t0000000000000000\n"))
			})
			before := strings.Count(p.Screen.String(), "got "+unix.SignalName(number))
			if err := p.Command.Process.Signal(number); err != nil {
				t.Fatal(err)
			}
			harness.Eventually(t, unix.SignalName(number)+" to exec alone arrives", func() bool {
				return strings.Count(p.Screen.String(), "got "+unix.SignalName(number)) > before
			})
		}
		if status := p.Status(); status != 0 || strings.Count(p.Screen.String(), "got ") != 7 {
			t.Errorf("%s: status %d, want one signal for each key: %s", way, status, p.Screen)
		}
	}
}

// TestExec_StopsAndContinuesAsWithoutIt sends the signals of job control to exec
// alone.
func TestExec_StopsAndContinuesAsWithoutIt(t *testing.T) {
	t.Parallel()
	for way, r := range ways(t) {
		command := r.command("dash", "-c", `trap 'echo continued; exit 3' CONT; echo ready; while test -d "$PWD"; do :; done`)
		var out harness.Buffer
		command.Stdout = &out
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // not orphaned: this process is in the same session
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		out.Await(t, "ready")
		_ = command.Process.Signal(unix.SIGTSTP)
		harness.Eventually(t, way+" stops", func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", command.Process.Pid))
			return err == nil && strings.Contains(string(stat), ") T ")
		})
		if strings.Contains(out.String(), "continued") {
			t.Errorf("%s: continued before it was stopped", way)
		}
		_ = command.Process.Signal(unix.SIGCONT)
		if got := ended(t, command); got != "exit status 3" || strings.Count(out.String(), "continued") != 1 {
			t.Errorf("%s: %s, %q", way, got, out.String())
		}
	}
}

// TestExec_NohupHolds ignores signals as nohup(1) and a script's "trap" do.
func TestExec_NohupHolds(t *testing.T) {
	t.Parallel()
	for way, r := range ways(t) {
		for _, name := range []string{"HUP", "INT"} {
			command := r.command("dash", "-c", "kill -"+name+" $$; echo alive")
			wrapped := exec.Command("dash", append([]string{
				"-c", "trap '' " + name + `; "$@"`, "dash",
			}, command.Args...)...)
			wrapped.Dir, wrapped.Env = command.Dir, command.Env
			if out, err := wrapped.Output(); err != nil || string(out) != "alive\n" {
				t.Errorf("%s, %s ignored: %v, %q", way, name, err, out)
			}
		}
		out, err := r.command("dash", "-c", "kill -HUP $$; echo alive").Output()
		if err == nil || len(out) != 0 {
			t.Errorf("%s: SIGHUP is ignored without nohup: %q", way, out)
		}
	}
}

// lasting are ways to leave something behind on a terminal, and how python
// notices it.
var lasting = map[string]string{
	"raw":         `tty.setraw(0)`,
	"no echo":     `a = termios.tcgetattr(0); a[3] &= ~termios.ECHO; termios.tcsetattr(0, termios.TCSANOW, a)`,
	"keys":        `a = termios.tcgetattr(0); a[6][termios.VINTR] = b"\x18"; termios.tcsetattr(0, termios.TCSANOW, a)`,
	"nonblocking": `fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_NONBLOCK)`,
	"async":       `fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)`,
	"exclusive":   `fcntl.ioctl(0, termios.TIOCEXCL)`,
}

// TestExec_RestoresTheTerminal lets programs leave a terminal in another mode,
// and end by themselves or by a signal.
func TestExec_RestoresTheTerminal(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "python3")
	const modules = "import fcntl, os, signal, struct, termios, tty\n"
	// Without it the result is not the same as before: the control.
	const compare = modules + `
def modes():
    flags = fcntl.fcntl(0, fcntl.F_GETFL) & (os.O_NONBLOCK | os.O_ASYNC)
    return termios.tcgetattr(0), flags, fcntl.ioctl(0, 0x80045440, b"1234")  # TIOCGEXCL
import subprocess, sys
before = modes()
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
subprocess.run(sys.argv[1:])
os.write(1, b"restored\r\n" if modes() == before else b"changed\r\n")
`
	ends := map[string]string{"exits": "", "is killed": "os.kill(os.getpid(), signal.SIGKILL)"}
	for i, name := range slices.Sorted(maps.Keys(lasting)) {
		for j, end := range slices.Sorted(maps.Keys(ends)) {
			if !harness.Turn(t, i+j, len(ends)) {
				continue
			}
			t.Run(name+", then it "+end, func(t *testing.T) {
				t.Parallel()
				for way, r := range ways(t) {
					want := map[string]string{"directly": "changed", "by exec": "restored"}[way]
					program := r.command("/usr/bin/python3", "-c", modules+lasting[name]+"\n"+ends[end])
					outer := exec.Command("/usr/bin/python3", append([]string{"-c", compare}, program.Args...)...)
					outer.Dir, outer.Env = program.Dir, program.Env
					p := harness.StartTerminal(t, outer)
					p.Await("restored|changed")
					if !strings.Contains(p.Screen.String(), want) {
						t.Errorf("%s: not %s: %s", way, want, p.Screen)
					}
				}
			})
		}
	}
}

// TestExec_LeavesTheTerminalToItsPipeline lets another program of the same
// pipeline change the terminal, as less(1) does.
func TestExec_LeavesTheTerminalToItsPipeline(t *testing.T) {
	t.Parallel()
	for _, r := range ways(t) {
		if r.prefix == nil {
			continue
		}
		command := r.command("dash", "-c", "read line")
		// The other one waits for the end of the first one's output.
		outer := exec.Command("bash", append([]string{
			"-c", `("$@"; echo ended) | (stty -echo </dev/tty; echo set >/dev/tty; read line; stty -a </dev/tty >/dev/tty)`, "bash",
		}, command.Args...)...)
		outer.Dir, outer.Env = command.Dir, command.Env
		p := harness.StartTerminal(t, outer)
		p.Await("set")
		p.Type("line\n")
		p.Await(`-echo\b`)
		p.Status()
	}
}

// An alarm that the caller has set counts for exec, too, and the kernel sends it
// as it sends a terminal's signals.
func TestExec_AlarmArrivesAsWithoutIt(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	for way, r := range ways(t) {
		command := r.command("sleep", "1000")
		command.Args = append([]string{"perl", "-e", "alarm 1; exec @ARGV or die"}, command.Args...)
		path, err := exec.LookPath("perl")
		if err != nil {
			t.Fatal(err)
		}
		command.Path, command.Err = path, nil
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		found[way] = ended(t, command)
	}
	if found["by exec"] != found["directly"] || found["directly"] != "signal: alarm clock" {
		t.Errorf("by exec: %s, directly: %s", found["by exec"], found["directly"])
	}
}
