//go:build unix

package handshake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/reserve"
)

// ConfineSelf confines the calling thread, proves it, and returns what is
// enforced. On an error the stage executes nothing.
type ConfineSelf func(*Order) (Confined, error)

// Confined is the result of confining the stage.
type Confined struct {
	Enforcement Enforcement
	// Closed are the descriptors of Order.Inherited that the program must not
	// get.
	Closed []Closed
	// Passed are the descriptors for the sidecar. They are closed once they are
	// sent.
	Passed []PassedFile
	// Confirm, if not nil, proves what holds only once the sidecar has taken
	// the descriptors. If it fails, nothing is executed, whatever was reported
	// before.
	Confirm func() error
}

// PassedFile is a descriptor of the stage for the sidecar.
type PassedFile struct {
	Kind Passed
	FD   int
}

// RunStage is the stage's whole life: it takes its order from StageFD, confines
// itself and executes the target. It returns the exit status if nothing was
// executed. Call it on the main goroutine before anything else is started.
// warmUp, if not nil, is called while there is no order yet, to prepare what
// confine needs time for; it must change nothing.
func RunStage(confine ConfineSelf, warmUp func()) int {
	// Landlock, capabilities and no_new_privs belong to a thread, and execve(2)
	// carries over those of the thread that calls it.
	runtime.LockOSThread()
	if err := CloseOnExec(StageFD); err != nil {
		return 1 // without the handshake nothing can be reported
	}
	handshake := os.NewFile(StageFD, "handshake")
	// A garbage-collected file is closed, and the end of the stream would tell
	// the sidecar that the target was executed.
	defer runtime.KeepAlive(handshake)
	if noOrderYet(StageFD) {
		warmUpJSON()
		if warmUp != nil {
			warmUp()
		}
	}
	order, err := ReadOrder(handshake)
	if err != nil {
		return 1 // the sidecar is gone
	}
	if failure := runOrder(&order, confine); failure != nil {
		_ = send(nil, Report{Failure: failure})
		return 1
	}
	return 0
}

// noOrderYet reports whether the sidecar has written nothing yet.
func noOrderYet(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n == 0 && err == nil
}

// warmUpJSON encodes and decodes messages like those to come. That fills
// encoding/json's caches and loads the code before an order is waiting.
func warmUpJSON() {
	_, _ = ReadOrder(strings.NewReader(`{"program":"","argv":[""],"env":[""],"dir":"","terminal":{},"orders":1}-`))
	_, _ = json.Marshal(Report{
		Enforcement: &Enforcement{
			Protections: map[string]Protection{"": {}},
			Missing:     []Missing{{}},
		}, Passed: []Passed{PassedTerminal}, Failure: &Failure{},
	})
}

// runOrder returns nil only for a probe; after an execution it does not return.
func runOrder(order *Order, confine ConfineSelf) *Failure {
	if err := reserve.Seal(); err != nil {
		return NewFailure(StepProgram, order.Program, err)
	}
	if order.Dir != "" {
		if err := os.Chdir(order.Dir); err != nil {
			return NewFailure(StepDirectory, order.Dir, err)
		}
	}
	var confined Confined
	if order.Orders != nil {
		var err error
		if confined, err = confine(order); err != nil {
			return &Failure{Step: StepConfine, Cause: err.Error()}
		}
		if lacking := confined.Enforcement.Lacking(); order.Full && len(lacking) > 0 {
			return &Failure{Step: StepConfine, Cause: "not enforced: " + strings.Join(lacking, ", ")}
		}
	}
	if order.Program == "" {
		if err := sendReport(confined); err != nil {
			return NewFailure(StepConfine, "", err)
		}
		return confirm(confined)
	}
	if err := resetSignals(order.Ignored); err != nil {
		return NewFailure(StepProgram, order.Program, err)
	}
	if err := sendReport(confined); err != nil {
		return NewFailure(StepProgram, order.Program, err)
	}
	if failed := confirm(confined); failed != nil {
		return failed
	}
	// Only now: if opens are supervised, the sidecar could not have answered
	// before.
	program, err := FindProgram(order.Program, order.Env, 0)
	if err != nil {
		return NewFailure(StepProgram, order.Program, err)
	}
	restore, err := keep(order.Inherited, confined.Closed)
	if err != nil {
		return NewFailure(StepProgram, program, err)
	}
	// syscall.Exec restores the soft limit of open files, which the Go runtime
	// has raised.
	err = syscall.Exec(program, order.Argv, order.Env)
	restore() // the failure is to be sent
	return NewFailure(StepProgram, program, err)
}

