//go:build unix

package rpc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// A grant whose path was there when the settings were read, and that the session
// does not have, is named in the answer. One whose path was never there is not.
func TestSpawn_NamesLostGrants(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	there, never := filepath.Join(dir, "there"), filepath.Join(dir, "never")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := []platform.Missing{
		{Path: there, Reason: "it was not there at the start"},
		{Path: never, Reason: "it was not there at the start"},
		{Path: "/no/default", Reason: "it was not there at the start"},
	}
	paths, err := json.Marshal([]string{there, never})
	if err != nil {
		t.Fatal(err)
	}
	block := `{"enabled": true, "additional_read_only_paths": ` + string(paths) + `}`
	for name, test := range map[string]struct {
		missing []platform.Missing
		named   bool
	}{"lost": {missing, true}, "granted": {missing[1:], false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, &platformtest.Fake{Enforcement: platform.Enforcement{Missing: test.missing}}, block)
			e := f.connect()
			result := call(e, protocol.Spawn, protocol.SpawnParams{Kind: protocol.Tool, Cwd: f.dir, Command: "true"})
			warnings := slices.DeleteFunc(result.Sandbox.Warnings, func(warning string) bool {
				return !strings.Contains(warning, "is lost")
			})
			if test.named != (len(warnings) == 1) || len(warnings) > 1 {
				t.Fatalf("%q", warnings)
			}
			if test.named && (!strings.Contains(warnings[0], `"`+there+`", from `) ||
				!strings.Contains(warnings[0], " is lost: it was not there at the start; ") ||
				!strings.Contains(warnings[0], "additional_read_only_paths")) {
				t.Errorf("%q", warnings)
			}
		})
	}
}
