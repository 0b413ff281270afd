//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// playReaper starts a sidecar and inherits every process below it that loses
// its parent (PR_SET_CHILD_SUBREAPER, prctl(2)). It ends with the sidecar's
// exit status when it has no child left. Then the kernel itself confirms that
// no process is left that the sidecar ever started, without a scan of /proc. It
// reaps at once, because the init of a container may be slow, and a fork storm
// would use up all process ids.
func playReaper(args []string) int {
	sidecar, err := startBelow(args)
	if err != nil {
		return complain(err)
	}
	status := -1
	for {
		var ended unix.WaitStatus
		pid, err := unix.Wait4(-1, &ended, 0, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return status
		case err == nil && pid == sidecar:
			status = ended.ExitStatus()
		}
	}
}

// startBelow starts a sidecar whose orphans this process inherits, and returns
// and prints its process id.
func startBelow(args []string) (int, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	sidecar, err := os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return 0, err
	}
	// The pipes belong to the sidecar and the test.
	os.Stdin.Close()
	os.Stdout.Close()
	fmt.Fprintf(os.Stderr, "sidecar=%d\n", sidecar.Pid)
	return sidecar.Pid, nil
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 2
}

// reaped starts a sidecar below a reaper, and returns its process id. wraps
// change how the sidecar starts.
func reaped(t testing.TB, w *harness.World, settings string, wraps ...func(*exec.Cmd)) (*harness.Editor, int) {
	t.Helper()
	e := harness.Start(t, w, harness.Options{Settings: settings, Wrap: func(command *exec.Cmd) {
		for _, wrap := range wraps {
			wrap(command)
		}
		inRole(t, command, "reaper")
	}})
	endDescendants(t, e.Client)
	return e, announcedSidecar(t, e.Log)
}

// endDescendants kills, after a failed test, a reaper that still waits, and the
// processes that it waits for.
func endDescendants(t testing.TB, c *client.Client) {
	t.Cleanup(func() {
		if _, waits := children(os.Getpid())[c.Process()]; !waits {
			return
		}
		orphans := children(c.Process())
		_ = unix.Kill(c.Process(), unix.SIGKILL)
		for pid := range orphans {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
}

// guaranteed reports whether a sidecar promises to find every process again.
func guaranteed(e *harness.Editor) bool {
	return e.Hello.Capabilities.Enforcement["process_tracking"].Status == protocol.Enforced
}

// away begins a command that leaves its terminal's session. If the sidecar
// finds no process that does so, as its replies say, the command stays.
func away(e *harness.Editor) string {
	if e.Hello.Capabilities.Enforcement["process_tracking"].Mechanism == "process_group" {
		return ""
	}
	return "setsid "
}

func announcedSidecar(t testing.TB, log *harness.Buffer) int {
	t.Helper()
	pid, err := strconv.Atoi(log.Await(t, `sidecar=(\d+)`)[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// mustLeaveNobody hangs up, if that was not done, and waits for the reaper's
// end.
func mustLeaveNobody(t testing.TB, c *client.Client) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.HangUp() // the status is the sidecar's
	}()
	select {
	case <-ended:
	case <-deadline.After(harness.Timeout):
		var left []string
		for pid, state := range children(c.Process()) {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			left = append(left, fmt.Sprintf("%d %s %q", pid, state, name))
		}
		_ = unix.Kill(c.Process(), unix.SIGKILL)
		t.Fatalf("processes of the sidecar are left: %q", left)
	}
}
