//go:build unix

package control

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

// startTimeout bounds the wait for the start of a command; see platform.GroupInit.
const startTimeout = time.Minute

// Joined is a command in a shared sandbox.
type Joined struct {
	// Terminal is the master of its terminal; nil if it has none. Close closes it.
	Terminal *os.File

	conn *usersocket.Conn
}

// End says how a command has ended.
type End struct {
	Exit spawn.Exit
	// Denied is what it was refused, and More counts the rest.
	Denied []Denied
	More   int
}

// ErrGone means that the sandbox has ended, perhaps as the process that started it
// has, and with it the command.
var ErrGone = errors.New("the sandbox has ended, and with it the command")

// Join starts a command in the shared sandbox with an ID that the process runs.
// Of files, which the caller closes, none may be a terminal. The error is a
// *spawn.NotExecutedError if the program could not be executed.
func (s *Supervisor) Join(sandbox string, j spawn.Joining) (*Joined, error) {
	raw, _, err := usersocket.Dial(s.stateDir, s.socket, name, time.Now().Add(answerTimeout))
	if err != nil {
		return nil, fmt.Errorf("join sandbox: process %d: %w", s.PID, reason(err))
	}
	c := usersocket.NewConn(raw, maxMessage)
	c.TakeFiles(1)
	asked := &join{Sandbox: sandbox, Argv: bytesOf(j.Argv), Env: bytesOf(j.Env), Dir: []byte(j.Dir)}
	var files []*os.File
	if j.Files != nil {
		files = j.Files[:]
	} else {
		asked.Terminal = &size{Cols: j.Size.Cols, Rows: j.Size.Rows}
	}
	var answer reply
	if err = c.Send(request{Version: version, Join: asked}, files...); err == nil {
		_ = c.ReceiveBefore(time.Now().Add(startTimeout))
		err = c.Receive(&answer)
	}
	passed := c.Files()
	switch {
	case err != nil:
		err = fmt.Errorf("join sandbox: process %d: %w", s.PID, reason(err))
	case answer.NotExecuted != nil:
		err = &spawn.NotExecutedError{Cause: answer.NotExecuted.Cause, Missing: answer.NotExecuted.Missing}
	case answer.Refused != "":
		err = fmt.Errorf("join sandbox: %s", answer.Refused)
	case !answer.Started || (len(passed) == 1) != (j.Files == nil):
		err = fmt.Errorf("join sandbox: process %d answers something else", s.PID)
	}
	if err != nil {
		for _, file := range passed {
			file.Close()
		}
		c.Close()
		return nil, err
	}
	_ = c.ReceiveBefore(time.Time{})
	joined := &Joined{conn: c}
	if len(passed) == 1 {
		joined.Terminal = passed[0]
	}
	return joined, nil
}

func bytesOf(list []string) [][]byte {
	var out [][]byte
	for _, text := range list {
		out = append(out, []byte(text))
	}
	return out
}

// Signal sends a signal to the command, or to its process group.
func (j *Joined) Signal(number unix.Signal, group bool) {
	_ = j.conn.Send(signal{Signal: int(number), Group: group}) // Wait sees the end
}

// Wait waits for the command's end. The error is ErrGone; what the command was
// refused may be known even then.
func (j *Joined) Wait() (End, error) {
	var answer reply
	if err := j.conn.Receive(&answer); err != nil || answer.Ended == nil {
		return End{}, ErrGone
	}
	var err error
	if answer.Ended.Gone {
		err = ErrGone
	}
	return End{
		Exit:   spawn.Exit{Code: answer.Ended.Code, Signal: unix.Signal(answer.Ended.Signal)},
		Denied: answer.Ended.Denied, More: answer.Ended.More,
	}, err
}

// Close ends the command, if it still runs, and closes its terminal.
func (j *Joined) Close() {
	j.conn.Close()
	if j.Terminal != nil {
		j.Terminal.Close()
	}
}

func isTerminal(file *os.File) bool {
	is := false
	raw, err := file.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_, err := unix.IoctlGetTermios(int(fd), getTermios)
			is = err == nil
		})
	}
	return is && err == nil
}
