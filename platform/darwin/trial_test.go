//go:build unix

package darwin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

func TestJudgeTry(t *testing.T) {
	t.Parallel()
	failed := func(step platform.Step) error { return &platform.Failure{Step: step, Cause: "unbound variable"} }
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		searching context.Context
		err       error
		blames    bool
	}{
		"refused":               {t.Context(), failed(platform.StepConfine), true},
		"aborted":               {t.Context(), fmt.Errorf("%w: signal: aborted", platform.ErrStageDied), true},
		"hung":                  {t.Context(), fmt.Errorf("wait for stage: %w", os.ErrDeadlineExceeded), true},
		"hung until the end":    {over, fmt.Errorf("wait for stage: %w", os.ErrDeadlineExceeded), false},
		"killed by others":      {t.Context(), fmt.Errorf("%w: signal: killed", platform.ErrStageDied), false},
		"did not start":         {t.Context(), fmt.Errorf("start stage: %w", syscall.EAGAIN), false},
		"failed before its try": {t.Context(), failed(platform.StepProgram), false},
	} {
		_, err := judgeTry(test.searching, platform.Enforcement{}, test.err)
		rejected, blames := errors.AsType[*rejection](err)
		if err == nil || blames != test.blames || blames && rejected.cause == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	enforcement := platform.Enforcement{Protections: map[string]platform.Protection{
		platform.Syscalls: {Detail: string(TypingDenied)},
	}}
	if typing, err := judgeTry(t.Context(), enforcement, nil); typing != TypingDenied || err != nil {
		t.Errorf("%q, %v", typing, err)
	}
}

// What is claimed of typing is what was tried, beside what works.
func TestTyping_IsClaimedAsItWasTried(t *testing.T) {
	t.Parallel()
	const denied, open = "kernel devices, typing into terminals", "can type into the session's terminal"
	for name, test := range map[string]struct {
		before, after, control error
		want                   Typing
		status                 platform.Status
		says, saysNot          string
	}{
		"denied": {
			nil, syscall.EPERM, nil, TypingDenied, platform.Enforced, denied + ";", "tried",
		},
		"open": {
			nil, nil, nil, TypingOpen, platform.Degraded, open, denied,
		},
		"open, and fails otherwise": {
			nil, syscall.EIO, nil, TypingOpen, platform.Degraded, open, denied,
		},
		"refused without a sandbox": {
			syscall.EPERM, syscall.EPERM, nil, TypingRefused, platform.Enforced, "macOS itself refuses", denied,
		},
		"all calls are denied": {
			nil, syscall.EPERM, syscall.EPERM, TypingUntried, platform.Enforced, "could not be tried", denied,
		},
		"no terminal": {
			syscall.EBADF, syscall.EBADF, syscall.EBADF, TypingUntried, platform.Enforced, "could not be tried",
			denied,
		},
	} {
		got := tried(test.before, test.after, test.control)
		plan := samples()["terminal"]
		plan.Dialect.Typing = got
		row := report(Scene{Plan: plan})[platform.Syscalls]
		if got != test.want || row.Status != test.status || row.Mechanism != mechanism {
			t.Errorf("%s: %q, %+v", name, got, row)
		}
		if !strings.Contains(row.Detail, test.says) || strings.Contains(row.Detail, test.saysNot) {
			t.Errorf("%s: %s", name, row.Detail)
		}
	}
}

// doctor names what sessions do without, and why none starts.
func TestFinding_IsInTheReportOfTheMachine(t *testing.T) {
	t.Parallel()
	const line = "(allow system-fsctl (fsctl-command FSIOC_CAS_BSDFLAGS))"
	for name, test := range map[string]struct {
		finding Finding
		says    string
	}{
		"all":  {Finding{}, ""},
		"less": {Finding{Faults: []Fault{{Line: line, Cause: "unbound variable"}}}, line + ": unbound variable"},
		"part": {
			Finding{Faults: []Fault{{Line: line, LeftOut: "system-fsctl", Cause: "aborted"}}},
			"system-fsctl in " + line + ": aborted",
		},
		"unknown": {Finding{Untried: "no memory"}, "could not be tried: no memory"},
	} {
		before := report(Scene{Plan: samples()["terminal"]})
		after := report(Scene{Plan: samples()["terminal"]})
		test.finding.add(after)
		was, is := before[platform.Filesystem].Detail, after[platform.Filesystem].Detail
		if (was == is) != (test.says == "") || !strings.Contains(is, test.says) {
			t.Errorf("%s: %s", name, is)
		}
	}
	refused := absent(fmt.Errorf("confine: %w", &refusal{"macOS does not take a rule"}))
	row := refused[platform.Filesystem]
	if row.Status != platform.Absent || row.Fix != fixRefused || !strings.Contains(row.Detail, "does not take a rule") {
		t.Errorf("%+v", row)
	}
	plan := samples()["terminal"]
	plan.Dialect.Modifiers = []string{`(with message "…")`}
	if row := report(Scene{Plan: plan})[platform.Denials]; row.Status != platform.Absent {
		t.Errorf("denials without marks: %+v", row)
	}
	mustBeWhole(t, "without marks", report(Scene{Plan: plan}))
}
