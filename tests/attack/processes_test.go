//go:build linux

package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// target is a process outside of any session, a child of the test, with a
// secret in its memory and in an open file.
type target struct {
	pid   int
	place string // the address of the secret in memory
	file  string // the descriptor's number
	ended chan struct{}
}

func newProcessID(t testing.TB, s *scene) *target {
	t.Helper()
	command := exec.Command(s.Victim, "target", secretText)
	// without capabilities, which would protect it from a session that has
	// fewer, whatever the sandbox does
	if os.Geteuid() == 0 {
		setpriv, err := exec.LookPath("setpriv")
		harness.Must(t, err)
		command = exec.Command(setpriv, append([]string{"--bounding-set=-all", "--inh-caps=-all"}, command.Args...)...)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // alone in its group, for attacks on process groups
	stdin, err := command.StdinPipe()
	harness.Must(t, err)
	stdout, err := command.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, command.Start())
	p := &target{pid: command.Process.Pid, ended: make(chan struct{})}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	harness.Must(t, err)
	if _, err := fmt.Sscan(line, &p.place, &p.file); err != nil {
		t.Fatalf("target said %q: %v", line, err)
	}
	go func() {
		defer close(p.ended)
		_, _ = io.Copy(io.Discard, stdout)
		_ = command.Wait() // it may have been killed
	}()
	t.Cleanup(func() {
		stdin.Close()
		<-p.ended
	})
	return p
}

// killed reports whether the process has ended. If want is true, it waits for
// that as long as a signal may take.
func (p *target) killed(want bool) bool {
	if want {
		select {
		case <-p.ended:
			return true
		case <-deadline.After(harness.Timeout):
			return false
		}
	}
	return !harness.Alive(p.pid)
}

// Sends SIGKILL to a process outside by every call that sends signals, and
// makes the kernel send it for a pipe. The scope of the ruleset ends at the
// session (LANDLOCK_SCOPE_SIGNAL).
func TestAProcessOutsideCannotBeKilled(t *testing.T) {
	t.Parallel()
	harness.Require(t, "signals")
	for _, action := range []string{"kill", "kill-thread", "kill-pidfd", "kill-sigio"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			try := func(settings string, want bool) (result, bool) {
				s := newScene(t)
				p := newProcessID(t, s)
				result := s.attempt(s.Start(settings), action, strconv.Itoa(p.pid))
				return result, p.killed(want)
			}
			if result, killed := try(harness.Off(), true); !result.done() || !killed {
				t.Fatalf("control: without a sandbox it must work: status %d, killed %v\n%s", result.status, killed,
					result.output)
			}
			result, killed := try("", false)
			if killed {
				harness.Breach(t, "THE ATTACK WORKS: status %d\n%s", result.status, result.output)
			}
			// The kernel sends a signal for a pipe later, and refuses it
			// silently.
			if !result.refused("EPERM") && action != "kill-sigio" {
				t.Errorf("want a refusal with EPERM, got status %d\n%s", result.status, result.output)
			}
		})
	}
}

// Ends the sidecar itself. It is outside of every session's scope. The signal
// is SIGTERM, because a sidecar that the control kills by SIGKILL could not
// clean up after itself.
func TestTheSidecarCannotBeEnded(t *testing.T) {
	t.Parallel()
	harness.Require(t, "signals")
	s := newScene(t)
	e := s.Start("")
	if result := s.attempt(e, "terminate", strconv.Itoa(e.Process())); !result.refused("EPERM") {
		t.Errorf("want a refusal with EPERM, got status %d\n%s", result.status, result.output)
	}
	if output, status := e.Tool("echo served"); status != 0 {
		harness.Breach(t, "THE ATTACK WORKS: the sidecar serves no more: status %d\n%s", status, output)
	}
	s = newScene(t)
	e = s.Start(harness.Off())
	// Typed only after the answer to spawn has arrived, because the attack may
	// end the sidecar.
	e.Shell().Type("'" + s.Victim + "' terminate " + strconv.Itoa(e.Process()) + "\n")
	select {
	case <-e.Gone():
	case <-deadline.After(harness.Timeout):
		t.Error("control: without a sandbox the sidecar must end")
	}
}

