//go:build linux

package denials

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What programs try by themselves, and do not need, is refused without a word.
func TestExpectedRefusalsAreNotReported(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	const script = `for file in oom_score_adj coredump_filter timerslack_ns; do echo 0 2>/dev/null >/proc/self/$file; done
mkdir ~/.config/configstore ~/.config/nextjs-nodejs 2>/dev/null; mkdir ~/.config/other; true`
	for name, ask := range map[string]string{"report": harness.Settings(nil), "ask": harness.Settings(harness.Sandbox{
		"on_denied": "ask",
	})} {
		_, status, denials := s.start(ask, nil).tool("sh", "-c", script)
		if status != 0 || len(denials) != 1 || denials[0].Target != s.Home+"/.config/other" {
			t.Errorf("%s: status %d, %+v", name, status, denials)
		}
	}
}
