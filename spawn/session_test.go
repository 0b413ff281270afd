//go:build unix

package spawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// timeout bounds every wait; it only matters if a test fails.
const timeout = 30 * time.Second

// recorder is a sink that keeps everything.
type recorder struct {
	alarms  []Alarm
	denials []Denial
	limits  []Reached
	mu      sync.Mutex // guards the fields below
	changed chan struct{}
	output  bytes.Buffer
	stderr  bytes.Buffer
	pieces  int
	exit    *Exit
	late    bool // a call came after Exited
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{})} }

func (r *recorder) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = r.late || r.exit != nil
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) Output(data []byte)   { r.update(func() { r.output.Write(data); r.pieces++ }) }
func (r *recorder) Stderr(data []byte)   { r.update(func() { r.stderr.Write(data) }) }
func (r *recorder) Alarm(alarm Alarm)    { r.update(func() { r.alarms = append(r.alarms, alarm) }) }
func (r *recorder) Reached(l Reached)    { r.update(func() { r.limits = append(r.limits, l) }) }
func (r *recorder) Denied(denial Denial) { r.update(func() { r.denials = append(r.denials, denial) }) }
func (r *recorder) Reviewed([]Finding)   {}
func (r *recorder) Exited(exit Exit)     { r.update(func() { r.exit = &exit }) }

func (r *recorder) until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	timeout := deadline.After(timeout)
	for {
		r.mu.Lock()
		met, changed := condition(), r.changed
		r.mu.Unlock()
		if met {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("timeout: %s; the output is %.1000q", what, r.output.String())
		}
	}
}

func (r *recorder) await(t *testing.T, text string) {
	t.Helper()
	r.until(t, text, func() bool { return strings.Contains(r.output.String(), text) })
}

// end waits for the last call and returns how the leader ended, with all
// output.
func (r *recorder) end(t *testing.T) (Exit, string) {
	t.Helper()
	r.until(t, "Exited", func() bool { return r.exit != nil })
	if r.late {
		t.Error("the sink was called after Exited")
	}
	return *r.exit, r.output.String()
}

type fixture struct {
	*Spawner
	dir string
}

func newFixture(t *testing.T, backend platform.Backend) *fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, err := lifecycle.StateDir([]string{"HOME=" + dir})
	if err != nil {
		t.Fatal(err)
	}
	tracker := lifecycle.Open(lifecycle.Options{StateDir: state})
	t.Cleanup(func() {
		if err := tracker.Close(); err != nil {
			t.Errorf("close tracker: %v", err)
		}
	})
	return &fixture{&Spawner{Backend: backend, Tracker: tracker}, dir}
}

func (s *fixture) line(line string) Request {
	return Request{
		ID: uuid.NewString(), Program: "/bin/sh", Argv: []string{"sh", "-c", line}, Env: []string{
			"PATH=/usr/bin:/bin",
			"HOME=" + s.dir,
		}, Dir: s.dir,
	}
}

func (s *fixture) begin(t *testing.T, request Request) (*Session, *recorder) {
	t.Helper()
	session, err := s.Start(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	session.Begin(r, nil)
	t.Cleanup(func() {
		ctx, cancel := deadline.Context(context.Background(), timeout)
		defer cancel()
		if _, err := session.Close(ctx, 0); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return session, r
}

func TestSession_OutputIsNotHeldBack(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	session, r := s.begin(t, s.line("stty -echo; while read x; do printf 1; printf 2; printf $x; done"))
	// Each round's pieces come close together, so that the later ones are
	// gathered. No later piece pushes them out.
	for round := range 20 {
		session.Input(fmt.Appendf(nil, "end%d\n", round))
		r.await(t, fmt.Sprintf("12end%d", round))
	}
}

func TestSession_AllOutputBeforeTheEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"the last bytes":                      "printf last",
		"much":                                "seq 50000; printf last",
		"much, while something holds the tty": "(trap '' HUP; sleep 1000) & seq 50000; printf last",
		"nothing for a while":                 "sleep 0.05; printf last",
	}
	for name, line := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, &platformtest.Fake{})
			_, r := s.begin(t, s.line(line+"; exit 7"))
			exit, output := r.end(t)
			if exit != (Exit{Code: 7}) || !strings.HasSuffix(output, "last") {
				t.Errorf("got %+v and %.100q …", exit, output[max(0, len(output)-100):])
			}
			if strings.Contains(line, "seq") && strings.Count(output, "\n") != 50000 {
				t.Errorf("got %d lines of 50000", strings.Count(output, "\n"))
			}
		})
	}
}

