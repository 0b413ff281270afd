//go:build unix

package spawn

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// A command with a pipe has no terminal at all: neither as a stream nor as the
// terminal of its session. The control has one.
func TestPipe_IsNoTerminal(t *testing.T) {
	t.Parallel()
	const line = "test -t 1 && echo terminal; (: </dev/tty) 2>/dev/null && echo controlling; cat; printf " +
		"'a\\nb\\r'; echo c >&2"
	for _, test := range []struct {
		pipe bool
		want string
	}{{true, "a\nb\rc\n"}, {false, "terminal\r\ncontrolling\r\na\r\nb\rc\r\n"}} {
		s := newFixture(t, &platformtest.Fake{})
		request := s.line(line)
		request.Pipe, request.NoInput = test.pipe, true
		_, r := s.begin(t, request)
		if exit, output := r.end(t); output != test.want || exit != (Exit{}) {
			t.Errorf("pipe %t: %+v, %q, want %q", test.pipe, exit, output, test.want)
		}
	}
}

// What is for terminals does no harm, and signals reach the leader's group.
func TestPipe_TakesSignalsAndNoInput(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	request := s.line("echo ready; sleep 1000")
	request.Pipe = true
	session, r := s.begin(t, request)
	r.await(t, "ready")
	if session.Input([]byte("x")) {
		t.Error("input was taken")
	}
	if err := session.Resize(Size{Cols: 90, Rows: 20}); err != nil {
		t.Error(err)
	}
	if err := session.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	if exit, output := r.end(t); exit.Signal != unix.SIGTERM || output != "ready\n" {
		t.Errorf("%+v, %q", exit, output)
	}
}

// The session ends with its leader, whoever holds the pipe.
func TestPipe_EndsWithItsLeader(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"held":   "(trap '' HUP; sleep 1000) & seq 50000; printf last",
		"closed": "seq 50000; printf last; exec >&- 2>&-; sleep 0.05",
	} {
		s := newFixture(t, &platformtest.Fake{})
		request := s.line(line)
		request.Pipe = true
		_, r := s.begin(t, request)
		if exit, output := r.end(t); exit != (Exit{}) || len(output) != 288894+len("last") {
			t.Errorf("%s: %+v and %d bytes", name, exit, len(output))
		}
	}
}

// ownTerminals is a backend whose stages open their terminals.
type ownTerminals struct{ platformtest.Fake }

func (b *ownTerminals) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	confinement, err := b.Fake.Confine(p, hooks)
	confinement.OwnTerminal = true
	return confinement, err
}

// No stage is started in advance after a session with a pipe: such a stage could
// open only a terminal.
func TestPipe_StartsNoStageInAdvance(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &ownTerminals{})
	s.Standby = true
	t.Cleanup(s.Close)
	due := func() bool {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		return s.pool.waiting != nil || s.pool.timer != nil
	}
	request := s.line("echo on")
	request.Pipe, request.Policy = true, policy.Policy{Restricted: true}
	session, err := s.Start(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if due() {
		t.Error("a stage is started for the next session")
	}
	r := newRecorder()
	session.Begin(r, nil)
	if _, output := r.end(t); output != "on\n" {
		t.Errorf("%q", output)
	}
	s.pool.refill(s.Spawner, platform.Confinement{OwnTerminal: true})
	if !due() {
		t.Error("control: no stage would be started")
	}
}
