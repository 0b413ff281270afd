//go:build linux

package attack

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Changes the mode, the times and an extended attribute of the user's own file
// outside. Landlock does not mediate metadata: it works, and is documented. The
// content stays out of reach.
func TestMetadataOutsideIsDocumentedAsNotCovered(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name, settings := range map[string]string{"sandboxed": "", "control": harness.Off()} {
		s := newScene(t)
		secretOutside(s)
		e := s.Start(settings)
		result := s.attempt(e, "chmod", s.OutsidePath("secret"), "then", "utime", s.OutsidePath("secret"))
		info, err := os.Stat(s.OutsidePath("secret"))
		harness.Must(t, err)
		if !result.done() || info.Mode().Perm() != 0o640 || !info.ModTime().Equal(time.Unix(1, 0)) {
			t.Errorf("%s: metadata: status %d, %s\n%s", name, result.status, info.Mode(), result.output)
		}
		if read := s.attempt(e, "read", s.OutsidePath("secret")); read.done() != (name == "control") {
			t.Errorf("%s: content: status %d\n%s", name, read.status, read.output)
		}
		if name == "sandboxed" && !strings.Contains(result.reply.Sandbox.Protections["filesystem"].Detail, "metadata") {
			t.Errorf("the reply does not admit it: %q", result.reply.Sandbox.Protections["filesystem"].Detail)
		}
	}
}

// field reads a hexadecimal field of /proc/PID/status.
func field(t testing.TB, status, name string) uint64 {
	t.Helper()
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			number, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			harness.Must(t, err)
			return number
		}
	}
	t.Fatalf("no %s in:\n%s", name, status)
	return 0
}
