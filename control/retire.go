//go:build unix

package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

// ErrNoLinks means that a process keeps no such sandbox for links.
var ErrNoLinks = errors.New("the process keeps no sandbox for links")

// ErrBusy means that something runs in a sandbox.
var ErrBusy = errors.New("something runs in it")

// Retire has the process end a shared sandbox, which it keeps for links, once
// nothing runs in it. It does not wait for that.
func (s *Supervisor) Retire(sandbox string) error { return s.retire(retire{Sandbox: sandbox}) }

// EndIdle has the process end a shared sandbox, which it keeps for links, if nothing
// runs in it; otherwise it returns an error. The error wraps ErrAbsent if nothing
// listens there any more.
func (s *Supervisor) EndIdle(sandbox string) error {
	return s.retire(retire{Sandbox: sandbox, Idle: true})
}

func (s *Supervisor) retire(what retire) error {
	end := time.Now().Add(takeTimeout)
	raw, _, err := usersocket.Dial(s.stateDir, s.socket, name, end)
	if err != nil {
		return fmt.Errorf("retire sandbox: %w", &notStartedError{reason(err), absentBy(err)})
	}
	c := usersocket.NewConn(raw, maxMessage)
	defer c.Close()
	err = errors.Join(c.ReceiveBefore(end), c.Send(request{Version: version, Retire: &what}))
	var answer reply
	if err == nil {
		err = c.Receive(&answer)
	}
	switch {
	case err != nil:
		return fmt.Errorf("retire sandbox: %w", reason(err))
	case answer.Refused != "":
		return fmt.Errorf("retire sandbox: %s", answer.Refused)
	case !answer.Retired:
		return errors.New("retire sandbox: the process answers something else")
	}
	return nil
}
