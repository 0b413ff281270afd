package spawn

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// ErrUnavailable means that this machine cannot enforce the policy, and that
// the policy does not allow a start without a sandbox.
var ErrUnavailable = errors.New("sandbox unavailable")

// Error is a session that could not be started, in the parts that a user needs.
type Error struct {
	// Attempt is what was tried: "change directory".
	Attempt string
	// Path is what it was tried on; empty if there is no single path.
	Path string
	// Cause is why it failed. It wraps ErrUnavailable if the sandbox is the
	// reason.
	Cause error
	// Hint says what the user can do; empty if there is nothing.
	Hint string
	// Refused says that the sandbox may be what refuses to execute Path. Then
	// the settings know a better hint.
	Refused bool
}

// Error names the attempt, the path and the cause. The path is quoted.
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %v", e.Attempt, e.Cause)
	}
	return fmt.Sprintf("%s: %s: %v", e.Attempt, display.Quote(e.Path), e.Cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// NotExecutedError is why the program itself could not be executed.
type NotExecutedError struct {
	Cause string
	// Missing reports that there is no such program.
	Missing bool
	// Exhausted reports that there were too few processes or too little memory left
	// to start it.
	Exhausted bool
}

// Error is the cause.
func (e *NotExecutedError) Error() string { return e.Cause }

// unavailable decides what happens if the backend cannot confine a session. It
// returns nil to start the session without a sandbox, which the policy must
// allow, or the error that ends the start. A session that must not have the
// network is never started without a sandbox.
func unavailable(p *policy.Policy, err error) error {
	if p.OnUnavailable == policy.Warn && p.Network.Allowed {
		return nil
	}
	hint := `run "sandbox-sidecar doctor"; the setting on_unavailable: "warn" starts sessions without a sandbox`
	if !p.Network.Allowed {
		hint = "set allow_network to true; a session without network needs a sandbox"
	}
	if errors.Is(err, platform.ErrUnprotected) {
		hint = `run "sandbox-sidecar doctor"; without on_unavailable: "refuse" such changes are only reported`
	}
	return &Error{Attempt: "confine session", Cause: fmt.Errorf("%w: %w", ErrUnavailable, err), Hint: hint}
}

// notFull is the error of a session that must have every protection and lacks
// one.
func notFull(why string) error {
	return &Error{
		Attempt: "confine session", Cause: fmt.Errorf("%w: %s", ErrUnavailable, why),
		Hint: `run "sandbox-sidecar doctor" to see what this machine can enforce`,
	}
}

// HintAnother is what to do if a program cannot be executed.
const HintAnother = "name another program"

// HintTooLong is what to do if a program gets too much for execve(2).
const HintTooLong = "pass fewer or shorter arguments, or less in variables"

// launchError says why a stage executed nothing. It returns an error that wraps
// errRetry unchanged, because another attempt follows.
func launchError(request Request, err error) error {
	if errors.Is(err, errRetry) {
		return err
	}
	var failure *platform.Failure
	if !errors.As(err, &failure) {
		if errors.Is(err, syscall.EAGAIN) { // fork(2)
			return &Error{
				Attempt: "start session", Cause: fmt.Errorf("too many processes run: %w", err),
				Hint: "close a session that has started too many, or raise the limit (ulimit -u)",
			}
		}
		return &Error{Attempt: "start session", Cause: err}
	}
	switch failure.Step {
	case platform.StepConfine:
		return &Error{
			Attempt: "confine session", Cause: fmt.Errorf("%w: %s", ErrUnavailable, failure.Cause),
			Hint: `run "sandbox-sidecar doctor" to see what this machine can enforce`,
		}
	case platform.StepProgram:
		hint := HintAnother
		switch {
		case failure.Missing:
			hint = "install it, or " + HintAnother
		case failure.Cause == syscall.E2BIG.Error():
			hint = HintTooLong
		}
		refused := failure.Denied && request.Policy.Restricted
		if refused {
			hint = `"chmod +x" may help; or its interpreter is not in "additional_executable_paths"`
		}
		cause := &NotExecutedError{Cause: failure.Cause, Missing: failure.Missing}
		switch failure.Cause { // of fork(2), by the init of a group
		case syscall.EAGAIN.Error():
			cause.Exhausted, hint = true, `end processes in the sandbox, or raise "limits.processes"`
		case syscall.ENOMEM.Error():
			cause.Exhausted, hint = true, `end processes in the sandbox, or raise "limits.memory"`
		}
		return &Error{Attempt: "execute", Path: failure.Path, Cause: cause, Hint: hint, Refused: refused}
	default:
		return &Error{Attempt: string(failure.Step), Path: failure.Path, Cause: errors.New(failure.Cause)}
	}
}

// auditHint is what to do if the audit trail cannot be written.
func auditHint(err error, to policy.Audit) string {
	const otherwise = `see "sandbox-sidecar policy" for who requires the trail`
	failed := func(causes ...error) bool {
		return slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) })
	}
	switch {
	case failed(syscall.ENOSPC, syscall.EDQUOT):
		return "free space on the disk, or " + otherwise
	case failed(audit.ErrJournal):
		return `set "audit" to "file", or start systemd-journald; ` + otherwise
	case failed(syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOTDIR) && to.Dir != "":
		return fmt.Sprintf("make %s a directory that you can write, or %s", display.Quote(to.Dir), otherwise)
	}
	return otherwise
}
