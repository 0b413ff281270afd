package harness

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/creack/pty"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Terminal is a command on a terminal of its own, with a user who types and
// reads there.
type Terminal struct {
	Command *exec.Cmd
	// TTY is the user's side of the terminal.
	TTY *os.File
	// Screen is what the terminal has shown so far.
	Screen *Buffer

	t     testing.TB
	read  chan struct{} // closed when no process holds the terminal any more
	ended chan struct{} // closed when the command has ended
	err   error         // of Wait, set before ended is closed
}

// StartTerminal starts a command on a new terminal, as the leader of a session.
// The command is killed with the test.
func StartTerminal(t testing.TB, command *exec.Cmd) *Terminal {
	t.Helper()
	tty, err := pty.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	p := &Terminal{
		Command: command, TTY: tty, Screen: &Buffer{}, t: t,
		read: make(chan struct{}), ended: make(chan struct{}),
	}
	go func() {
		defer close(p.read)
		_, _ = io.Copy(p.Screen, tty) // ends with EIO
	}()
	go func() {
		defer close(p.ended)
		p.err = command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-p.ended
		tty.Close()
		<-p.read
	})
	return p
}

// Type types a text.
func (p *Terminal) Type(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.TTY, text); err != nil {
		p.t.Fatal(err)
	}
}

// Await waits until the screen matches a pattern.
func (p *Terminal) Await(pattern string) {
	p.t.Helper()
	p.Screen.Await(p.t, pattern)
}

// Status waits for the command's end and for everything written until then, and
// returns the exit status; -1 if a signal ended the command.
func (p *Terminal) Status() int {
	p.t.Helper()
	for _, done := range []chan struct{}{p.ended, p.read} {
		if !deadline.New(Timeout).Wait(done) {
			p.t.Fatalf("the command has not ended; on the screen:\n%s", p.Screen)
		}
	}
	var failed *exec.ExitError
	if p.err != nil && !errors.As(p.err, &failed) {
		p.t.Fatal(p.err)
	}
	return p.Command.ProcessState.ExitCode()
}

// WithAndWithoutCgroups runs a test twice: with the process tracking of this
// machine, and with that of one without cgroups. wrap changes a command to
// start that way.
func WithAndWithoutCgroups(t *testing.T, run func(t *testing.T, wrap func(*exec.Cmd))) {
	t.Helper()
	t.Run("as it comes", func(t *testing.T) {
		t.Parallel()
		run(t, func(*exec.Cmd) {})
	})
	t.Run("without cgroups", func(t *testing.T) {
		t.Parallel()
		run(t, WithoutCgroups(t))
	})
}
