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
func (l *Listener) join(c *usersocket.Conn, asked *join) {
	files := c.Files()
	defer func() {
		for _, file := range files {
			file.Close()
		}
	}()
	joining, err := asked.check(files)
	if err != nil {
		_ = c.Send(reply{Refused: err.Error()})
		return
	}
	command, err := l.options.Spawner.Join(context.Background(), asked.Sandbox, joining)
	for _, file := range files {
		file.Close() // or the end of its input or output would never be seen
	}
	files = nil
	if err != nil {
		answer := reply{Refused: err.Error()}
		if failed, is := errors.AsType[*spawn.NotExecutedError](err); is {
			answer = reply{NotExecuted: &notExecuted{Cause: err.Error(), Missing: failed.Missing}}
		}
		_ = c.Send(answer)
		return
	}
	defer command.GiveBack()
	var master []*os.File
	if file := command.Terminal(); file != nil {
		master = []*os.File{file}
	}
	if c.Send(reply{Started: true}, master...) != nil {
		command.Kill()
		return
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = c.ReceiveBefore(time.Time{})
		for {
			var s signal
			if c.Receive(&s) != nil || s.Signal < 1 || s.Signal > maxSignal {
				return
			}
			command.Signal(unix.Signal(s.Signal), s.Group)
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
	denials, more := command.Denials()
	for i, denial := range denials {
		if i == mostDenied {
			more += len(denials) - i
			break
		}
		end.Denied = append(end.Denied, Denied{Line: presentation.DenialLine(denial), Number: denial.Number})
	}
	end.More = more
	if c.Send(reply{Ended: end}) != nil {
		return
	}
	timer := time.NewTimer(lastRead)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	}
}

// check refuses what is no command. A terminal of the user's does not get inside:
// whatever runs in the sandbox could keep it, and read what is typed later.
func (j *join) check(files []*os.File) (spawn.Joining, error) {
	joining := spawn.Joining{Argv: texts(j.Argv), Env: texts(j.Env), Dir: string(j.Dir)}
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
