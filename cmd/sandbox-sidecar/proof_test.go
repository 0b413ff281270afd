//go:build linux

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// lying is a backend that grants the temporary directories, whatever the policy says.
type lying struct{ linux.Backend }

func (l lying) Confine(p *policy.Policy, needs platform.Needs) (platform.Confinement, error) {
	more := *p
	more.Rules = append(more.Rules[:len(more.Rules):len(more.Rules)], policy.Rule{Path: os.TempDir(), Access: policy.ReadWrite})
	return l.Backend.Confine(&more, needs)
}

func findingsOf(t *testing.T, backend platform.Backend) []finding {
	t.Helper()
	harness.Require(t, "filesystem")
	tracker := lifecycle.Open(lifecycle.Options{Keeper: again("keeper")})
	t.Cleanup(func() { tracker.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	spawner := newSpawner(tracker, slog.New(slog.DiscardHandler))
	spawner.Backend = backend
	findings, err := prove(ctx, spawner)
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestProve_FindsWhatIsClaimedAndDoesNotHold(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, f := range findingsOf(t, lying{}) {
		if !f.holds() {
			broken[f.act+" "+f.protection] = true
		}
	}
	for _, want := range []string{"read filesystem", "write filesystem", "execute execute"} {
		if !broken[want] {
			t.Errorf("a sandbox with a hole passes for whole: %s is not found among %v", want, broken)
		}
	}
}

func TestProve_TheControlsWorkAndTheClaimsHold(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, f := range findingsOf(t, newBackend(slog.New(slog.DiscardHandler))) {
		if f.tried() {
			tried++
		} else if f.act != "ring" { // which some machines switch off
			t.Errorf("%s: the control does not work: %s", f.attack, f.control)
		}
		if !f.holds() {
			t.Errorf("%s: %s", f.attack, f.verdict())
		}
	}
	if tried < 10 {
		t.Errorf("only %d attacks were tried", tried)
	}
}

// What doctor starts and makes goes with it, also where a control left something behind.
func TestProve_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s, err := newScenery()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.attemptPlainly(t.Context(), []proof{proofs[len(proofs)-1]}); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(s.path("project", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if held, err := lockHeld(s.path("project", "lock")); err != nil || !held {
		t.Fatalf("control: the process that stays must hold its lock: %v, %v", held, err)
	}
	s.clear()
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
	harness.Eventually(t, "the process that stayed is ended", func() bool { return flockFree(lock) })
}

func TestDoctor_IsFastAndPrintsWhatItTried(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	begun := time.Now()
	status, stdout, stderr := sidecar(t, "doctor")
	t.Logf("%s", time.Since(begun))
	if status != 0 || stderr != "" {
		t.Errorf("exit status %d, %q", status, stderr)
	}
	for _, p := range append(proofs, systemProofs...) {
		if !regexp.MustCompile(`(?m)^` + p.protection + ` +` + regexp.QuoteMeta(p.attack) + ` .* (held|not tried: .*|open, as reported \(\w+\))$`).MatchString(stdout) {
			t.Errorf("%q has no line:\n%s", p.attack, stdout)
		}
	}
}

func TestPrintFindings_SaysWhatDoesNotHold(t *testing.T) {
	t.Parallel()
	held := finding{proof: proof{protection: "p", attack: "do this"}, control: attemptWorks, session: "refused", status: platform.Enforced}
	open, broken, untried := held, held, held
	open.session, open.status = attemptWorks, platform.Absent
	broken.session, broken.attack = attemptWorks, "do that"
	untried.control, untried.session = "refused", attemptWorks
	if err := printFindings([]finding{held, open, untried}); err != nil {
		t.Errorf("nothing is broken: %v", err)
	}
	if err := printFindings([]finding{held, broken}); err == nil || !strings.Contains(err.Error(), "do that") || strings.Contains(err.Error(), "do this") {
		t.Errorf("want an error that names what is broken: %v", err)
	}
}

func flockFree(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}
