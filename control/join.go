//go:build unix

package control

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

const (
	// takeTimeout bounds the wait for a process to take a command. The wait ends at
	// once if that process ends.
	takeTimeout = 10 * time.Second
	// startTimeout bounds the wait for the start of a command; see
	// platform.GroupInit.
	startTimeout = time.Minute
)

// Joined is a command in a shared sandbox.
type Joined struct {
	// Terminal is the master of its terminal; nil if it has none. Close closes it.
	Terminal *os.File
	// Said are lines for the user of a link about its start.
	Said string

	conn *usersocket.Conn
}

// End says how a command has ended.
type End struct {
	Exit spawn.Exit
	// Denied is what it was refused, and More counts the rest.
	Denied []Denied
	More   int
	// Said are lines for the user of a link, which say that and more.
	Said string
}

// ErrNotStarted means that the command was not started, as the process refuses it or
// is not there any more. It was not started in part either.
var ErrNotStarted = errors.New("not started")

// ErrAbsent is ErrNotStarted because the process or the sandbox is not there any
// more.
var ErrAbsent = fmt.Errorf("%w: the sandbox is not there any more", ErrNotStarted)

// ErrLost is ErrNotStarted because the process has closed the connection, or has
// ended, before it has taken the command.
var ErrLost = fmt.Errorf("%w: the connection has ended", ErrNotStarted)

// ErrGone means that the sandbox has ended, perhaps as the process that started it
// has, and with it the command.
var ErrGone = errors.New("the sandbox has ended, and with it the command")

// Join starts a command in the shared sandbox with an ID that the process runs.
// Of files, which the caller closes, none may be a terminal. The error is a
// *spawn.Error of a *spawn.NotExecutedError if the program could not be executed.
func (s *Supervisor) Join(sandbox string, j spawn.Joining) (*Joined, error) {
	return s.join(&join{Sandbox: sandbox}, j)
}

// JoinLink is Join for the command of a link that is a shell, in the sandbox of its
// agent. place is the name of the place at which the link has found the process,
// which refuses the command if it keeps its sandbox for another one. The process
// says what there is to say to the user.
func (s *Supervisor) JoinLink(sandbox, place string, j spawn.Joining) (*Joined, error) {
	return s.join(&join{Sandbox: sandbox, Link: true, Place: place}, j)
}

// The errors of a link whose command was taken. Its user has joined nothing.
var (
	errKeeperEnded  = errors.New("the command may have run: what keeps the agent's sandbox has ended; run it again")
	errKeeperSilent = errors.New("the command may have run: what keeps the agent's sandbox does not answer")
)

func (s *Supervisor) join(asked *join, j spawn.Joining) (*Joined, error) {
	link := asked.Link
	raw, pid, err := usersocket.Dial(s.stateDir, s.socket, name, time.Now().Add(takeTimeout))
	failed := func(err error) error {
		if link {
			return err
		}
		return fmt.Errorf("join sandbox: %w", err)
	}
	pid = cmp.Or(pid, s.PID)
	ofProcess := func(err error) error {
		if pid == 0 {
			return failed(reason(err))
		}
		return failed(fmt.Errorf("process %d: %w", pid, reason(err)))
	}
	if err != nil {
		return nil, &notStartedError{ofProcess(err), absentBy(err)}
	}
	c := usersocket.NewConn(raw, maxMessage)
	c.TakeFiles(1)
	c.WaitToSend(takeTimeout)
	asked.Program, asked.Dir = []byte(j.Program), []byte(j.Dir)
	asked.Argv, asked.Env = bytesOf(j.Argv), bytesOf(j.Env)
	var files []*os.File
	if j.Files != nil {
		files = j.Files[:]
	} else {
		asked.Terminal = &size{Cols: j.Size.Cols, Rows: j.Size.Rows}
	}
	var answer reply
	err = c.Send(request{Version: version, Join: asked}, files...)
	if err == nil {
		_ = c.ReceiveBefore(time.Now().Add(takeTimeout))
		err = c.Receive(&answer)
	}
	if err == nil && answer.Taken {
		err = c.Send(goAhead{Go: true})
	}
	if err != nil { // nothing is started before
		c.Close()
		return nil, &notStartedError{ofProcess(err), lostBy(err)}
	}
	if answer.Taken {
		answer = reply{}
		_ = c.ReceiveBefore(time.Now().Add(startTimeout))
		err = c.Receive(&answer)
	}
	passed := c.Files()
	switch {
	case err != nil && link && errors.Is(reason(err), ErrSilent):
		err = errKeeperSilent
	case err != nil && link:
		err = errKeeperEnded
	case err != nil:
		err = ofProcess(err)
	case answer.NotExecuted != nil:
		failed := answer.NotExecuted
		err = &spawn.Error{
			Attempt: "execute", Path: string(failed.Path), Hint: failed.Hint,
			Cause: &spawn.NotExecutedError{Cause: failed.Cause, Missing: failed.Missing},
		}
	case answer.Unknown != "":
		err = failed(errors.New(answer.Unknown))
	case answer.Refused != "":
		why := ErrNotStarted
		if answer.Absent {
			why = ErrAbsent
		}
		err = &notStartedError{failed(errors.New(answer.Refused)), why}
	case !answer.Started || (len(passed) == 1) != (j.Files == nil):
		err = ofProcess(errors.New("it answers something else"))
	}
	if err != nil {
		for _, file := range passed {
			file.Close()
		}
		c.Close()
		return nil, err
	}
	_ = c.ReceiveBefore(time.Time{})
	joined := &Joined{conn: c, Said: answer.Said}
	if len(passed) == 1 {
		joined.Terminal = passed[0]
	}
	return joined, nil
}

// absentBy is ErrAbsent if nothing listens where a process should, as the error of
// Dial says. Any other error says nothing of the process: it may run.
func absentBy(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return ErrAbsent
	}
	return ErrNotStarted
}

// lostBy is ErrLost if the other end of a connection is not there any more.
func lostBy(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return ErrLost
	}
	return ErrNotStarted
}

// notStartedError is an error that is another one, too.
type notStartedError struct{ cause, also error }

func (e *notStartedError) Error() string   { return e.cause.Error() }
func (e *notStartedError) Unwrap() []error { return []error{e.cause, e.also} }

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

// ReadOn hands over pipes to which what the command has left in the background still
// prints. The process that has the sandbox reads and drops that, so that nothing
// fails for lack of a reader. The caller reads them no more, and closes them.
func (j *Joined) ReadOn(files []*os.File) {
	if len(files) > 0 {
		_ = j.conn.Send(signal{ReadOn: true}, files...) // else they end with the sandbox
	}
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
		Denied: answer.Ended.Denied, More: answer.Ended.More, Said: answer.Said,
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
