//go:build linux

package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// grantOutside is what an editor sends if its user allows the secret outside
// until the window closes.
func grantOutside(t testing.TB, s *scene) protocol.SettingsAllowParams {
	t.Helper()
	value, err := json.Marshal(s.Outside)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.SettingsAllowParams{
		ProjectDir: s.Project, Scope: protocol.DecisionWindow,
		Suggestion: protocol.Suggestion{Setting: "additional_read_only_paths", Value: value},
	}
}

// Sends the editor's own request to the sidecar, through the pipe that is its
// standard input. The control writes the same bytes from outside.
func TestASessionCannotGrantItselfAnything(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	secretOutside(s)
	e := s.Start(harness.Settings(nil))
	params, err := json.Marshal(grantOutside(t, s))
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"forged","method":"settings/allow","params":%s}`, params)
	message := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	pipe := fmt.Sprintf("/proc/%d/fd/0", e.Process())
	result := s.attempt(e, "write", pipe, message)
	if result.done() || !result.reply.Sandbox.Applied || s.reads(e) {
		harness.Breach(t, "THE ATTACK WORKS: status %d\n%s", result.status, result.output)
	}
	control, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err == nil {
		_, err = control.WriteString(message)
		control.Close()
	}
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	harness.Eventually(t, "the same bytes from outside grant it", func() bool { return s.reads(e) })
}

// A grant for the window is for new sessions of one project, ends with the
// sidecar, and changes no file.
func TestAGrantForTheWindowIsNarrow(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	secretOutside(s)
	e := s.Start(harness.Settings(nil))
	before := harness.Read(t, s.UserSettings())
	running := e.Shell()
	if s.reads(e) {
		t.Fatal("it is open without the grant")
	}
	harness.Call(e, protocol.SettingsAllow, grantOutside(t, s))
	if !s.reads(e) {
		t.Error("a new session does not have it")
	}
	running.Type("cat " + s.OutsidePath("secret") + "; echo status=$?\n")
	if running.Await(`status=(\d+)`)[1] == "0" || strings.Contains(running.Output(), secretText) {
		t.Errorf("a running session: %s", running.Output())
	}
	other := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Home, ProjectDir: s.Home, Command: "cat " + s.OutsidePath("secret"),
	})
	if other.Exit(); strings.Contains(other.Output(), secretText) {
		harness.Breach(t, "another project has it")
	}
	if now := harness.Read(t, s.UserSettings()); now != before {
		t.Errorf("the settings are %s", now)
	}
	if again := s.Start(harness.Settings(nil)); s.reads(again) {
		harness.Breach(t, "the next sidecar has it")
	}
}
