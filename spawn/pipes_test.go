//go:build unix

package spawn

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

// piped is the request of a line with further pipes.
func (s *fixture) piped(line string, pipes Pipes) Request {
	request := s.line(line)
	request.Pipe, request.Pipes = true, &pipes
	return request
}

// A program reads what is written to its standard input, to the end. Without such
// a pipe it reads nothing, and no input is taken.
func TestPipes_Stdin(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	session, r := s.begin(t, s.piped("cat; echo end", Pipes{Stdin: true}))
	if !session.Input([]byte("one\n")) {
		t.Error("input was not taken")
	}
	r.await(t, "one\n")
	if !session.Input([]byte("two\n")) || !session.CloseInput() {
		t.Error("the last input was not taken")
	}
	if session.Input([]byte("three\n")) {
		t.Error("input was taken after its end")
	}
	if exit, output := r.end(t); exit != (Exit{}) || output != "one\ntwo\nend\n" {
		t.Errorf("%+v, %q", exit, output)
	}
	control, r := s.begin(t, s.piped("cat; echo end", Pipes{}))
	if control.Input([]byte("one\n")) || control.CloseInput() {
		t.Error("control: input was taken without a pipe")
	}
	if _, output := r.end(t); output != "end\n" {
		t.Errorf("control: %q", output)
	}
}

// A program that reads late gets everything that was taken, without a gap: once
// something was dropped, its input ends.
func TestPipes_StdinHasNoGap(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	session, r := s.begin(t, s.piped("while ! test -e go; do sleep 0.01; done; wc -c", Pipes{Stdin: true}))
	piece, taken := bytes.Repeat([]byte("x"), 1<<20), 0
	for session.Input(piece) {
		if taken += len(piece); taken > 4*maxInput {
			t.Fatal("the queue has no end")
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if session.Input([]byte("y")) {
		t.Error("input was taken after a gap")
	}
	_, output := r.end(t)
	if got := strings.TrimSpace(output); got != strconv.Itoa(taken) {
		t.Errorf("the program read %s bytes of %d", got, taken)
	}
}

// Standard error is apart if that is asked for, and both are read to their end.
func TestPipes_Stderr(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	const line = "seq 50000; printf out; seq 50000 >&2; printf errors >&2"
	_, r := s.begin(t, s.piped(line, Pipes{Stderr: true}))
	exit, output := r.end(t)
	if errors := r.stderr.String(); exit != (Exit{}) || len(output) != 288894+len("out") ||
		len(errors) != 288894+len("errors") || !strings.HasSuffix(errors, "errors") {
		t.Errorf("%+v, %d bytes of output and %d of errors", exit, len(output), len(errors))
	}
	_, r = s.begin(t, s.piped(line, Pipes{}))
	if _, output := r.end(t); len(output) != 2*288894+len("outerrors") || r.stderr.Len() > 0 {
		t.Errorf("control: %d bytes of output and %d of errors", len(output), r.stderr.Len())
	}
}

// A stream ends at its cap. What the program prints beyond is counted, and does not
// hold it up.
func TestPipes_OutputIsCapped(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	for _, test := range []struct{ most, output, stderr, dropped int64 }{
		{10, 10, 5, 288894 - 10}, {288894, 288894, 5, 0}, {0, 288894, 5, 0},
	} {
		request := s.piped("seq 50000; echo late >&2", Pipes{Stderr: true})
		request.OutputCap = test.most
		session, r := s.begin(t, request)
		exit, output := r.end(t)
		if exit != (Exit{}) || int64(len(output)) != test.output || int64(r.stderr.Len()) != test.stderr ||
			session.Dropped() != test.dropped {
			t.Errorf("cap %d: %+v, %d bytes of output, %d of errors, %d dropped", test.most, exit, len(output),
				r.stderr.Len(), session.Dropped())
		}
	}
}

// A session whose time is over gets SIGTERM, and may end by it. What ignores that is
// killed. The control has time.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	for _, test := range []struct {
		line string
		want Exit
	}{
		{"trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done", Exit{Code: 3}},
		{"trap '' TERM; echo ready; sleep 1000", Exit{Signal: unix.SIGKILL}},
	} {
		session, r := s.begin(t, s.piped(test.line, Pipes{}))
		r.await(t, "ready")
		session.limit = time.Nanosecond
		session.expire()
		if exit, _ := r.end(t); exit != test.want || !session.TimedOut() {
			t.Errorf("%s: %+v, timed out: %t", test.line, exit, session.TimedOut())
		}
	}
	for line, limit := range map[string]time.Duration{"exec sleep 1000": time.Millisecond, "true": time.Hour} {
		request := s.piped(line, Pipes{})
		request.TimeLimit = limit
		session, r := s.begin(t, request)
		if exit, _ := r.end(t); session.TimedOut() != (exit.Signal == unix.SIGTERM) ||
			session.TimedOut() != (limit < time.Hour) {
			t.Errorf("%s: %+v, timed out: %t", line, exit, session.TimedOut())
		}
	}
}

// An attempt to start that fails leaves no pipe open.
func TestPipes_AreClosedWithoutASession(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	request := s.piped("true", Pipes{Stdin: true, Stderr: true})
	request.Program = filepath.Join(s.dir, "missing")
	if _, err := s.Start(t.Context(), request); err == nil {
		t.Fatal("a program that is missing was started")
	}
	stdin, stderr := request.Pipes.stdin, request.Pipes.stderr
	if stdin == nil || stderr == nil {
		t.Fatal("control: no pipe was made")
	}
	request.Pipes.Close()
	if stdin.Close() == nil || stderr.Close() == nil {
		t.Error("a pipe was open")
	}
}
