package harness

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Require makes sure that the machine enforces a protection that a test is
// about, by its name in "sandbox-sidecar doctor": "filesystem", "signals",
// "process_tracking" and so on. If it does not, the test is skipped with the
// reason. In CI (CI=true) the test fails instead, unless SIDECAR_MISSING
// (blank-separated) lists the protection.
func Require(t testing.TB, features ...string) {
	t.Helper()
	for _, feature := range features {
		if status, detail := doctor(t, feature); status != "enforced" {
			Skip(t, feature, detail)
		}
	}
}

// Enforces reports whether the machine enforces a protection, by its name in
// "sandbox-sidecar doctor". It is for tests that go on without.
func Enforces(t testing.TB, feature string) bool {
	t.Helper()
	status, _ := doctor(t, feature)
	return status == "enforced"
}

// RequireSandbox makes sure that the machine has a sandbox at all, even if
// protections are degraded, by the rules of Require. Tests that use it must
// check the reply for what is enforced.
func RequireSandbox(t testing.TB) {
	t.Helper()
	if status, detail := doctor(t, "filesystem"); status == "absent" {
		Skip(t, "filesystem", detail)
	}
}

// Skip skips a test because the machine lacks a feature, by the rules of
// Require. The feature is one word, or no list could name it.
func Skip(t testing.TB, feature, reason string) {
	t.Helper()
	if len(strings.Fields(feature)) != 1 {
		t.Fatalf("%q is not one word, so SIDECAR_MISSING cannot list it", feature)
	}
	if os.Getenv("CI") != "" && !listed(feature) {
		t.Fatalf("this machine lacks %s (%s), and SIDECAR_MISSING does not list it", feature, reason)
	}
	t.Skipf("this machine lacks %s: %s", feature, reason)
}

// Procfs skips a test that finds processes in /proc if there is none, by the
// rules of Require.
func Procfs(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		Skip(t, "procfs", err.Error())
	}
}

func listed(feature string) bool {
	for _, missing := range strings.Fields(os.Getenv("SIDECAR_MISSING")) {
		if missing == feature {
			return true
		}
	}
	return false
}

// doctor asks the sidecar itself for the status of a protection, with the line
// that explains it.
func doctor(t testing.TB, feature string) (status, detail string) {
	t.Helper()
	line, detail := diagnosis(t, feature)
	return strings.Fields(line)[0], detail
}

// mechanism asks the sidecar how a protection is enforced.
func mechanism(t testing.TB, feature string) string {
	t.Helper()
	line, _ := diagnosis(t, feature)
	return line
}

// diagnosis returns doctor's line about a protection, and the text below it.
func diagnosis(t testing.TB, feature string) (line, detail string) {
	t.Helper()
	out := diagnose(Binary(t))
	for text := range strings.Lines(out) {
		switch fields := strings.Fields(text); {
		case len(fields) == 0 && line != "":
			return line, detail
		case strings.HasPrefix(text, " ") && line != "":
			detail = strings.TrimSpace(detail + " " + strings.TrimSpace(text))
		case line != "":
			return line, detail
		case len(fields) >= 2 && fields[1] == feature:
			line = text
		}
	}
	if line == "" {
		t.Fatalf("doctor does not know %q:\n%s", feature, out)
	}
	return line, detail
}

// diagnose runs doctor once in a test process: neither the machine nor the
// sidecar changes meanwhile.
var diagnose = func() func(binary string) string {
	var once sync.Once
	var said string
	return func(binary string) string {
		once.Do(func() {
			out, _ := exec.Command(binary, "doctor").Output() // the exit status only summarises
			said = string(out)
		})
		return said
	}
}()
