//go:build unix

package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

const (
	// streams are the files that come with a command without a terminal.
	streams = 3
	// maxSignal is the highest signal that is passed on.
	maxSignal = 31
	// mostDenied bounds the denials that are reported of a command.
	mostDenied = 12
	// lastRead is how long the other end may read what is left in the terminal.
	lastRead = 5 * time.Second
)

// join runs a command in a shared sandbox, until it or the connection ends.
func (l *Listener) join(c *usersocket.Conn, pid int, asked *join) {
	answered := l.begin()
	defer answered()
	files := c.Files()
	defer func() {
		for _, file := range files {
			file.Close()
		}
	}()
	joining, err := asked.check(files)
	joining.ByLink = asked.Link
	if err == nil && asked.Link {
		err = l.admitLink(pid, asked.Place)
	}
	if err != nil {
		_ = c.Send(reply{Refused: err.Error()})
		return
	}
	if c.Send(reply{Taken: true}) != nil {
		return
	}
	var ahead goAhead
	_ = c.ReceiveBefore(time.Now().Add(requestTimeout))
	if c.Receive(&ahead) != nil || !ahead.Go {
		return
	}
	var narrator Narrator
	if asked.Link {
		narrator = l.options.Narrate(joining)
	}
	command, err := l.options.Spawner.Join(context.Background(), asked.Sandbox, joining)
	for _, file := range files {
		file.Close() // or the end of its input or output would never be seen
	}
	files = nil
	if err != nil {
		if spawn.Silent(err) && l.options.Silent != nil {
			l.options.Silent(asked.Sandbox) // first, so that the next command is refused
		}
		_ = c.Send(failure(err, asked.Link))
		return
	}
	defer command.GiveBack()
	var master []*os.File
	if file := command.Terminal(); file != nil {
		master = []*os.File{file}
	}
	began := ""
	if narrator != nil {
		began = narrator.Began(command)
	}
	if sendShort(c, reply{Started: true, Said: began}, master...) != nil {
		command.Kill()
		return
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = c.ReceiveBefore(time.Time{})
		for {
			var s signal
			if c.Receive(&s) != nil {
				return
			}
			switch {
			case s.ReadOn:
				command.ReadOn(c.Files())
			case s.Signal < 1 || s.Signal > maxSignal:
				return
			default:
				command.Signal(unix.Signal(s.Signal), s.Group)
			}
		}
	}()
	select {
	case <-command.Done():
	case <-gone:
		command.Kill()
		return
	}
	exit, _ := command.Exit() // what survives is logged
	end := &ended{Code: exit.Code, Signal: int(exit.Signal)}
	end.Gone = exit.Signal == unix.SIGKILL && command.GroupEnded()
	end.list(command.Denials())
	answer := reply{Ended: end}
	if narrator != nil {
		answer.Said = narrator.Ended(command)
	}
	err = sendShort(c, answer)
	answered()
	if err != nil {
		return
	}
	if asked.Link { // it has more to read, for as long as its caller takes
		<-gone
		return
	}
	timer := time.NewTimer(lastRead)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	}
}

// failure is the answer for a command that was not started, or perhaps not. That of
// a link is refused if the sandbox has no room for it, as nothing of it has run: it
// can run elsewhere.
func failure(err error, link bool) reply {
	failed, notExecuted := errors.AsType[*spawn.NotExecutedError](err)
	switch {
	case spawn.MayHaveRun(err):
		return reply{Unknown: err.Error()}
	case notExecuted && failed.Exhausted && link:
		return reply{Refused: "nothing more can be started in the agent's sandbox: " + failed.Cause}
	case notExecuted:
		return reply{NotExecuted: describeFailed(err, failed)}
	}
	absent := errors.Is(err, spawn.ErrNoSuchSandbox) || errors.Is(err, spawn.ErrGroupEnded)
	return reply{Refused: err.Error(), Absent: absent}
}

func describeFailed(err error, failed *spawn.NotExecutedError) *notExecuted {
	described := &notExecuted{Cause: failed.Cause, Missing: failed.Missing}
	if whole, is := errors.AsType[*spawn.Error](err); is {
		described.Path, described.Hint = []byte(whole.Path), whole.Hint
	}
	return described
}

// sender is the part of a connection that sendShort needs.
type sender interface {
	Send(message any, files ...*os.File) error
}

// tooMuch is said in place of lines that do not fit into a message.
const tooMuch = "sandbox-sidecar: warning: what there is to say of the command does not fit into a message\n"

// sendShort sends an answer, or what fits of it: how a command has ended always
// arrives.
func sendShort(c sender, answer reply, files ...*os.File) error {
	err := c.Send(answer, files...)
	if !errors.Is(err, usersocket.ErrTooLong) {
		return err
	}
	if answer.Said != "" {
		answer.Said = tooMuch
	}
	if answer.Ended != nil {
		short := *answer.Ended
		short.Denied, short.More = nil, short.More+len(short.Denied)
		answer.Ended = &short
	}
	return c.Send(answer, files...)
}

// admitLink refuses the command of a link that another process should run.
func (l *Listener) admitLink(pid int, place string) error {
	if l.options.Admit == nil || l.options.Narrate == nil {
		return ErrNoLinks
	}
	return l.options.Admit(pid, place)
}

// list adds what the command was refused.
func (e *ended) list(denials []spawn.Denial, more int) {
	for i, denial := range denials {
		if i == mostDenied {
			more += len(denials) - i
			break
		}
		e.Denied = append(e.Denied, Denied{Line: presentation.DenialLine(denial), Number: denial.Number})
	}
	e.More = more
}

// check refuses what is no command. A terminal of the user's does not get inside:
// whatever runs in the sandbox could keep it, and read what is typed later.
func (j *join) check(files []*os.File) (spawn.Joining, error) {
	joining := spawn.Joining{
		Program: string(j.Program), Argv: texts(j.Argv), Env: texts(j.Env), Dir: string(j.Dir),
	}
	switch {
	case len(joining.Argv) == 0 || joining.Argv[0] == "":
		return joining, errors.New("no command came")
	case !filepath.IsAbs(joining.Dir):
		return joining, errors.New("the working directory is no absolute path")
	case j.Terminal != nil && len(files) == 0:
		joining.Size = spawn.Size{Cols: j.Terminal.Cols, Rows: j.Terminal.Rows}
		return joining, nil
	case j.Terminal != nil || len(files) != streams:
		return joining, fmt.Errorf("%d files came with the command", len(files))
	}
	for _, file := range files {
		if isTerminal(file) {
			return joining, errors.New("a terminal of yours is not passed on")
		}
	}
	joining.Files = (*[streams]*os.File)(files)
	return joining, nil
}

func texts(list [][]byte) []string {
	var out []string
	for _, text := range list {
		out = append(out, string(text))
	}
	return out
}
