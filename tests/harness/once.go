package harness

import (
	"os"
	"testing"
)

// Once marks a test whose result cannot differ between root and an ordinary
// user; why gives the reason. ".ci/run" runs it as root only: its second run,
// as an ordinary user, sets SIDECAR_SECOND_RUN, and nothing else does. Anywhere
// else the test runs as whoever runs it.
func Once(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("SIDECAR_SECOND_RUN") != "" {
		t.Skipf("runs once, as root: %s", why)
	}
}
