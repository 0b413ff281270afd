//go:build unix

package platform_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// modes are the roles of the test binary besides running tests, by its first
// argument.
var modes = map[string]func(args []string) int{}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		if run, ok := modes[os.Args[1]]; ok {
			os.Exit(run(os.Args[2:]))
		}
	}
	platformtest.Main(m, platformtest.ConfineFake)
}

// scripted is a backend whose stage is a shell script. It talks to the sidecar
// on descriptor 3.
type scripted struct {
	platformtest.Fake
	script string
}

func (*scripted) Likely() platform.Confinement { return platform.Confinement{} }

func (s *scripted) Stage() (string, []string) { return "/bin/sh", []string{"sh", "-c", s.script} }

// missingStage is a backend without a stage.
type missingStage struct{ platformtest.Fake }

func (*missingStage) Likely() platform.Confinement { return platform.Confinement{} }

func (*missingStage) Stage() (string, []string) { return "/no/such/stage", []string{"stage"} }

// launch runs the handshake with an order for /bin/true. It returns the stage's
// pid, 0 if it was not started.
func launch(ctx context.Context, t *testing.T, backend platform.Backend) (pid int, err error) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	launched, err := platform.Launch(ctx, backend, platform.Target{
		Order:   platform.Order{Program: "true", Argv: []string{"true"}, Env: []string{}, Dir: "/"},
		Streams: [3]*os.File{null, null, null},
		Attr:    &syscall.SysProcAttr{Setsid: true},
		Start: func(path string, argv []string, attr *os.ProcAttr) (lifecycle.Process, error) {
			process, err := lifecycle.Start(path, argv, attr)
			if err == nil {
				pid = process.PID()
			}
			return process, err
		},
	})
	if err == nil {
		if _, err := launched.Process.Wait(false); err != nil {
			t.Error(err)
		}
	}
	return pid, err
}

// mustBeReaped fails the test if a child with this pid is left, alive or as a
// zombie.
func mustBeReaped(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Error("no stage was started")
		return
	}
	if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("the stage %d was not reaped: %v", pid, err)
	}
}

// withTimeout returns a context that ends long after any passing test.
func withTimeout(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := deadline.Context(context.Background(), timeout)
	t.Cleanup(cancel)
	return ctx
}
