//go:build linux

package temporary

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// However the sidecar ends, nothing is left of its directories once the user's
// next sidecar has started a session, with another state directory, too.
func TestTemporaryFiles_GoHoweverTheSidecarEnds(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files")
	kill := func(t *testing.T, pids ...int) {
		t.Helper()
		for _, pid := range pids { // none can react
			harness.Stop(t, pid)
		}
		for _, pid := range pids {
			harness.Must(t, unix.Kill(pid, unix.SIGKILL))
		}
	}
	for _, test := range []struct {
		name string
		end  func(t *testing.T, e *harness.Editor, editor int)
		left bool // until the next sidecar starts a session
	}{
		{"SIGTERM", func(t *testing.T, e *harness.Editor, _ int) {
			harness.Must(t, unix.Kill(e.Process(), unix.SIGTERM))
		}, false},
		{"the editor hangs up", func(_ *testing.T, e *harness.Editor, _ int) { _ = e.HangUp() }, false},
		{"the editor is killed", func(t *testing.T, _ *harness.Editor, editor int) { kill(t, editor) }, false},
		{"the sidecar is killed", func(t *testing.T, e *harness.Editor, _ int) { kill(t, e.Process()) }, false},
		{"the watchdog is killed, then the sidecar", func(t *testing.T, e *harness.Editor, _ int) {
			kill(t, append(harness.Watchdogs(e.World), e.Process())...)
		}, true},
		{"the sidecar is killed, then the watchdog", func(t *testing.T, e *harness.Editor, _ int) {
			kill(t, append([]int{e.Process()}, harness.Watchdogs(e.World)...)...)
		}, true},
		{"both are killed, and the journal is lost", func(t *testing.T, e *harness.Editor, _ int) {
			kill(t, append(harness.Watchdogs(e.World), e.Process())...)
			harness.Must(t, os.RemoveAll(e.World.State()))
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !test.left { // those that sweep would sweep for each other
				t.Parallel()
			}
			// A sidecar of another test may sweep before this test looks.
			for attempt := 1; !endedWith(t, test.end, test.left); attempt++ {
				if attempt == 10 {
					t.Fatal("somebody removes the files each time: this test shows nothing")
				}
			}
		})
	}
}

// endedWith starts a session with temporary files, ends its sidecar, and checks
// that the files go. If they are to stay until the next sidecar sweeps, and
// somebody else has removed them, it reports false.
func endedWith(t *testing.T, end func(t *testing.T, e *harness.Editor, editor int), left bool) bool {
	t.Helper()
	w, name := harness.NewWorld(t), unique(t)
	living := start(t, harness.NewWorld(t), nil)
	must(t, living, "touch /tmp/living-"+name)
	editor := exec.Command("sleep", "1000")
	harness.Must(t, editor.Start())
	t.Cleanup(func() {
		_ = editor.Process.Kill()
		_ = editor.Wait()
	})
	e := harness.Start(t, w, harness.Options{
		Settings:   harness.Defaults(nil),
		Initialize: func(p *protocol.InitializeParams) { p.ProcessID = &editor.Process.Pid },
	})
	must(t, e, "for d in /tmp /var/tmp /dev/shm; do touch $d/"+name+"; done")
	if n := len(ours(t, name)); n != 3 || len(harness.Watchdogs(w)) != 1 {
		t.Fatalf("control: %d files are found outside, and the watchdogs %d", n, harness.Watchdogs(w))
	}
	end(t, e, editor.Process.Pid)
	harness.Eventually(t, "the sidecar has ended", func() bool { return !harness.Alive(e.Process()) })
	shown := !left || len(ours(t, name)) == 3
	if left {
		_ = e.HangUp() // it is reaped, so that its locks are free
		must(t, start(t, harness.NewWorld(t), nil), "true")
	}
	harness.Eventually(t, "the files are removed", func() bool { return len(ours(t, name)) == 0 })
	if len(ours(t, "living-"+name)) != 1 {
		t.Error("the files of a living sidecar are removed, too")
	}
	return shown
}
