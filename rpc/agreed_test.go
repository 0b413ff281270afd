//go:build unix

package rpc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// A command that names the policy to which the user has agreed runs under that
// policy in full force, or not at all. Without the name the same starts.
func TestSpawn_OnlyUnderTheAgreedPolicy(t *testing.T) {
	t.Parallel()
	partly := platform.Enforcement{Protections: map[string]platform.Protection{
		platform.Filesystem: {Status: platform.Enforced}, platform.Network: {Status: platform.Degraded},
	}}
	for name, test := range map[string]struct {
		before, after string
		backend       *platformtest.Fake
		code          protocol.Code // 0: it starts
	}{
		"the same": {`{"enabled": true}`, `{"enabled": true}`, &platformtest.Fake{}, 0},
		"other settings": {
			`{"enabled": true}`, `{"enabled": true, "allow_network": false}`, &platformtest.Fake{},
			protocol.CodePolicyChanged,
		},
		"turned off": {
			`{"enabled": true}`, `{"enabled": false}`, &platformtest.Fake{}, protocol.CodePolicyChanged,
		},
		"agreed to none": {
			`{"enabled": false}`, `{"enabled": false}`, &platformtest.Fake{}, protocol.CodeSandboxUnavailable,
		},
		"not enforced": {
			`{"enabled": true}`, `{"enabled": true}`, &platformtest.Fake{Enforcement: partly},
			protocol.CodeSandboxUnavailable,
		},
		"no sandbox here": {
			`{"enabled": true, "on_unavailable": "warn"}`, `{"enabled": true, "on_unavailable": "warn"}`,
			&platformtest.Fake{Unavailable: platform.ErrUnavailable}, protocol.CodeSandboxUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, test.backend, test.before)
			e := f.connect()
			agreed := call(e, protocol.PolicyGet, protocol.PolicyGetParams{ProjectDir: f.dir, Kind: protocol.Tool})
			after := []byte(`{"terminal": {"sandbox": ` + test.after + `}}`)
			if err := os.WriteFile(f.settings, after, 0o600); err != nil {
				t.Fatal(err)
			}
			spawn := protocol.SpawnParams{Kind: protocol.Tool, Cwd: f.dir, Command: "touch", Args: []string{"ran"}}
			spawn.PolicyID = agreed.PolicyID
			if test.code == 0 { // that every process ends counts, too
				all := call(e, protocol.Spawn, protocol.SpawnParams{Kind: protocol.Tool, Cwd: f.dir, Command: "true"})
				if all.Sandbox.Protections[platform.ProcessTracking].Status != protocol.Enforced {
					test.code = protocol.CodeSandboxUnavailable
				}
			}
			reply, err := try(e, protocol.Spawn, spawn)
			if test.code == 0 {
				if err != nil || e.exit(reply.SessionID) != 0 {
					t.Errorf("it did not run: %v", err)
				}
				return
			}
			refused(t, err, test.code)
			if _, err := os.Stat(filepath.Join(f.dir, "ran")); err == nil {
				t.Error("it ran")
			}
			spawn.PolicyID = "" // the control
			if reply, err := try(e, protocol.Spawn, spawn); err != nil || e.exit(reply.SessionID) != 0 {
				t.Errorf("without an agreement: %v", err)
			}
		})
	}
}
