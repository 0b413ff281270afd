//go:build linux

package syscalls

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Types a command into its own terminal and ends. The next reader of the
// terminal, for example a shell outside, would run the command.
func TestNothingTypesForTheUser(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	play := func(settings string) (*scene, string) {
		s := newScene(t, settings)
		shell := s.Shell()
		shell.Await(`[#$] `)
		shell.Type(harness.Quote(s.victim) + " 'answer=type,>typed\n'; echo done'' with it\n")
		shell.Await(`done with it`)
		shell.Type("exit\n")
		shell.Exit()
		return s, shell.Output()
	}
	s, output := play(sandboxed())
	if !strings.Contains(output, "answer EPERM") {
		t.Errorf("want EPERM:\n%s", output)
	}
	if _, err := os.Stat(s.World.Project + "/typed"); err == nil {
		harness.Breach(t, "THE ATTACK WORKS: a command was typed:\n%s", output)
	}
	legacy, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti") // Linux 6.2; before, every user may
	if err == nil && strings.TrimSpace(string(legacy)) == "0" && !capable(t, unix.CAP_SYS_ADMIN) {
		t.Log("no control: this machine lets nobody type")
		return
	}
	s, output = play(harness.Off())
	if _, err := os.Stat(s.World.Project + "/typed"); err != nil || !strings.Contains(output, "answer ok") {
		t.Errorf("control: without a sandbox the attack must work: %v\n%s", err, output)
	}
}
