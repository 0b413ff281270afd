//go:build unix

package spawn

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// No program runs that nothing would end if the sidecar died.
func TestStart_RunsNothingWithoutAWatchdog(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]policy.Policy{"sandboxed": {Restricted: true}, "unsandboxed": {}} {
		for _, unguarded := range []error{nil, errors.New("no more processes")} {
			d := &eventLog{tracking: subreaper, unguarded: unguarded}
			fake := &platformtest.Fake{}
			if request.Restricted {
				fake.Passed, fake.Supervise = []handshake.Passed{platformtest.PassedListener}, d.supervise
			}
			s := newFixture(t, fake)
			s.Tracker = d
			line := s.line("touch ran")
			line.Policy = request
			running, err := s.Foreground(t.Context(), line)
			if err == nil {
				if _, err := running.Wait(); err != nil {
					t.Error(err)
				}
			}
			if !errors.Is(err, unguarded) {
				t.Errorf("%s, guard fails with %v: %v", name, unguarded, err)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "ran")); (err == nil) != (unguarded == nil) {
				t.Errorf("%s, guard fails with %v: the program's file: %v", name, unguarded, err)
			}
		}
	}
}

// likely is a backend whose guess has another key than the confinement.
type likely struct{ platformtest.Fake }

func (*likely) Likely() platform.Confinement { return platform.Confinement{StandbyKey: "another"} }

// A stage that was started in advance runs the program if it fits. In any case
// it has ended afterwards.
func TestPrepared(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		backend platform.Backend
		fits    bool
	}{"it fits": {&platformtest.Fake{}, true}, "it does not fit": {&likely{}, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, test.backend)
			prepared := s.Prepare()
			stage, err := prepared.stage.started()
			if err != nil {
				t.Fatal(err)
			}
			request := s.line("exit 3")
			request.Policy = policy.Policy{Restricted: true}
			running, err := prepared.Start(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if used := running.running.process.PID() == stage.PID(); used != test.fits {
				t.Errorf("the stage became the program: %t", used)
			}
			if exit, err := running.Wait(); err != nil || exit.Code != 3 {
				t.Errorf("%+v, %v", exit, err)
			}
			if err := unix.Kill(stage.PID(), 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("the stage is still there: %v", err)
			}
		})
	}
}

// A stage that gets no request ends, and its group is gone.
func TestPrepared_Drop(t *testing.T) {
	t.Parallel()
	d := &eventLog{tracking: subreaper}
	s := newFixture(t, &platformtest.Fake{})
	s.Tracker = d
	prepared := s.Prepare()
	stage, err := prepared.stage.started()
	if err != nil {
		t.Fatal(err)
	}
	prepared.Drop()
	if err := unix.Kill(stage.PID(), 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the stage is still there: %v", err)
	}
	if got := d.read(); len(got) == 0 || got[len(got)-1] != "close group" {
		t.Errorf("%q", got)
	}
	if _, err := s.Prepare().Start(t.Context(), Request{}); err == nil {
		t.Error("a request without a program was started")
	}
}

// A signal that comes before there is a request ends the caller, and with it the
// stage: while the settings are read nothing of the user's runs that could get
// the signal, and a program must not be started after an interrupt.
func TestPrepared_SignalsEndTheCaller(t *testing.T) {
	t.Parallel()
	const inChild = "SPAWN_TEST_PREPARES"
	if name := os.Getenv(inChild); name != "" {
		s := newFixture(t, &platformtest.Fake{})
		stage, err := s.Prepare().stage.started()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("stage %d\n", stage.PID())
		time.Sleep(time.Minute)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestPrepared_SignalsEndTheCaller$")
	child.Env = append(os.Environ(), inChild+"=1", "TMPDIR="+t.TempDir())
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(20*time.Second, func() { _ = child.Process.Kill() })
	var pid int
	if _, err := fmt.Fscanf(output, "stage %d\n", &pid); err != nil {
		t.Error(err)
	}
	if err := child.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, output) // until the stage has ended, too
	_ = child.Wait()
	stop.Stop()
	if status := child.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGTERM {
		t.Errorf("%v", child.ProcessState)
	}
}