// Kills a process of another session of the same sidecar. Each session is a
// domain of its own.
func TestAProcessOfAnotherSessionCannotBeKilled(t *testing.T) {
	t.Parallel()
	harness.Require(t, "signals")
	try := func(settings string) (result, bool) {
		s := newScene(t)
		e := s.Start(settings)
		shell := e.Shell()
		shell.Await(`[#$] `)
		result := s.attempt(e, "kill", strconv.Itoa(shell.PID))
		if result.done() {
			shell.Exit()
		}
		return result, !harness.Alive(shell.PID)
	}
	if result, killed := try(harness.Off()); !result.done() || !killed {
		t.Fatalf("control: without a sandbox it must work: status %d\n%s", result.status, result.output)
	}
	if result, killed := try(""); killed || !result.refused("EPERM") {
		t.Errorf("want a refusal with EPERM, got status %d, killed %v\n%s", result.status, killed,
			result.output)
	}
}

// Kills its own children. The scope ends at the session, not at the process.
func TestAProcessInsideCanBeKilled(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"", harness.Off()} {
		output, status := newScene(t).Start(settings).Tool("sleep 60 & kill -9 $!; wait $!; echo status $?")
		if status != 0 || !strings.Contains(output, "status 137") {
			t.Errorf("status %d:\n%s", status, output)
		}
	}
}

// Traces a process outside, reads its memory by /proc and by
// process_vm_readv(2), takes over one of its descriptors, and reads its
// environment. A process may only inspect those of its own domain.
func TestAProcessOutsideCannotBeInspected(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name, attempt := range map[string]struct {
		actions func(p *target) []string
		refusal string
		leaks   bool
	}{
		"ptrace": {func(p *target) []string { return []string{"ptrace", strconv.Itoa(p.pid)} }, "EPERM", false},
		"memory file": {func(p *target) []string {
			return []string{"peek", strconv.Itoa(p.pid), p.place}
		}, "EACCES", true},
		"vm read": {func(p *target) []string {
			return []string{"vm-read", strconv.Itoa(p.pid), p.place}
		}, "EPERM", true},
		"descriptor": {func(p *target) []string {
			return []string{"pidfd-getfd", strconv.Itoa(p.pid), p.file}
		}, "EPERM", true},
		"environment": {func(p *target) []string {
			return []string{"read", fmt.Sprintf("/proc/%d/environ", p.pid)}
		}, "EACCES", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try := func(settings string) (r result, refused bool) {
				s := newScene(t)
				p := newProcessID(t, s)
				r = s.attempt(s.Start(settings), attempt.actions(p)...)
				return r, r.refusedOf(p.pid, attempt.refusal)
			}
			if control, _ := try(harness.Off()); !control.done() || attempt.leaks && !leaked(nil, control.output) {
				t.Fatalf("control: without a sandbox it must work: status %d\n%s", control.status, control.output)
			}
			if result, refused := try(""); !refused || leaked(nil, result.output) {
				t.Errorf("want a refusal with %s, got status %d\n%s", attempt.refusal, result.status,
					result.output)
			}
		})
	}
}

// Connects to an abstract socket of a process outside, and sends a datagram to
// one. The scope of the ruleset ends at the session
// (LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET). The supervisor of connections knows
// the session's sockets. If there is a supervisor, datagram sockets cannot even
// be made.
func TestAnAbstractSocketOutsideCannotBeReached(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	for _, kind := range []string{"unix", "unixgram"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			try := func(settings string) result {
				s := newScene(t)
				name := "sidecar-test-" + strconv.Itoa(int(sockets.Add(1))) + s.Home[max(0, len(s.Home)-60):]
				var actions []string
				if kind == "unix" {
					listener, err := net.Listen(kind, "@"+name)
					harness.Must(t, err)
					t.Cleanup(func() { listener.Close() })
					actions = []string{"connect-abstract", name}
				} else {
					listener, err := net.ListenUnixgram(kind, &net.UnixAddr{Name: "@" + name, Net: kind})
					harness.Must(t, err)
					t.Cleanup(func() { listener.Close() })
					actions = []string{"send-abstract", name, "order"}
				}
				return s.attempt(s.Start(settings), actions...)
			}
			if control := try(harness.Off()); !control.done() {
				t.Fatalf("control: without a sandbox it must work: status %d\n%s", control.status, control.output)
			}
			result := try("")
			if unmade := kind == "unixgram" && result.refused("EACCES"); !unmade && !result.refused("EPERM") {
				t.Errorf("want a refusal with EPERM, got status %d\n%s", result.status, result.output)
			}
		})
	}
}
