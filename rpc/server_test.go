//go:build unix

package rpc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestServe_EndsWithTheEditor(t *testing.T) {
	t.Parallel()
	ends := map[string]func(f *fixture, e *editor){
		"its process":     func(f *fixture, _ *editor) { close(f.editor) },
		"the pipe":        func(f *fixture, _ *editor) { f.in.Close() },
		"exit":            func(_ *fixture, e *editor) { e.notify(protocol.Exit.Method, protocol.Empty{}) },
		"the context":     func(f *fixture, _ *editor) { f.cancel() },
		"a broken header": func(f *fixture, _ *editor) { _, _ = io.WriteString(f.in, "nonsense\r\n\r\n") },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, &platformtest.Fake{}, `{"enabled": false}`)
			e := f.connect()
			session := call(e, protocol.Spawn, protocol.SpawnParams{
				Cwd: f.dir, Command: "trap '' HUP TERM; echo ready; read x",
			})
			e.output(session.SessionID, "ready")
			end(f, e)
			f.wait()
			if f.err == nil {
				t.Error("Serve returned nil without shutdown")
			}
			// The server is its parent, and has reaped it.
			if err := unix.Kill(session.PID, 0); !errors.Is(err, unix.ESRCH) {
				t.Errorf("the session was not killed: %v", err)
			}
		})
	}
}

// While sessions flood an editor that reads nothing, the end of its pipe or of
// the context still ends everything soon.
func TestServe_EndsAlthoughTheEditorDoesNotRead(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*fixture){
		"the pipe": func(f *fixture) { f.in.Close() }, "the context": func(f *fixture) { f.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.Quick(t, "the end", 4*writeTimeout, func() time.Duration { return endOfFlood(t, end) })
		})
	}
}

// endOfFlood is how long a server lives after the end of an editor that reads
// nothing of its sessions' floods.
func endOfFlood(t *testing.T, end func(*fixture)) time.Duration {
	t.Helper()
	f := start(t, &platformtest.Fake{}, `{"enabled": false}`)
	in := bufio.NewReader(f.out)
	sendRaw(t, f, "initialize", `{"processId":null,"capabilities":{}}`)
	for range 3 {
		sendRaw(t, f, "terminal/spawn", fmt.Sprintf(`{"cwd":%q,"command":"yes"}`, f.dir))
	}
	for outputs := 0; outputs < 50; {
		var message struct{ Method string }
		if err := (jsonrpc2.VSCodeObjectCodec{}).ReadObject(in, &message); err != nil {
			t.Fatal(err)
		}
		if message.Method == protocol.Output.Method {
			outputs++
		}
	}
	begun := time.Now()
	end(f)
	f.wait()
	return time.Since(begun)
}

func sendRaw(t *testing.T, f *fixture, method, params string) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	if _, err := f.in.Write(append(appendHeader(nil, len(body)), body...)); err != nil {
		t.Fatal(err)
	}
}

func TestSpawn_WithoutASandbox(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("%w: the kernel has\x1b[31mnone", platform.ErrUnavailable)
	tests := []struct {
		name, settings string
		kind           protocol.Kind
		starts         bool
	}{
		{"a tool is refused", `{"enabled": true}`, protocol.Tool, false},
		{"a terminal starts with a warning", `{"enabled": true}`, protocol.Terminal, true},
		{"a tool starts if the user allows it", `{"enabled": true, "on_unavailable": "warn"}`, protocol.Tool, true},
		{
			"a terminal is refused if the user says so", `{"enabled": true, "on_unavailable": "refuse"}`,
			protocol.Terminal, false,
		},
		{
			"no network is never ignored", `{"enabled": true, "on_unavailable": "warn", "allow_network": false}`,
			protocol.Terminal, false,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, &platformtest.Fake{Unavailable: cause}, test.settings)
			e := f.connect()
			result, err := try(e, protocol.Spawn, protocol.SpawnParams{
				Kind: test.kind, Cwd: f.dir, Command: "echo hello",
			})
			if !test.starts {
				if answer := refused(t, err, protocol.CodeSandboxUnavailable); answer.Data.Reason == "" ||
					answer.Data.Hint == "" {
					t.Errorf("data: got %+v, want reason and hint", answer.Data)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Sandbox; got.Applied || got.Status != protocol.SandboxNone || len(got.Protections) != 0 ||
				!strings.Contains(fmt.Sprint(got.Warnings), "not sandboxed") {
				t.Errorf("sandbox: got %+v", got)
			}
			e.exit(result.SessionID)
			got := e.printed(result.SessionID)
			first, rest, _ := strings.Cut(got, "\r\n")
			if !strings.HasPrefix(first, "\x1b[33mwarning: ") || !strings.HasSuffix(first, "\x1b[0m") ||
				strings.Count(first, "\x1b") != 2 || rest != "hello\r\n" {
				t.Errorf("the first line is no yellow warning: %q", got)
			}
		})
	}
}

