package spawn

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestAuditHint_FollowsTheCause(t *testing.T) {
	t.Parallel()
	to := policy.Audit{Dir: "/var/trail"}
	for _, test := range []struct {
		cause error
		want  string
	}{
		{&os.PathError{Op: "write", Path: "/var/trail/x", Err: syscall.ENOSPC}, "free space on the disk"},
		{&os.PathError{Op: "mkdir", Path: "/var/trail", Err: syscall.EACCES}, `make "/var/trail" a directory`},
		{fmt.Errorf("%w: %w", audit.ErrJournal, syscall.ENOENT), `set "audit" to "file"`},
		{audit.ErrLost, `see "sandbox-sidecar policy"`},
	} {
		got := auditHint(fmt.Errorf("%w: %w", audit.ErrLost, test.cause), to)
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%v: %s", test.cause, got)
		}
	}
}

// The hint says what helps against the cause. Only of a program that is missing it
// says that it can be installed.
func TestLaunchError_HintsAtTheCause(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]string{
		syscall.EAGAIN: "limits.processes", syscall.ENOMEM: "limits.memory", syscall.ENOENT: "install it",
		syscall.E2BIG:   "shorter arguments",
		syscall.ENOEXEC: "name another program",
	} {
		failure := platform.NewFailure(platform.StepProgram, "/bin/sh", cause)
		failed, is := errors.AsType[*Error](launchError(Request{}, failure))
		if !is || !strings.Contains(failed.Hint, want) ||
			strings.Contains(failed.Hint, "install it") != errors.Is(cause, syscall.ENOENT) {
			t.Errorf("%v: %+v, want a hint with %q", cause, failed, want)
		}
	}
}
