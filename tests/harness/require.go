package harness

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Require makes sure that the machine has a feature that a test is about, as
// "sandbox-sidecar doctor" reports it: "filesystem", "signals",
// "process_tracking" … Where it is not enforced the test is skipped by name
// with the reason; in CI (CI=true) it fails instead, unless the feature is
// listed in SIDECAR_MISSING (blank-separated), which is how a run says what its
// machine is known to lack.
func Require(t testing.TB, features ...string) {
	t.Helper()
	for _, feature := range features {
		if status, detail := doctor(t, feature); status != "enforced" {
			Skip(t, feature, detail)
		}
	}
}

// RequireSandbox makes sure that the machine has a sandbox at all, be it with
// protections that are degraded, by the rules of Require. Tests that ask for it
// must look into the reply for what holds.
func RequireSandbox(t testing.TB) {
	t.Helper()
	if status, detail := doctor(t, "filesystem"); status == "absent" {
		Skip(t, "filesystem", detail)
	}
}

// Skip skips a test for want of a feature, under the rules of Require.
func Skip(t testing.TB, feature, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" && !listed(feature) {
		t.Fatalf("this machine lacks %s (%s), and SIDECAR_MISSING does not list it", feature, reason)
	}
	t.Skipf("this machine lacks %s: %s", feature, reason)
}

// Procfs skips a test that looks at processes by way of /proc where there is
// none, under the rules of Require.
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

// mechanism asks the sidecar by what a protection is enforced.
func mechanism(t testing.TB, feature string) string {
	t.Helper()
	line, _ := diagnosis(t, feature)
	return line
}

// diagnosis is what doctor says about a protection: a line, and one that
// explains it.
func diagnosis(t testing.TB, feature string) (line, detail string) {
	t.Helper()
	out := diagnose(Binary(t))
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		line := lines.Text()
		if fields := strings.Fields(line); len(fields) >= 2 && fields[1] == feature {
			lines.Scan()
			return line, strings.TrimSpace(lines.Text())
		}
	}
	t.Fatalf("doctor does not know %q:\n%s", feature, out)
	return "", ""
}

// diagnose asks once in a test process: neither the machine nor the sidecar
// changes meanwhile.
var diagnose = func() func(binary string) string {
	var once sync.Once
	var said string
	return func(binary string) string {
		once.Do(func() {
			out, _ := exec.Command(binary, "doctor").Output() // the exit status only sums up
			said = string(out)
		})
		return said
	}
}()
