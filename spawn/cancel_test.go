//go:build unix

package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

func TestStart_CancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	hold := platformtest.NewHold(t)
	s := newFixture(t, &platformtest.Fake{Hold: hold})
	ctx, cancel := context.WithCancel(t.Context())
	request := s.line("touch ran")
	request.Policy = policy.Policy{Restricted: true, Network: policy.Network{Allowed: true}}
	failed := make(chan error, 1)
	go func() {
		_, err := s.Start(ctx, request)
		failed <- err
	}()
	hold.Arrived(t)
	cancel()
	if err := <-failed; err == nil {
		t.Error("a cancelled start has succeeded")
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

// scripted is a backend whose stage is a shell script, with the handshake on
// descriptor 3.
type scripted struct {
	platformtest.Fake
	script string
}

func (s *scripted) Stage() (string, []string) { return "/bin/sh", []string{"sh", "-c", s.script} }

// A start can be cancelled after the program was executed and has started
// others, but before the end of the handshake was read. The stage plays such a
// program.
func TestStart_CancelledKillsWhatTheProgramStarted(t *testing.T) {
	t.Parallel()
	backend := &scripted{}
	s := newFixture(t, backend)
	file := filepath.Join(s.dir, "pid")
	backend.script = fmt.Sprintf(`trap '' HUP; sleep 300 3<&- & echo $! >%s.new; mv %[1]s.new %[1]s; wait`, file)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	request := s.line("true")
	request.Policy = policy.Policy{Restricted: true, Network: policy.Network{Allowed: true}} // which needs a stage
	go func() {
		_, err := s.Start(ctx, request)
		failed <- err
	}()
	pid := 0
	deadline.Until(timeout, func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid != 0
	})
	cancel()
	if err := <-failed; err == nil {
		t.Error("a cancelled start has succeeded")
	}
	// A dead process may still wait for its new parent.
	gone := func() bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
	if pid == 0 || !deadline.Until(timeout, gone) {
		t.Errorf("process %d is left", pid)
		if pid != 0 { // which would be this test's own group
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
