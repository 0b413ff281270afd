//go:build unix

package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

// Retire has the process end a shared sandbox, which it keeps for links, once
// nothing runs in it. It does not wait for that.
func (s *Supervisor) Retire(sandbox string) error {
	end := time.Now().Add(takeTimeout)
	raw, _, err := usersocket.Dial(s.stateDir, s.socket, name, end)
	if err != nil {
		return fmt.Errorf("retire sandbox: %w", reason(err))
	}
	c := usersocket.NewConn(raw, maxMessage)
	defer c.Close()
	err = errors.Join(c.ReceiveBefore(end), c.Send(request{Version: version, Retire: &retire{Sandbox: sandbox}}))
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
