package platform_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

const launcherMode = "launcher"

func init() { modes[launcherMode] = launcher }

// launcher runs a command through the stage, unconfined, from a thread that
// blocks a signal, and prints the command's output.
func launcher(argv []string) int {
	runtime.LockOSThread()
	var blocked unix.Sigset_t
	blocked.Val[0] = 1 << (unix.SIGUSR1 - 1)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &blocked, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	order := platformtest.Job{Order: platform.Order{Program: argv[0], Argv: argv, Env: []string{}, Dir: "/"}}
	output, _, err := platformtest.Output(&platformtest.Fake{}, order)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Stdout.Write(output)
	return 0
}

// odd runs a command through a launcher that was itself started with ignored
// signals and a low limit of open files, as under nohup.
func odd(t *testing.T, argv ...string) string {
	t.Helper()
	command := exec.Command("/bin/sh", append([]string{
		"-c", `trap "" HUP INT TSTP PIPE; ulimit -Sn 512; exec "$0" "$@"`, platformtest.Self(t), launcherMode,
	}, argv...)...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(output)
}

func TestLaunch_ResetsEverySignal(t *testing.T) {
	t.Parallel()
	status := odd(t, "/bin/cat", "/proc/self/status")
	for _, set := range []string{"SigIgn", "SigBlk", "SigCgt"} {
		if !strings.Contains(status, set+":\t0000000000000000\n") {
			t.Errorf("%s is not empty:\n%s", set, status)
		}
	}
	// The control: without the stage the ignored signals would have been
	// inherited.
	output, err := exec.Command("/bin/sh", "-c", `trap "" HUP INT TSTP PIPE; exec cat /proc/self/status`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(output), "SigIgn:\t0000000000000000\n") {
		t.Errorf("this test's own way of ignoring signals does not work:\n%s", output)
	}
}

func TestLaunch_RestoresTheLimitOfOpenFiles(t *testing.T) {
	t.Parallel()
	if got := strings.TrimSpace(odd(t, "/bin/sh", "-c", "ulimit -Sn")); got != "512" {
		t.Errorf("the soft limit of open files is %s in the session, 512 outside", got)
	}
}