// keep has the program get the inherited descriptors, but for the closed ones.
// If the handshake's own number is one of them, the handshake moves until
// restore is called.
func keep(inherited []Inherited, closed []Closed) (restore func(), err error) {
	restore = func() {}
	for _, descriptor := range inherited {
		if slices.ContainsFunc(closed, func(c Closed) bool { return c.Number == descriptor.Number }) {
			continue
		}
		if descriptor.Number == StageFD {
			moved, err := unix.FcntlInt(StageFD, unix.F_DUPFD_CLOEXEC, OwnFDs)
			if err != nil {
				return restore, fmt.Errorf("move handshake: %w", err)
			}
			restore = func() {
				_ = unix.Dup2(moved, StageFD)
				unix.CloseOnExec(StageFD)
			}
		}
		if descriptor.At != descriptor.Number {
			err = unix.Dup2(descriptor.At, descriptor.Number) // clears close-on-exec
		} else {
			_, err = unix.FcntlInt(uintptr(descriptor.At), unix.F_SETFD, 0)
		}
		if err != nil {
			restore()
			return func() {}, fmt.Errorf("keep descriptor %d: %w", descriptor.Number, err)
		}
	}
	return restore, nil
}

func confirm(confined Confined) *Failure {
	if confined.Confirm == nil {
		return nil
	}
	if err := confined.Confirm(); err != nil {
		return NewFailure(StepConfine, "", err)
	}
	return nil
}

// sendReport sends the descriptors and the enforcement, and waits until the
// sidecar has taken the descriptors.
func sendReport(confined Confined) error {
	enforcement := Report{Enforcement: &confined.Enforcement, Closed: confined.Closed}
	if len(confined.Passed) == 0 {
		return send(nil, enforcement)
	}
	var handover Report
	var fds []int
	for _, file := range confined.Passed {
		handover.Passed = append(handover.Passed, file.Kind)
		fds = append(fds, file.FD)
	}
	if err := send(fds, handover, enforcement); err != nil {
		return err
	}
	// If the listener stayed open here too, the session would wait for a
	// sidecar that has died.
	for _, fd := range fds {
		unix.Close(fd)
	}
	var answer [1]byte
	for {
		n, err := unix.Read(StageFD, answer[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for the sidecar: %w", err)
		case n == 0 || answer[0] != GoAhead:
			return errors.New("wait for the sidecar: it is gone")
		default:
			return nil
		}
	}
}

// send writes descriptors with reports.
func send(fds []int, reports ...Report) error {
	var message []byte
	for _, report := range reports {
		text, err := json.Marshal(report)
		if err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		message = append(message, text...)
	}
	var rights []byte
	if fds != nil {
		rights = unix.UnixRights(fds...)
	}
	for len(message) > 0 {
		n, err := unix.SendmsgN(StageFD, message, rights, nil, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		message, rights = message[n:], nil
	}
	return nil
}

// NewFailure says which step failed on what, and why.
func NewFailure(step Step, path string, err error) *Failure {
	f := &Failure{
		Step: step, Path: path, Cause: err.Error(), Denied: errors.Is(err, fs.ErrPermission),
		Missing: errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound),
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		f.Cause = pathErr.Err.Error()
	}
	var execErr *exec.Error
	if errors.As(err, &execErr) {
		f.Cause = execErr.Err.Error()
	}
	return f
}

// FindProgram finds a program as execvp(3) does, in the PATH that the program
// itself will see. A path is returned as it is; a name that is nowhere is an
// *exec.Error. Whether the sandbox lets it be executed is not checked here:
// execve(2) fails if not. Files are opened with the given flags: O_NONBLOCK for
// who must not wait for the holder of a lease, 0 for a process that can be
// killed meanwhile.
func FindProgram(program string, env []string, flags int) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, candidate := range Candidates(program, env) {
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 &&
			openable(candidate, flags) {
			return candidate, nil
		}
	}
	return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
}

// Candidates are the paths of which FindProgram takes the first that is a
// program.
func Candidates(program string, env []string) (list []string) {
	if strings.Contains(program, "/") {
		return []string{program}
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		if strings.HasPrefix(dir, "/") { // an empty or relative one would be below the working directory
			list = append(list, dir+"/"+program)
		}
	}
	return list
}

// openable reports whether the sandbox lets us open a program. A hidden file in
// an ungranted directory early in PATH must not shadow the system's own
// program. access(2) cannot tell, because Landlock does not hook it.
func openable(path string, flags int) bool {
	file, err := os.OpenFile(path, os.O_RDONLY|flags, 0)
	if err != nil {
		// A program may be executable without being readable. Then only
		// execve(2) can tell.
		return !errors.Is(err, fs.ErrPermission) || unix.Access(path, unix.R_OK) != nil
	}
	file.Close()
	return true
}
