//go:build unix

package rpc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// A command with a pipe prints the same whatever its kind is, and no line of the
// sidecar's comes first.
func TestSpawn_WithAPipe(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{Unavailable: platform.ErrUnavailable},
		`{"enabled": true, "on_unavailable": "warn"}`)
	e := f.connect()
	for _, kind := range []protocol.Kind{protocol.Tool, protocol.Terminal} {
		reply := call(e, protocol.Spawn, protocol.SpawnParams{
			Kind: kind, Cwd: f.dir, Command: "test -t 1 || echo piped; cat", Pipe: true,
		})
		if code := e.exit(reply.SessionID); code != 0 || e.printed(reply.SessionID) != "piped\n" ||
			!strings.Contains(strings.Join(reply.Sandbox.Warnings, ""), "not sandboxed") {
			t.Errorf("%s: %d, %q, %q", kind, code, e.printed(reply.SessionID), reply.Sandbox.Warnings)
		}
	}
	_, err := try(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Pipe: true})
	refused(t, err, protocol.CodeInvalidParams)
}

// A server that must sandbox everything starts nothing else, of either kind. In
// the controls the same starts.
func TestSpawn_OnlySandboxed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings    string
		unavailable error
		code        protocol.Code
	}{
		"off":   {`{"enabled": false}`, nil, protocol.CodeSandboxUnavailable},
		"wrong": {`{"enabled": true, "apply_to": "nobody"}`, nil, protocol.CodeSettingsInvalid},
		"unavailable": {
			`{"enabled": true, "on_unavailable": "warn"}`, platform.ErrUnavailable, protocol.CodeSandboxUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, sandbox := range []bool{true, false} {
				backend := &platformtest.Fake{Unavailable: test.unavailable}
				f := startWith(t, backend, test.settings, func(o *Options) { o.Sandbox = sandbox })
				_, err := try(f.connect(), protocol.Spawn, protocol.SpawnParams{
					Kind: protocol.Terminal, Cwd: f.dir, Command: "touch", Args: []string{"ran"},
				})
				if sandbox {
					refused(t, err, test.code)
				} else if err != nil {
					t.Errorf("control: %v", err)
				}
				if _, err := os.Stat(filepath.Join(f.dir, "ran")); sandbox && err == nil {
					t.Error("it ran")
				}
			}
		})
	}
}

// A session has the policy that policy/get shows and that a new one would get.
func TestSpawn_OnlySandboxedIsNotStale(t *testing.T) {
	t.Parallel()
	f := startWith(t, &platformtest.Fake{}, `{"enabled": true}`, func(o *Options) { o.Sandbox = true })
	c := f.connect()
	shown := call(c, protocol.PolicyGet, protocol.PolicyGetParams{ProjectDir: f.dir, Kind: protocol.Terminal})
	session := call(c, protocol.Spawn, protocol.SpawnParams{
		Kind: protocol.Terminal, ProjectDir: f.dir, Cwd: f.dir, Command: "sleep", Args: []string{"1000"},
	})
	if session.PolicyID != shown.PolicyID {
		t.Errorf("policy %s, expected %s", session.PolicyID, shown.PolicyID)
	}
	for _, listed := range call(c, protocol.List, protocol.Empty{}).Sessions {
		if listed.Stale {
			t.Error("nothing has changed, and the session is stale")
		}
	}
}

// What the command line says counts more than the user's settings.
func TestSpawn_TheCommandLineCountsMost(t *testing.T) {
	t.Parallel()
	f := startWith(t, &platformtest.Fake{}, `{"enabled": false}`, func(o *Options) {
		o.Sandbox, o.Command = true, []byte(`{"terminal": {"sandbox": {"enabled": true, "apply_to": "both"}}}`)
	})
	reply := call(f.connect(), protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "true"})
	if !reply.Sandbox.Applied {
		t.Errorf("%+v", reply.Sandbox)
	}
}