func TestSession_SendsTheFirstBytesFirst(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	session, err := s.Start(t.Context(), s.line("printf program"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	session.Begin(r, []byte("warning "))
	session.Begin(r, []byte("twice "))
	if _, output := r.end(t); output != "warning program" {
		t.Errorf("got %q", output)
	}
}

func TestSession_Exit(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Exit{
		"exit 0": {}, "exit 255": {Code: 255}, "kill -TERM $$": {Signal: unix.SIGTERM},
		"kill -KILL $$": {Signal: unix.SIGKILL}, "ulimit -c 0; kill -SEGV $$": {Signal: unix.SIGSEGV},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, &platformtest.Fake{})
			session, r := s.begin(t, s.line(line))
			exit, _ := r.end(t)
			<-session.LeaderEnded()
			if exit != want || session.Exit() != want {
				t.Errorf("got %+v and %+v, want %+v", exit, session.Exit(), want)
			}
			if err := session.Signal(unix.SIGTERM); !errors.Is(err, ErrEnded) {
				t.Errorf("signal after the end: got %v, want %v", err, ErrEnded)
			}
			if session.Input([]byte("x")) {
				t.Error("input was taken after the end")
			}
			if err := session.Resize(Size{Cols: 1, Rows: 1}); err != nil {
				t.Errorf("resize after the end: %v", err)
			}
		})
	}
}

