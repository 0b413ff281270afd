//go:build linux

package main

import (
	"context"
	"encoding/json"
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
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// leaky is a backend that grants the temporary directories, whatever the policy
// says.
type leaky struct{ linux.Backend }

func (l leaky) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	more := *p
	more.Rules = append(more.Rules[:len(more.Rules):len(more.Rules)],
		policy.Rule{Path: os.TempDir(), Access: policy.ReadWrite})
	return l.Backend.Confine(&more, hooks)
}

// silent is a backend that reports no denials.
type silent struct{ linux.Backend }

func (m silent) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	hooks.Denied = func(platform.Denial) {}
	return m.Backend.Confine(p, hooks)
}

func findingsOf(t *testing.T, backend platform.Backend) []finding {
	t.Helper()
	harness.Require(t, "filesystem")
	tracker := lifecycle.Open(lifecycle.Options{Subreaper: reexec("subreaper")})
	t.Cleanup(func() { tracker.Close() })
	ctx, cancel := deadline.Context(context.Background(), harness.Timeout)
	defer cancel()
	spawner := newSpawner(tracker, slog.New(slog.DiscardHandler))
	spawner.Backend = backend
	findings, err := prove(ctx, spawner, spawner.Probe(ctx))
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestProve_FindsClaimsThatDoNotHold(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, f := range findingsOf(t, leaky{}) {
		if f.verdict() == verdictBroken {
			broken[f.act+" "+f.protection] = true
		}
	}
	for _, want := range []string{"read filesystem", "write filesystem", "execute execute", "write denials"} {
		if !broken[want] {
			t.Errorf("a leak was not found: %s is not among %v", want, broken)
		}
	}
}

// If a machine claims to report denials, a refusal without a report is not
// enough. No other finding is broken, nor one of a machine without that claim.
func TestProve_FindsDenialsThatAreNotReported(t *testing.T) {
	t.Parallel()
	for _, f := range findingsOf(t, silent{}) {
		want := f.verdict() == verdictHeld || f.verdict() == verdictUntried || f.verdict() == verdictOpen &&
			f.status != platform.Enforced
		if f.protection == platform.Denials && f.status != platform.Absent {
			want = f.verdict() == verdictBroken
		}
		if !want || f.control != attemptWorks && f.protection == platform.Denials {
			t.Errorf("%s: %s, control %s", f.attack, f.label(), f.control)
		}
	}
}

func TestProve_ControlsWorkAndClaimsHold(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, f := range findingsOf(t, newBackend(slog.New(slog.DiscardHandler))) {
		if f.verdict() != verdictUntried {
			tried++
		} else if f.act != "ring" { // some machines switch it off
			t.Errorf("%s: the control does not work: %s", f.attack, f.control)
		}
		if f.verdict() == verdictBroken {
			t.Errorf("%s: %s", f.attack, f.label())
		}
	}
	if tried < 10 {
		t.Errorf("only %d attacks were tried", tried)
	}
}

// doctor removes what it starts and makes, even if a control leaves a process
// behind.
func TestProve_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s, err := newTargets()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.attemptUnsandboxed(t.Context(), []proof{proofs[len(proofs)-1]}); err != nil {
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
		attack := strings.ReplaceAll(regexp.QuoteMeta(p.attack), " ", `\s+`)
		if !regexp.MustCompile(`(?m)^(held|not tried|open) +` + p.protection + ` +` + attack + `\n {10}without a`).
			MatchString(stdout) {
			t.Errorf("%q has no line:\n%s", p.attack, stdout)
		}
	}
}

func TestBroken_NamesWhatDoesNotHoldAndNothingElse(t *testing.T) {
	t.Parallel()
	held := finding{
		proof: proof{protection: "p", attack: "do this"}, control: attemptWorks, session: "refused",
		status: platform.Enforced,
	}
	open, hole, untried, unreported, unclaimed := held, held, held, held, held
	unreported.session, unreported.status, unreported.reported = attemptWorks, platform.Degraded,
		func(*targets, spawn.Denial) bool { return false }
	unclaimed.session, unclaimed.status, unclaimed.reported = attemptWorks, platform.Absent, unreported.reported
	open.session, open.status = attemptWorks, platform.Absent
	hole.session, hole.attack = attemptWorks, "do that"
	untried.control, untried.session = "refused", attemptWorks
	for want, f := range map[verdict]finding{
		verdictHeld: held, verdictOpen: open, verdictBroken: hole,
		verdictUntried: untried,
	} {
		if got := f.verdict(); got != want {
			t.Errorf("%+v is %s, want %s", f, got, want)
		}
	}
	if unreported.verdict() != verdictBroken || unclaimed.verdict() != verdictOpen {
		t.Errorf("an unreported denial is %s if it is claimed and %s if not", unreported.verdict(), unclaimed.verdict())
	}
	if err := broken([]finding{held, open, untried}); err != nil {
		t.Errorf("nothing is broken: %v", err)
	}
	if err := broken([]finding{held, hole}); err == nil || !strings.Contains(err.Error(), "do that") ||
		strings.Contains(err.Error(), "do this") {
		t.Errorf("want an error that names what is broken: %v", err)
	}
}

// The JSON of doctor holds every protection and every attack.
func TestDoctor_PrintsJSON(t *testing.T) {
	t.Parallel()
	_, stdout, _ := sidecar(t, "doctor", "--json")
	var said diagnosis
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		t.Fatalf("%v:\n%s", err, stdout)
	}
	if strings.Contains(stdout, "preventsChanges") {
		t.Error("a field of this program's own is printed")
	}
	attacks := 0
	for i, p := range said.Protections {
		if p.Name != platform.Protections[i] || p.Status == "" || p.Detail == "" {
			t.Errorf("protection %d, which should be %s, is %+v", i, platform.Protections[i], p)
		}
		for _, a := range p.Attacks {
			attacks++
			if a.Attack == "" || a.Unsandboxed == "" || a.Session == "" || a.Status == "" || a.Verdict == "" {
				t.Errorf("%s: %+v", p.Name, a)
			}
		}
	}
	if want := len(proofs) + len(systemProofs); len(said.Protections) != len(platform.Protections) || attacks != want {
		t.Errorf("%d protections and %d attacks, want %d and %d", len(said.Protections), attacks,
			len(platform.Protections), want)
	}
}

func flockFree(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}
