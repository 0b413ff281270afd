package audit

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// hostile are arguments that are slow to read.
func hostile(size int) map[string]string {
	shapes := map[string]string{}
	for _, unit := range []string{
		"x", " ", "'", `"`, "`", "$(", "${", "$((", "((", "(", ")", "<<A\n", "<(", "<<<", "\\", "\n", "#", ";", "|",
		"a=", "token=", "token='", `token="`, "token: ", "x-key: ", "://", "://a:b", "://a@", "?key=", "[", "{",
		`{"a":`, `"token":[`, "-----BEGIN PRIVATE KEY-----", "password '", "eyJaaaaaaaa.", "$'", `$'\x`, "$\"",
		"echo a | sudo -S ", "sh -c ", "sh -c '", "\x00", "ü", "mysql -p", "<<<a ", "bearer ", "${TOKEN:-",
	} {
		shapes[unit] = strings.Repeat(unit, size/len(unit)+1)[:size]
	}
	shapes["json"] = `["` + strings.Repeat(`a","`, size/4) + `"]`
	shapes["deep json"] = strings.Repeat(`[`, size/2) + strings.Repeat(`]`, size/2)
	return shapes
}

// Redact takes no longer for more arguments than it keeps, and grows with
// their size only as much as that does.
func TestRedact_IsBounded(t *testing.T) { //nolint:paralleltest // others would be measured, too
	const size = 2 << 20
	slowest, shape := time.Duration(0), ""
	for name, text := range hostile(size) {
		for _, given := range [][]string{
			{"sh", "-c", text}, {"app", text}, slices.Repeat([]string{text[:16]}, size/16),
		} {
			before := harness.ProcessorTime(t, os.Getpid())
			got := Redact(given)
			if took := harness.ProcessorTime(t, os.Getpid()) - before; took > slowest {
				slowest, shape = took, name
			}
			if kept := len(strings.Join(got, "")); kept > 4*maxJudged {
				t.Errorf("%q: %d bytes are kept", name, kept)
			}
		}
	}
	const most = time.Second
	if slowest > most {
		t.Errorf("%q took %v", shape, slowest)
	}
	t.Logf("the slowest, %q, took %v", shape, slowest)
}