// reporting is a backend whose stage reports these protections.
func reporting(protections map[string]platform.Protection) *platformtest.Fake {
	return &platformtest.Fake{Enforcement: platform.Enforcement{Protections: protections}}
}

func TestSpawn_ReportsWhatTheStageReported(t *testing.T) {
	t.Parallel()
	enforced := platform.Protection{Status: platform.Enforced, Mechanism: "fake", Detail: "d"}
	tests := []struct {
		name string
		fake *platformtest.Fake
		want protocol.SandboxStatus
	}{
		{
			"one that is degraded", reporting(map[string]platform.Protection{
				platform.Filesystem: enforced,
				platform.Signals:    {Status: platform.Degraded, Mechanism: "fake", Detail: "d", Fix: "f"},
			}), protocol.SandboxDegraded,
		},
		{
			"one that is absent", reporting(map[string]platform.Protection{
				platform.Filesystem: enforced, platform.Network: {Status: platform.Absent, Detail: "d"},
			}), protocol.SandboxDegraded,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, test.fake, `{"enabled": true}`)
			e := f.connect()
			got := call(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "true"}).Sandbox
			if !got.Applied || got.Status != test.want {
				t.Errorf("got %+v, want applied and %s", got, test.want)
			}
			for name, want := range test.fake.Enforcement.Protections {
				p := got.Protections[name]
				if string(p.Status) != string(want.Status) || p.Mechanism != want.Mechanism ||
					p.Detail != want.Detail ||
					p.Fix != want.Fix {
					t.Errorf("%s: got %+v, want %+v", name, p, want)
				}
			}
		})
	}
}

func TestSpawn_RunsNothingIfTheStageFails(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{Failure: "out of luck"}, `{"enabled": true, "on_unavailable": "warn"}`)
	e := f.connect()
	_, err := try(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "touch ran"})
	if answer := refused(t, err, protocol.CodeSandboxUnavailable); !strings.Contains(answer.Message, "out of luck") {
		t.Errorf("message: got %q", answer.Message)
	}
	if list := call(e, protocol.List, protocol.Empty{}); len(list.Sessions) != 0 {
		t.Errorf("list: got %+v", list.Sessions)
	}
}

func TestCallRaw_AnswersHoldOneOfResultAndError(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{}`)
	in := bufio.NewReader(f.out)
	next := func() map[string]json.RawMessage {
		var message map[string]json.RawMessage
		if err := (jsonrpc2.VSCodeObjectCodec{}).ReadObject(in, &message); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return message
	}
	for _, method := range []string{
		"terminal/list", "initialize", "initialize", "terminal/list", "no/such", "shutdown",
		"shutdown",
	} {
		sendRaw(t, f, method, `{"processId":null}`)
		message := next()
		for message["id"] == nil {
			message = next()
		}
		_, result := message["result"]
		_, failure := message["error"]
		if result == failure {
			t.Errorf("%s: %s", method, message)
		}
	}
}
