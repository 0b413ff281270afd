package darwin

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// A daemon that has left its session and its parents is found by its
// fingerprint. Another process of the same name survives.
func TestSession_DaemonsAreKilledByTheirFingerprint(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*policy.Policy{
		"restricted":   defaultPolicy(t, realDir(t), realDir(t), realDir(t)),
		"tracked only": {TrackBySandbox: true},
	} {
		state := realDir(t)
		tracker := lifecycle.Open(lifecycle.Options{StateDir: state})
		group, err := tracker.NewGroup(name)
		if err != nil {
			t.Fatal(err)
		}
		b := backend(t)
		b.Closed = []string{state}
		confinement, err := b.Confine(p, platform.Hooks{Mark: group.(lifecycle.Marked)})
		if err != nil {
			t.Fatal(err)
		}
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		const daemon = `use POSIX; if (fork) { exit } setsid; if (fork) { exit } $| = 1; print "ready\n"; sleep 600`
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		launched, err := platform.Launch(ctx, b, platform.Target{
			Order: platform.Order{
				Program: "/usr/bin/perl", Argv: []string{"perl", "-e", daemon}, Env: []string{},
				Dir: "/",
			},
			Confinement: confinement, Streams: [3]*os.File{
				os.Stdin, write,
				os.Stderr,
			}, Start: group.Start, Attr: &syscall.SysProcAttr{Setsid: true},
		})
		write.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := launched.Process.Wait(false); err != nil {
			t.Error(err)
		}
		if _, err := read.Read(make([]byte, 6)); err != nil {
			t.Errorf("%s: the daemon has not started: %v", name, err)
		}
		stranger := platformtest.NewBystander(t)
		if tracking := group.Tracking(); !tracking.Guarantee || tracking.Mechanism != lifecycle.MechanismSeatbelt {
			t.Errorf("%s: %+v", name, tracking)
		}
		killed, err := group.Kill(ctx)
		if err != nil || killed != 1 {
			t.Errorf("%s: killed %d: %v", name, killed, err)
		}
		// The daemon held the pipe open.
		if n, err := read.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: the daemon lives", name)
		}
		read.Close()
		cancel()
		if err := stranger.End(); err != nil {
			t.Errorf("%s: another process was killed: %v", name, err)
		}
		for _, end := range []func() error{launched.Supervision.Close, group.Close, tracker.Close} {
			if err := end(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
