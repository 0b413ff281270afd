//go:build unix

package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// Standby is a stage that was started in advance and waits for its order. Call
// either Launch or Drop, from one goroutine.
type Standby struct {
	process lifecycle.Process
	conn    *conn
	ended   sync.Once
	early   bool // started before there was an order
}

// standbyTimeout bounds the wait for a standby's first answer: somebody may
// have stopped it meanwhile. A new stage answers in milliseconds.
const standbyTimeout = time.Second

// ErrStageSilent means that a standby has not answered in time. It will not
// execute anything.
var ErrStageSilent = errors.New("the standby process that confines the session does not answer")

// StartStandby starts a stage before its target is known, for any confinement
// with the same StandbyKey whose stage opens the terminal itself. The stage ends
// by itself when this process does.
func StartStandby(backend Backend, confinement Confinement, start Start) (*Standby, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	standby, err := StartStage(backend, Target{
		Confinement: confinement, Streams: [3]*os.File{
			null, null,
			null,
		}, Attr: &syscall.SysProcAttr{Setsid: true}, Start: start,
	})
	if err != nil {
		return nil, err
	}
	standby.early = true
	return standby, nil
}

// StartStage starts a stage for a target of which the streams, the attributes
// and the confinement's StandbyKey are known. The stage ends by itself when this
// process does.
func StartStage(backend Backend, target Target) (*Standby, error) {
	ours, theirs, err := socketpair()
	if err != nil {
		return nil, fmt.Errorf("make handshake socket: %w", err)
	}
	if target.Confinement.Attach != nil {
		target.Confinement.Attach(target.Attr)
	}
	path, argv := backend.Stage()
	process, err := target.Start(path, argv, &os.ProcAttr{
		Files: target.files(theirs),
		Env:   stageEnv,
		Sys:   target.Attr,
	})
	theirs.Close() // or the end of the stream would never be seen
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start stage: %w", err)
	}
	return &Standby{process: process, conn: ours}, nil
}

// PID is the stage's process id.
func (s *Standby) PID() int { return s.process.PID() }

// Launch sends the stage its order; see the function Launch. It ignores those
// fields of target that the stage was started with.
func (s *Standby) Launch(ctx context.Context, target Target) (Launched, error) {
	defer s.conn.Close()
	defer s.conn.drop()
	launched := Launched{Process: s.process}
	first := stageTimeout
	if s.early {
		first = standbyTimeout
	}
	err := launched.handshake(ctx, s.conn, target, first)
	if err == nil {
		s.ended.Do(func() {})
		return launched, nil
	}
	status, waitErr := s.end()
	launched.drop()
	if errors.Is(err, ErrStageDied) && waitErr == nil {
		err = fmt.Errorf("%w: %s", err, describe(status))
	}
	return Launched{}, err
}

// Drop kills a stage that is not needed. After Launch it does nothing.
func (s *Standby) Drop() {
	s.conn.Close()
	_, _ = s.end()
}

func (s *Standby) end() (status syscall.WaitStatus, err error) {
	s.ended.Do(func() {
		_ = s.process.Signal(unix.SIGKILL)
		type ended struct {
			status syscall.WaitStatus
			err    error
		}
		waited := make(chan ended, 1)
		go func() {
			status, err := s.process.Wait(false)
			waited <- ended{status, err}
		}()
		select {
		case end := <-waited:
			status, err = end.status, end.err
		case <-time.After(endTimeout):
			err = errors.New("the stage is blocked by a file system that does not answer") // its group is killed later
		}
	})
	return status, err
}

// endTimeout bounds the wait for a killed stage. Only an uninterruptible system
// call takes so long.
const endTimeout = time.Second
