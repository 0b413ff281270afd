//go:build unix

package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stageTimeout bounds the time from an order to the target's execution. It is far above what any machine needs (milliseconds) and
// ends the wait for a granted path on a file server that does not answer.
const stageTimeout = 30 * time.Second

// Launch starts the stage with the given standard streams and attributes, lets adopt put it into its group, gives it the order, and
// returns once the target was executed, with what the stage reported. On an error no process is left: a *Failure where the stage
// could not carry the order out, anything else where there was no stage to speak of.
func Launch(ctx context.Context, backend Backend, order Order, streams [3]*os.File, attr *syscall.SysProcAttr,
	adopt func(pid int) error,
) (*os.Process, Enforcement, error) {
	ours, theirs, err := socketpair()
	if err != nil {
		return nil, Enforcement{}, fmt.Errorf("make handshake socket: %w", err)
	}
	defer ours.Close()
	path, argv := backend.Stage()
	process, err := os.StartProcess(path, argv, &os.ProcAttr{
		Files: []*os.File{streams[0], streams[1], streams[2], theirs},
		Env:   []string{}, // nil would hand down the sidecar's own
		Sys:   attr,
	})
	theirs.Close() // or the end of the stream would never be seen
	if err != nil {
		return nil, Enforcement{}, fmt.Errorf("start stage: %w", err)
	}
	enforcement, err := shakeHands(ctx, ours, order, func() error { return adopt(process.Pid) })
	if err != nil {
		_ = process.Kill()
		state, waitErr := process.Wait()
		if errors.Is(err, errStageDied) && waitErr == nil {
			err = fmt.Errorf("%w: %s", err, state)
		}
		return nil, Enforcement{}, err
	}
	return process, enforcement, nil
}

var errStageDied = errors.New("stage ended before it executed anything")

// shakeHands is the sidecar's side of the protocol in handshake.go.
func shakeHands(ctx context.Context, conn *os.File, order Order, adopt func() error) (Enforcement, error) {
	deadline := time.Now().Add(stageTimeout)
	if given, ok := ctx.Deadline(); ok && given.Before(deadline) {
		deadline = given
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return Enforcement{}, fmt.Errorf("bound handshake: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := adopt(); err != nil {
		return Enforcement{}, err
	}
	message, err := json.Marshal(order)
	if err != nil {
		return Enforcement{}, fmt.Errorf("write order: %w", err)
	}
	// Nothing may follow the closing brace, not even the encoder's newline: a byte that the stage leaves unread would turn the end of
	// its stream, which says that it executed the target, into a reset.
	if _, err := conn.Write(message); err != nil {
		return Enforcement{}, handshakeError(err)
	}
	var confirmed *Enforcement
	reports := json.NewDecoder(conn)
	for {
		var report Report
		err := reports.Decode(&report)
		switch {
		case errors.Is(err, io.EOF) && confirmed != nil:
			return *confirmed, nil
		case err != nil:
			return Enforcement{}, handshakeError(err)
		case report.Failure != nil:
			return Enforcement{}, report.Failure
		case report.Enforcement != nil:
			confirmed = report.Enforcement
		}
	}
}

func handshakeError(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		return errStageDied
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("wait for stage: %w", err)
	}
	return fmt.Errorf("talk to stage: %w", err)
}

// ProbeStage lets a stage confine itself, report and exit.
func ProbeStage(ctx context.Context, backend Backend, confinement Confinement) (Enforcement, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return Enforcement{}, err
	}
	defer null.Close()
	process, enforcement, err := Launch(ctx, backend, Order{Confinement: confinement}, [3]*os.File{null, null, null},
		&syscall.SysProcAttr{Setsid: true}, func(int) error { return nil })
	if err != nil {
		return Enforcement{}, err
	}
	_, err = process.Wait()
	return enforcement, err
}

// socketpair returns both ends of a stream socket; the runtime's poller serves the first, so that deadlines work on it.
func socketpair() (ours, theirs *os.File, err error) {
	// Other goroutines start processes too; the lock keeps the descriptors out of them until they are close-on-exec.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "handshake"), os.NewFile(uintptr(fds[1]), "stage end of handshake"), nil
}
