//go:build linux

package attack

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// startWithoutLandlock starts a sidecar for which the kernel has no Landlock.
func startWithoutLandlock(s *scene, extra harness.Sandbox) *harness.Editor {
	s.T.Helper()
	return harness.Start(
		s.T, s.World, harness.Options{Settings: harness.Settings(extra), Wrap: func(command *exec.Cmd) {
			command.Args = append([]string{s.Victim, "without-landlock", command.Path}, command.Args[1:]...)
			command.Path = s.Victim
		}})
}

// mustBeRefused makes sure that a session is refused for want of a sandbox, and
// that none of it ran.
func mustBeRefused(t *testing.T, e *harness.Editor, params protocol.SpawnParams) {
	t.Helper()
	params.Cwd, params.Command = e.World.Project, "echo ran > ran"
	_, err := harness.Try(e, protocol.Spawn, params)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != protocol.CodeSandboxUnavailable || refused.Data.Reason == "" ||
		refused.Data.Hint == "" {
		t.Errorf("%+v: want a refusal with %d, a reason and a hint, got %v", params.Kind,
			protocol.CodeSandboxUnavailable, err)
	}
	if sessions := harness.Call(e, protocol.List, protocol.Empty{}).Sessions; len(sessions) > 0 {
		t.Errorf("the refused session is listed: %+v", sessions)
	}
	if harness.Read(t, e.World.Project+"/ran") != "" {
		harness.Breach(t, "the refused command ran")
	}
}

// Asks doctor on a machine without Landlock. It reports "absent" with the
// reason and a remedy, proves it by attacks that work, and exits with status 1.
// With Landlock the status is 0.
func TestDoctorAdmitsThatLandlockIsMissing(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	ctx, cancel := deadline.Context(context.Background(), harness.Timeout)
	defer cancel()
	command := exec.CommandContext(ctx, s.Victim, "without-landlock", harness.Binary(t), "doctor")
	command.Env = harness.Environ(s.World)
	out, err := command.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("want exit status 1, got %v", err)
	}
	for _, name := range []string{"filesystem", "execute", "signals"} {
		if !hasLine(string(out), "absent "+name) {
			t.Errorf("doctor does not say that %s is absent:\n%s", name, out)
		}
		proof := `(?m)^open +` + name + ` [^;]*; in a session: works\n +open, as reported: absent$`
		if !regexp.MustCompile(proof).Match(out) {
			t.Errorf("doctor does not prove that %s is absent:\n%s", name, out)
		}
	}
	command = exec.CommandContext(ctx, harness.Binary(t), "doctor")
	command.Env = harness.Environ(s.World)
	if out, err := command.Output(); err != nil || !hasLine(string(out), "enforced filesystem") {
		t.Errorf("control: with Landlock: %v\n%s", err, out)
	}
}

// hasLine reports whether the first fields of some line are those given.
func hasLine(text, fields string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.Join(strings.Fields(line), " ")+" ", fields+" ") {
			return true
		}
	}
	return false
}

// Starts a tool on a machine without Landlock. Nobody watches a tool, so it is
// refused. initialize has already reported that there is no protection.
func TestAToolIsRefusedWithoutLandlock(t *testing.T) {
	t.Parallel()
	e := startWithoutLandlock(newScene(t), nil)
	if status := e.Hello.Capabilities.Enforcement["filesystem"].Status; status != protocol.Absent {
		t.Errorf("initialize says that files are %s", status)
	}
	mustBeRefused(t, e, protocol.SpawnParams{Kind: protocol.Tool})
}

// Starts a terminal on a machine without Landlock. A user without a terminal is
// stuck, so it runs, with three warnings: a yellow first line, a warning in the
// reply, and the status "none". The control: it can write outside.
func TestATerminalWithoutLandlockSaysSo(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	secretOutside(s)
	session := startWithoutLandlock(s, nil).Spawn(protocol.SpawnParams{
		Command: s.Victim,
		Args:    []string{"write", s.OutsidePath("secret"), "overwritten"},
	})
	session.Exit()
	mustSayNone(t, session)
	if !strings.HasPrefix(string(session.Raw()), "\x1b[33mwarning: ") {
		t.Errorf("the first line is no yellow warning: %q", session.Raw())
	}
	if !changed(s, "") {
		t.Error("the reply says that nothing is enforced, yet the write outside was refused")
	}
}

func mustSayNone(t *testing.T, session *harness.Session) {
	t.Helper()
	report := session.Sandbox
	if report.Applied || report.Status != protocol.SandboxNone ||
		!strings.Contains(strings.Join(report.Warnings, "\n"), "not sandboxed") {
		t.Errorf("the reply hides that there is no sandbox: %+v", report)
	}
	for name, protection := range report.Protections {
		if protection.Status != protocol.Absent && name != "process_tracking" {
			t.Errorf("the reply says that %s is %s", name, protection.Status)
		}
	}
}

// Sets on_unavailable on a machine without Landlock: "refuse" refuses terminals
// too, "warn" lets tools run with a warning.
func TestOnUnavailableDecidesWithoutLandlock(t *testing.T) {
	t.Parallel()
	e := startWithoutLandlock(newScene(t), harness.Sandbox{"on_unavailable": "refuse"})
	mustBeRefused(t, e, protocol.SpawnParams{Kind: protocol.Terminal})
	mustBeRefused(t, e, protocol.SpawnParams{Kind: protocol.Tool})

	e = startWithoutLandlock(newScene(t), harness.Sandbox{"on_unavailable": "warn"})
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "echo ran"})
	session.Exit()
	mustSayNone(t, session)
	if !strings.Contains(session.Output(), "ran") {
		t.Errorf("the tool did not run: %q", session.Output())
	}
}

// Asks for a session without network. If the network cannot be switched off,
// the session is refused whatever on_unavailable says, with Landlock and
// without it. The control is the same session with the network.
func TestNoNetworkIsNeverQuietlyNetwork(t *testing.T) {
	t.Parallel()
	for _, reaction := range []any{"warn", "refuse", nil} {
		off := harness.Sandbox{"allow_network": false, "on_unavailable": reaction}
		for _, kind := range []protocol.Kind{protocol.Terminal, protocol.Tool} {
			mustBeRefused(t, startWithoutLandlock(newScene(t), off), protocol.SpawnParams{Kind: kind})
			s := newScene(t)
			e := s.Start(harness.Settings(off))
			if e.Hello.Capabilities.Enforcement["network"].Status == protocol.Absent {
				mustBeRefused(t, e, protocol.SpawnParams{Kind: kind})
			}
		}
	}
	warning := harness.Settings(harness.Sandbox{"on_unavailable": "warn"})
	if output, status := newScene(t).Start(warning).Tool("echo ran"); status != 0 {
		t.Errorf("control: with the network it must run: status %d\n%s", status, output)
	}
}
