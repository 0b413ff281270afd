//go:build unix

package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// stageTimeout bounds the time from an order to the target's execution. A stage
// needs milliseconds. The timeout matters if a granted path is on a file server
// that does not answer.
const stageTimeout = 30 * time.Second

// stageEnv is the stage's whole environment, not the target's. GOGC=off: the
// stage ends before a collection would pay.
var stageEnv = append(slices.Clone(lifecycle.SmallRuntime), "GOGC=off")

// Target is a program to start.
type Target struct {
	// Order is for the stage. Its Orders are filled in from Confinement.
	Order Order
	// Confinement is the backend's.
	Confinement Confinement
	// Streams become the standard streams.
	Streams [3]*os.File
	// Attr are the attributes of the stage's process. Confinement may change
	// them.
	Attr *syscall.SysProcAttr
	// Start starts the stage in its group.
	Start Start
	// Settled, if not nil, is called before the program may run, as late as
	// possible. If it fails, the program is not executed.
	Settled func() error
}

// Start starts a process, as lifecycle.Group's does.
type Start func(path string, argv []string, attr *os.ProcAttr) (lifecycle.Process, error)

// Launched is a target that was executed.
type Launched struct {
	Process lifecycle.Process
	// Enforcement is what the stage reported.
	Enforcement Enforcement
	// Terminal is the master of the terminal that the stage has opened; nil if
	// it opens none.
	Terminal *os.File
	// HeldFiles must be closed once the session's processes are gone.
	HeldFiles []*os.File
	// Supervision must be closed once the session's processes are gone; nil if
	// there is none.
	Supervision Supervision
	// Localhost must be closed once the session's processes are gone; nil if the
	// session has no localhost of its own.
	Localhost Localhost
}

// Launch starts the stage, sends the order, and returns once the target was
// executed. On an error the process is dead. The error is a *Failure if the
// stage could not carry out the order, and another one if the stage did not
// answer properly. If ctx ends just when the target was executed, the target
// may have started other processes; they are in the group of Target.Start.
func Launch(ctx context.Context, backend Backend, target Target) (Launched, error) {
	standby, err := StartStage(backend, target)
	if err != nil {
		return Launched{}, err
	}
	return standby.Launch(ctx, target)
}

// drop releases what a stage has passed that executed nothing.
func (l *Launched) drop() {
	if l.Supervision != nil {
		_ = l.Supervision.Close()
	}
	if l.Localhost != nil {
		_ = l.Localhost.Close()
	}
	if l.Terminal != nil {
		l.Terminal.Close()
	}
	for _, file := range l.HeldFiles {
		file.Close()
	}
}

