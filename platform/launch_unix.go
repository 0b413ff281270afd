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
	// Inherited are descriptors above 2 that the program gets at the same
	// numbers, unless the stage closes them: by Fd, in rising order.
	Inherited []*os.File
	// Attr are the attributes of the stage's process. Confinement may change
	// them.
	Attr *syscall.SysProcAttr
	// Start starts the stage in its group.
	Start Start
	// Settled, if not nil, is called before the program may run, as late as
	// possible. If it fails, the program is not executed.
	Settled func() error
}

// files are what the stage is started with, by number. Each inherited descriptor
// is where the program will look for it: later the stage's runtime may have
// taken the number. Two numbers are the stage's own; both hold the handshake, so
// that the runtime does not take them.
func (t *Target) files(handshakeEnd *os.File) []*os.File {
	files := []*os.File{t.Streams[0], t.Streams[1], t.Streams[2], handshakeEnd}
	for i, at := range t.inherited() {
		for len(files) <= at.At {
			files = append(files, nil)
		}
		files[at.At], files[handshake.OwnFDs-1] = t.Inherited[i], handshakeEnd
	}
	return files
}

// inherited says where the stage finds the inherited descriptors.
func (t *Target) inherited() (list []handshake.Inherited) {
	next := handshake.OwnFDs
	for _, file := range t.Inherited {
		next = max(next, int(file.Fd())+1)
	}
	for _, file := range t.Inherited {
		number := int(file.Fd())
		at := number
		if number < handshake.OwnFDs {
			at, next = next, next+1
		}
		list = append(list, handshake.Inherited{Number: number, At: at})
	}
	return list
}

// Start starts a process, as lifecycle.Group's does.
type Start func(path string, argv []string, attr *os.ProcAttr) (lifecycle.Process, error)

// Launched is a target that was executed.
type Launched struct {
	Process lifecycle.Process
	// Enforcement is what the stage reported.
	Enforcement Enforcement
	// Closed are the inherited descriptors that the program does not have.
	Closed []Closed
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

// ErrNeedsStage means that only a stage can start a target as it must be
// started. Nothing was started.
var ErrNeedsStage = errors.New("the session needs a stage")

// ErrNotExecuted means that a target was not executed directly. A stage knows
// why.
var ErrNotExecuted = errors.New("the program was not executed")

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
	order.Orders, order.Inherited = target.Confinement.Orders, target.inherited()
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
			l.Enforcement, l.Closed = *report.Enforcement, report.Closed
		}
	}
}

// receive takes the descriptors that the stage passes, and lets it continue.
func (l *Launched) receive(conn *conn, passed []handshake.Passed, prepared any, target Target) error {
	if len(passed) != len(conn.passed) {
		return fmt.Errorf("talk to stage: descriptors: %d arrived, but %d were announced",
			len(conn.passed), len(passed))
	}
	files, err := l.take(conn, passed, &target)
	handover := Handover{PID: l.Process.PID(), Prepared: prepared, Files: files}
	switch {
	case err != nil:
		handover.Close()
		return err
	case len(passed) == 0:
		return nil
	}
	if target.Confinement.Localhost != nil {
		l.Localhost = target.Confinement.Localhost(handover)
	}
	if target.Confinement.Supervise == nil {
		handover.Close()
	} else if l.Supervision, err = target.Confinement.Supervise(handover); err != nil {
		return fmt.Errorf("supervise session: %w", err)
	}
	if err := target.settle(); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{handshake.GoAhead}); err != nil {
		return handshakeError(err)
	}
	return nil
}

// take sorts the passed descriptors by their kind. It returns those of
// Confinement.Descriptors, also with an error. Nothing else may come, and nothing
// that is needed may be missing.
func (l *Launched) take(
	conn *conn, passed []handshake.Passed, target *Target,
) (map[handshake.Passed][]*os.File, error) {
	files := map[handshake.Passed][]*os.File{}
	room := map[handshake.Passed]int{}
	for _, descriptor := range target.Confinement.Descriptors {
		room[descriptor.Kind]++
	}
	for i, kind := range passed {
		switch {
		case kind == handshake.PassedHeld:
			l.HeldFiles = append(l.HeldFiles, conn.passed[i])
		case kind == handshake.PassedTerminal && target.Order.Terminal != nil && l.Terminal == nil:
			l.Terminal = conn.passed[i]
		case len(files[kind]) < room[kind]:
			files[kind] = append(files[kind], conn.passed[i])
		default:
			return files, fmt.Errorf("talk to stage: it passed a %s that was not asked for", kind)
		}
		conn.passed[i] = nil
	}
	if target.Order.Terminal != nil && l.Terminal == nil {
		return files, errors.New("talk to stage: it passed no terminal")
	}
	required := map[handshake.Passed]int{}
	for _, descriptor := range target.Confinement.Descriptors {
		if !descriptor.Required {
			continue
		}
		if required[descriptor.Kind]++; len(files[descriptor.Kind]) < required[descriptor.Kind] {
			return files, fmt.Errorf("talk to stage: it passed no %s", descriptor.Kind)
		}
	}
	if len(passed) == 0 && target.waits() {
		return files, errors.New("talk to stage: it passed nothing, and did not wait")
	}
	return files, nil
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