func TestSession_FlowControl(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	request := s.line("yes | head -c 4000000; echo end")
	request.FlowControl = true
	session, r := s.begin(t, request)
	r.until(t, "a full window", func() bool { return r.output.Len() >= window })
	// At most one piece may exceed the window.
	for acked, last := 0, false; !last; {
		r.mu.Lock()
		sent := r.output.Len()
		last = strings.HasSuffix(r.output.String(), "end\r\n")
		r.mu.Unlock()
		if unacknowledged := sent - acked; unacknowledged > window+maxChunk {
			t.Fatalf("%d bytes are unacknowledged, the window is %d", unacknowledged, window)
		}
		session.Ack(sent - acked)
		acked = sent
		if !last {
			r.until(t, "more after an ack", func() bool { return r.output.Len() > sent || r.exit != nil })
		}
	}
	// each of 2 million newlines gains a return
	if exit, output := r.end(t); exit != (Exit{}) || len(output) != 6_000_000+len("end\r\n") {
		t.Errorf("got %+v and %d bytes", exit, len(output))
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, line string
		grace      time.Duration
		want       Exit
	}{
		{
			"without grace it is killed", "trap 'exit 3' HUP; echo ready; while :; do sleep 0.01; done", 0,
			Exit{Signal: unix.SIGKILL},
		},
		{
			"a hangup that is handled", "trap 'exit 3' HUP; echo ready; while :; do sleep 0.01; done", timeout,
			Exit{Code: 3},
		},
		{
			"a hangup that is ignored", "trap '' HUP; echo ready; while :; do sleep 0.01; done", time.Millisecond,
			Exit{Signal: unix.SIGKILL},
		},
		{
			"a stopped process receives the hangup",
			"trap 'exit 4' HUP; (until case $(ps -o stat= -p $$) in T*) ;; *) false ;; esac; do :; done; echo " +
				"ready) & kill -STOP $$; while :; do sleep 0.01; done",
			timeout,
			Exit{Code: 4},
		},
		{
			"children that stay", "trap '' HUP; (trap '' HUP TERM; sleep 1000) & (sleep 1000) & echo ready; wait", 0,
			Exit{Signal: unix.SIGKILL},
		},
		{"flow control without acknowledgements", "echo ready; yes", 0, Exit{Signal: unix.SIGKILL}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, &platformtest.Fake{})
			request := s.line(test.line)
			request.FlowControl = true
			session, r := s.begin(t, request)
			r.await(t, "ready")
			if _, err := session.Close(t.Context(), test.grace); err != nil {
				t.Fatal(err)
			}
			if exit, _ := r.end(t); exit != test.want {
				t.Errorf("got %+v, want %+v", exit, test.want)
			}
			if err := unix.Kill(session.PID(), 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("its leader is alive: %v", err)
			}
			if _, err := session.Close(t.Context(), test.grace); err != nil {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

// Closing a session in the moment in which it ends by itself is no error.
func TestClose_WhileItEnds(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	for range 50 {
		session, r := s.begin(t, s.line("read x; sleep 1000 & exit 0"))
		session.Input([]byte("\n"))
		var closing sync.WaitGroup
		for range 4 {
			closing.Go(func() {
				<-session.LeaderEnded()
				if _, err := session.Close(t.Context(), 0); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
		if exit, _ := r.end(t); exit != (Exit{}) {
			t.Errorf("got %+v", exit)
		}
	}
}

func TestSignal_ReachesTheForegroundAlone(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	request := s.line("")
	request.Argv = []string{"sh", "-i"}
	request.Env = append(request.Env, "PS1=> ")
	session, r := s.begin(t, request)
	session.Input([]byte("trap 'echo leader' TERM\nsleep 1001 & echo background\n"))
	r.await(t, "background\r\n")
	session.Input([]byte("sh -c 'echo run''ning; exec sleep 1002'\n"))
	r.await(t, "running")
	if err := session.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	session.Input([]byte("echo status $?; kill -0 $! && echo alive; exit\n"))
	_, output := r.end(t)
	if !strings.Contains(output, "status 143") || !strings.Contains(output, "\nalive") ||
		strings.Contains(output, "\nleader") {
		t.Errorf("got %q", output)
	}
}

func TestStart_RuntimeDirectoryGoesWithTheSession(t *testing.T) {
	t.Parallel()
	fake := &platformtest.Fake{}
	s := newFixture(t, fake)
	request := s.line(`cd "$XDG_RUNTIME_DIR" && pwd && mkdir -p a/b && touch a/b/c && chmod 500 a`)
	request.Policy = policy.Policy{Restricted: true, PrivateRuntimeDir: true, Network: policy.Network{Allowed: true}}
	_, r := s.begin(t, request)
	exit, output := r.end(t)
	dir := strings.TrimSpace(output)
	if exit != (Exit{}) || !strings.HasPrefix(dir, filepath.Join(s.dir, ".local/state/sandbox-sidecar/run")+"/") {
		t.Fatalf("got %+v and %q", exit, output)
	}
	// A busy machine removes it in the background.
	gone := func() bool { _, err := os.Lstat(dir); return errors.Is(err, os.ErrNotExist) }
	if !deadline.Until(timeout, gone) {
		t.Errorf("%s was not removed", dir)
	}
	if confined := fake.Confined()[0]; len(confined.Rules) != 1 || confined.Rules[0].Path != dir ||
		confined.Rules[0].Access != policy.ReadWrite {
		t.Errorf("the policy that was confined: %+v", confined.Rules)
	}
	if len(request.Policy.Rules) != 0 {
		t.Error("the caller's policy was changed")
	}
}

func TestSession_TerminalHasItsSizeAndEncoding(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	request := s.line(`test -t 0 && test -t 1 && test -t 2 && stty size && stty -a | grep -o -- '-\?iutf8'
		echo $TERM; tty; exec </dev/tty && echo controlling`)
	request.Size = Size{Cols: 99, Rows: 33}
	_, r := s.begin(t, request)
	_, output := r.end(t)
	lines := strings.Split(output, "\r\n")
	if len(lines) != 6 || lines[0] != "33 99" || lines[1] != "iutf8" || lines[2] != "xterm-256color" ||
		!strings.HasPrefix(lines[3], "/dev/") || lines[4] != "controlling" {
		t.Errorf("got %q", lines)
	}

	request = s.line(`test -t 0 || echo no; test -t 1 && test -t 2 && echo yes; exec </dev/tty && echo controlling`)
	request.NoInput = true
	_, r = s.begin(t, request)
	if _, output := r.end(t); output != "no\r\nyes\r\ncontrolling\r\n" {
		t.Errorf("without input: got %q", output)
	}
}