// ErrStageDied means that a stage has ended before it executed anything.
var ErrStageDied = errors.New("the helper process that confines the session ended before it started the program")

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// handshake is the sidecar's side of the protocol in package handshake. It fills in
// l as it goes, also if it fails later. first bounds the wait for the first
// answer.
func (l *Launched) handshake(ctx context.Context, conn *conn, target Target, first time.Duration) error {
	deadline := time.Now().Add(stageTimeout)
	if given, ok := ctx.Deadline(); ok && given.Before(deadline) {
		deadline = given
	}
	answered := time.Now().Add(first)
	if answered.After(deadline) {
		answered = deadline
	}
	if err := conn.SetDeadline(answered); err != nil {
		return fmt.Errorf("bound handshake: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	order := target.Order
	order.Orders = target.Confinement.Orders
	message, err := order.Encode()
	if err != nil {
		return fmt.Errorf("write order: %w", err)
	}
	if !target.waits() {
		if err := target.settle(); err != nil {
			return err
		}
	}
	// Nothing may follow the order. A byte that the stage leaves unread would
	// turn the end of its stream, which means success, into a connection reset.
	if _, err := conn.Write(message); err != nil {
		return handshakeError(err)
	}
	prepared := make(chan any, 1)
	if prepare, pid := target.Confinement.Prepare, l.Process.PID(); prepare != nil {
		go func() { prepared <- prepare(pid) }()
	} else {
		prepared <- nil
	}
	heard, received, confirmed := false, false, false
	reports := json.NewDecoder(conn)
	for {
		var report handshake.Report
		err := reports.Decode(&report)
		if !heard {
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil && answered.Before(deadline) &&
				conn.refuse():
				return ErrStageSilent
			case err == nil:
				heard = true
				if err := conn.SetDeadline(deadline); err != nil {
					return fmt.Errorf("bound handshake: %w", err)
				}
				if ctx.Err() != nil {
					_ = conn.SetDeadline(time.Unix(1, 0))
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF) && confirmed:
			if proving, is := l.Supervision.(Proving); is {
				proving.Proven(&l.Enforcement)
			}
			return nil
		case err != nil:
			return handshakeError(err)
		case report.Failure != nil:
			return report.Failure
		}
		if !received && (report.Passed != nil || report.Enforcement != nil) {
			received = true
			if err := l.receive(conn, report.Passed, <-prepared, target); err != nil {
				return err
			}
		}
		if report.Enforcement != nil && !confirmed {
			confirmed = true
			l.Enforcement = *report.Enforcement
		}
	}
}

// receive takes the descriptors that the stage passes, and lets it continue.
func (l *Launched) receive(conn *conn, passed []handshake.Passed, prepared any, target Target) error {
	if len(passed) != len(conn.passed) {
		return fmt.Errorf("talk to stage: descriptors: %d arrived, but %d were announced",
			len(conn.passed), len(passed))
	}
	handover := Handover{PID: l.Process.PID(), Prepared: prepared}
	var local LocalSockets
	refuse := func(why string) error {
		handover.Close()
		local.Close()
		return errors.New("talk to stage: it passed " + why)
	}
	for i, kind := range passed {
		var to **os.File
		switch {
		case kind == handshake.PassedTerminal && target.Order.Terminal != nil:
			to = &l.Terminal
		case kind == handshake.PassedHeld:
			l.HeldFiles = append(l.HeldFiles, nil)
			to = &l.HeldFiles[len(l.HeldFiles)-1]
		case kind == handshake.PassedListener && target.Confinement.Supervise != nil:
			to = &handover.Listener
		case kind == handshake.PassedDiag && target.Confinement.Supervise != nil:
			to = &handover.Diag
		case kind == handshake.PassedResolverUDP && target.Confinement.Supervise != nil:
			to = &handover.Hosts.ResolverUDP
		case kind == handshake.PassedResolverTCP && target.Confinement.Supervise != nil:
			to = &handover.Hosts.ResolverTCP
		case kind == handshake.PassedRelay && target.Confinement.Supervise != nil:
			to = &handover.Hosts.Relay
		case kind == handshake.PassedLocal && target.Confinement.Localhost != nil && local[0] == nil:
			to = &local[0]
		case kind == handshake.PassedLocal && target.Confinement.Localhost != nil:
			to = &local[1]
		}
		if to == nil || *to != nil {
			return refuse(fmt.Sprintf("a %s that was not asked for", kind))
		}
		*to, conn.passed[i] = conn.passed[i], nil
	}
	switch {
	case target.Order.Terminal != nil && l.Terminal == nil:
		return refuse("no terminal")
	case target.Confinement.Supervise != nil && handover.Listener == nil:
		return refuse("nothing to supervise")
	case target.Confinement.Localhost != nil && local[1] == nil:
		return refuse("no sockets of the session's localhost")
	case len(passed) == 0:
		return nil
	}
	if target.Confinement.Localhost != nil {
		l.Localhost = target.Confinement.Localhost(local)
	}
	if handover.Listener != nil {
		var err error
		if l.Supervision, err = target.Confinement.Supervise(handover); err != nil {
			return fmt.Errorf("supervise session: %w", err)
		}
	}
	if err := target.settle(); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{handshake.GoAhead}); err != nil {
		return handshakeError(err)
	}
	return nil
}

// waits reports whether the stage passes something, and then waits until the
// sidecar has taken it; see receive.
func (t *Target) waits() bool {
	return t.Order.Terminal != nil || t.Confinement.Supervise != nil || t.Confinement.Localhost != nil
}

func (t *Target) settle() error {
	if t.Settled == nil {
		return nil
	}
	return t.Settled()
}

func handshakeError(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET),
		errors.Is(err, io.ErrUnexpectedEOF):
		return ErrStageDied
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("wait for stage: %w", err)
	}
	return fmt.Errorf("talk to stage: %w", err)
}

// ProbeStage runs a stage that confines itself, with a terminal if it opens one
// itself, reports and exits.
func ProbeStage(ctx context.Context, backend Backend, confinement Confinement) (Enforcement, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return Enforcement{}, err
	}
	defer null.Close()
	var order Order
	if confinement.OwnTerminal {
		order.Terminal = &Terminal{Cols: 80, Rows: 24}
	}
	launched, err := Launch(ctx, backend, Target{
		Order: order, Confinement: confinement, Streams: [3]*os.File{
			null, null,
			null,
		}, Attr: &syscall.SysProcAttr{Setsid: true}, Start: lifecycle.Start,
	})
	if err != nil {
		return Enforcement{}, err
	}
	_, err = launched.Process.Wait(false)
	launched.drop()
	return launched.Enforcement, err
}
