package linux

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

const timeout = 30 * time.Second

func requireMediation(t *testing.T) {
	t.Helper()
	requireLandlock(t)
	if err := mediationAvailable(); err != nil {
		harness.Skip(t, "user_notification", err.Error())
	}
}

// dialogue is a confined shell that runs one line after the other.
type dialogue struct {
	t     *testing.T
	in    *os.File
	lines *bufio.Scanner
	platform.Launched
}

// converse starts a shell, as on an older kernel. It may run the programs of the
// system.
func converse(t *testing.T, hooks platform.Hooks, change func(*platform.Confinement)) *dialogue {
	t.Helper()
	requireMediation(t)
	var rules []policy.Rule
	for _, dir := range []string{"/bin", "/usr/bin"} {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, policy.Rule{Path: real, Access: policy.Read | policy.Execute})
	}
	backend := older{abi: 2}
	p := platformtest.Policy(t, rules...)
	if hooks.Denied != nil {
		p.OnDenied = policy.Report
	}
	confinement, err := backend.Confine(p, hooks)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&confinement)
	}
	theirIn, in := pipe(t)
	out, theirOut := pipe(t)
	ctx, cancel := deadline.Context(context.Background(), timeout)
	defer cancel()
	d := &dialogue{t: t, in: in, lines: bufio.NewScanner(out)}
	d.Launched, err = platform.Launch(ctx, backend, platform.Target{
		Order: platform.Order{
			Program: "/bin/sh", Argv: []string{"sh"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		},
		Confinement: confinement, Streams: [3]*os.File{
			theirIn, theirOut,
			theirOut,
		}, Attr: &syscall.SysProcAttr{Setsid: true}, Start: lifecycle.Start,
	})
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(timeout, func() { _ = d.Process.Signal(unix.SIGKILL) })
	t.Cleanup(func() {
		in.Close()
		_ = d.Process.Signal(unix.SIGKILL)
		_, _ = d.Process.Wait(false)
		stop.Stop()
		if d.Supervision != nil {
			if err := d.Supervision.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return d
}

func pipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

// run sends the shell a line and returns what it prints.
func (d *dialogue) run(line string) string {
	d.t.Helper()
	const end = "that was it"
	if _, err := d.in.WriteString(line + "; echo; echo " + end + "\n"); err != nil {
		d.t.Fatal(err)
	}
	var printed []string
	for d.lines.Scan() {
		if d.lines.Text() == end {
			return strings.TrimSpace(strings.Join(printed, "\n"))
		}
		printed = append(printed, d.lines.Text())
	}
	d.t.Fatalf("the shell has ended; it printed %q", printed)
	return ""
}

// If the supervisor does not answer, or answers wrongly, nothing is executed.
func TestSupervision_IsProved(t *testing.T) {
	t.Parallel()
	requireMediation(t)
	for name, take := range map[string]func(platform.Handover) (platform.Supervision, error){
		"closed": func(h platform.Handover) (platform.Supervision, error) { h.Close(); return noSupervision{}, nil },
		"another": func(h platform.Handover) (platform.Supervision, error) {
			another := ruleset{stage.Ruleset{Filtering: seccomp.Filtering{}}}
			h.Prepared = facts{}
			return another.supervise(&policy.Policy{}, sockets.Grants{}, nil, h, platform.Hooks{})
		},
	} {
		marker := filepath.Join(t.TempDir(), "marker")
		job := platformtest.Confined(t, older{abi: 2},
			platformtest.Policy(t, policy.Rule{Path: filepath.Dir(marker), Access: policy.ReadWrite}),
			platformtest.Act{Verb: platformtest.Create, Path: marker})
		if _, _, err := platformtest.Output(older{abi: 2}, job); err != nil {
			t.Fatalf("control: %v", err)
		}
		if err := os.Remove(marker); err != nil {
			t.Fatal(err)
		}
		job.Confinement.Supervise = take
		if _, _, err := platformtest.Output(older{abi: 2}, job); err == nil ||
			!strings.Contains(err.Error(), "no supervisor answers") {
			t.Errorf("%s: error is %v", name, err)
		}
		if _, err := os.Stat(marker); err == nil {
			t.Errorf("%s: the program ran", name)
		}
	}
}

type noSupervision struct{}

func (noSupervision) Close() error { return nil }

// A stage in a network namespace of its own hands over a descriptor that lists
// the sockets there.
func TestSupervision_FollowsIntoANetworkNamespace(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "the test runs as an ordinary user")
	}
	var diag bool
	d := converse(t, platform.Hooks{}, func(c *platform.Confinement) {
		c.Attach = func(attr *syscall.SysProcAttr) { attr.Cloneflags |= unix.CLONE_NEWNET }
		take := c.Supervise
		c.Supervise = func(h platform.Handover) (platform.Supervision, error) {
			diag = len(h.Files[canary.PassedDiag]) > 0
			return take(h)
		}
	})
	if !diag {
		t.Error("the sidecar cannot list the sockets of the session's namespace")
	}
	if got := d.run("echo alive"); got != "alive" {
		t.Errorf("the shell prints %q", got)
	}
	plain := converse(t, platform.Hooks{}, func(c *platform.Confinement) {
		take := c.Supervise
		c.Supervise = func(h platform.Handover) (platform.Supervision, error) {
			diag = len(h.Files[canary.PassedDiag]) > 0
			return take(h)
		}
	})
	if diag {
		t.Error("a stage in our own namespace hands over a descriptor")
	}
	if got := plain.run("echo alive"); got != "alive" {
		t.Errorf("the shell prints %q", got)
	}
}
