//go:build linux

package denials

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A command that fails for a reason that nobody reported points to learn, and
// names the variables that it may have needed.
func TestAFailureSaysWhatTheSandboxMayHaveToDoWithIt(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	harness.Write(t, s.OutsidePath("file"), "")
	const learn, variable = "sandbox-sidecar learn -- CMD", "AWS_PROFILE"
	e := s.start(harness.Settings(nil), nil)
	ends := make(chan protocol.ExitedParams, 10)
	client.On(e.Client, protocol.Exited, func(p protocol.ExitedParams) { ends <- p })
	for line, want := range map[string][]string{
		"echo 'error: Permission denied'; false":               {learn},
		"exit 126":                                             {learn},
		"grep x /dev/null":                                     nil,
		"echo 'error: Permission denied'":                      nil,
		"cat " + s.OutsidePath("file"):                         nil, // it is reported
		"echo 'the variable AWS_PROFILE is not set'; false":    {variable},
		"aws s3 ls; echo 'x: Network is unreachable'; exit 2":  {learn, variable},
		"kill -TERM $$; echo 'error: Permission denied'; true": nil,
	} {
		session := e.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: line, Env: map[string]string{"AWS_PROFILE": "x"},
		})
		end := <-ends
		if end.SessionID != session.SessionID || len(end.Hints) != len(want) {
			t.Errorf("%s: %q", line, end.Hints)
			continue
		}
		for i := range want {
			if !strings.Contains(end.Hints[i], want[i]) {
				t.Errorf("%s: %q", line, end.Hints)
			}
		}
	}
	for line, want := range map[string]string{
		"exit 126": learn, "grep x /dev/null": "", "aws-none; aws sts 2>/dev/null; false": variable, "true": "",
	} {
		command := s.execute(harness.Settings(nil), "exec", "--", "sh", "-c", line)
		command.Env = append(command.Env, "AWS_PROFILE=x")
		out, _ := command.CombinedOutput()
		text := strings.Join(strings.Fields(string(out)), " ") // unfolded
		if hinted := strings.Contains(text, "hint:"); hinted != (want != "") || !strings.Contains(text, want) {
			t.Errorf("exec %s: %s", line, out)
		}
	}
}
