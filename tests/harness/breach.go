package harness

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// breachMark begins a line by which tests/ci knows a broken promise.
const breachMark = "NEVER AGAIN: "

// Breach fails a test because the product has broken a promise: an attack has
// worked, a process has outlived its session, a byte was lost, "explain" and the
// kernel disagree. The run is red at once, and the test never runs again, because
// what happens once in a hundred times happens to somebody. The mark is printed
// before the message, so that a test that hangs next cannot hide it. What else
// goes wrong in a test is for t.Errorf.
func Breach(t testing.TB, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	first, _, _ := strings.Cut(text, "\n")
	// One call, so that nothing comes in between.
	fmt.Fprintf(os.Stdout, "\n%s%s: %s\n", breachMark, t.Name(), first)
	t.Error(breachMark + text)
}

// MustEnd waits until something of a session or of the sidecar has ended that
// may not outlive it. That it does not is a breach.
func MustEnd(t testing.TB, what string, ended func() bool) {
	t.Helper()
	if !Within(ended) {
		Breach(t, "a survivor: waited in vain: %s", what)
		t.FailNow()
	}
}
