//go:build unix

package rpc

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// restricting are keys with values that restrict, and the protection that each
// asks for. Those of keys that always hold are "".
var restricting = []struct {
	key, protection string
	value           any
}{
	{"allow_network", "network", false},
	{"allowed_hosts", "network_hosts", []string{"example.com"}},
	{"denied_hosts", "", []string{"example.org"}},
	{"localhost", "network", "none"},
	{"allowed_env_vars", "", []string{"PATH"}},
	{"allowed_unix_sockets", "unix_sockets", []string{"/run/one.sock"}},
	{"signing_keys", "unix_sockets", []string{}},
	{"protected_paths", "protected_paths", []string{"Makefile"}},
	{"hidden_paths", "hidden_paths", []string{"secret"}},
	{"parent_repository", "filesystem", "off"},
	{"temporary_files", "temporary_files", "private"},
	{"toolchain_caches", "toolchain_caches", "private"},
	{"limits.processes", "limits", 50},
	{"limits.memory", "limits", "512M"},
	{"limits.cpu_weight", "limits", 50},
	{"limits.connections", "", 8},
	{"on_denied", "denials", "report"},
	{"toolchains", "", []string{"go"}},
	{"audit_argv", "", "program"},
}

// Whatever is written, and whatever the machine enforces: warnings name each key
// that does not hold, and no other; policy/get says the same.
func TestSpawn_NamesEveryKeyThatDoesNotHold(t *testing.T) {
	t.Parallel()
	const machines, rounds = 30, 10
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	said, silent := 0, 0
	for range machines {
		enforcement := anyEnforcement(random)
		f := start(t, &platformtest.Fake{Enforcement: enforcement}, `{}`)
		e := f.connect()
		for range rounds {
			written := writeAny(t, f, random)
			result := call(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "true"})
			policy := call(e, protocol.PolicyGet, protocol.PolicyGetParams{ProjectDir: f.dir, Kind: protocol.Terminal})
			unheld := enforcement.Unheld
			if row := result.Sandbox.Protections["limits"]; !strings.Contains(row.Mechanism, "memory.max") {
				unheld = append(slices.Clone(unheld), "limits.memory", "limits.cpu_weight")
			}
			if enforcement.Protections["limits"].Status != platform.Enforced &&
				!strings.Contains(result.Sandbox.Protections["limits"].Mechanism, "pids.max") {
				unheld = append(slices.Clone(unheld), "limits.processes")
			}
			for _, one := range restricting {
				want := slices.Contains(written, one.key) && lacks(enforcement, unheld, one.key, one.protection)
				for where, warnings := range map[string][]string{
					"terminal/spawn": result.Sandbox.Warnings, "policy/get": policy.Warnings,
				} {
					if got := names(warnings, one.key); got != want {
						t.Errorf("%s with %q on %+v: %s is named: %v, want %v\n%q", where, written, enforcement,
							one.key, got, want, warnings)
					}
				}
				if want {
					said++
				} else {
					silent++
				}
			}
		}
	}
	if said < 100 || silent < 100 {
		t.Errorf("%d keys did not hold and %d did: that is no test", said, silent)
	}
}

// anyEnforcement is what some machine enforces.
func anyEnforcement(random *rand.Rand) platform.Enforcement {
	rows := map[string]platform.Protection{}
	for _, name := range platform.Protections {
		if name == platform.ProcessTracking {
			continue
		}
		rows[name] = platform.Protection{
			Status: []platform.Status{platform.Enforced, platform.Degraded, platform.Absent}[random.IntN(3)],
			Detail: "as it happens", NotRequested: name != platform.Limits && random.IntN(4) == 0,
		}
	}
	enforcement := platform.Enforcement{Protections: rows}
	if random.IntN(2) == 0 {
		enforcement.Unheld = []string{"localhost"}
	}
	return enforcement
}

// writeAny writes settings with some of the keys, and returns these.
func writeAny(t *testing.T, f *fixture, random *rand.Rand) []string {
	t.Helper()
	block := map[string]any{"enabled": true}
	var written []string
	for _, one := range restricting {
		if random.IntN(3) > 0 {
			continue
		}
		written = append(written, one.key)
		at, name := block, one.key
		if within, of, nested := strings.Cut(one.key, "."); nested {
			if block[within] == nil {
				block[within] = map[string]any{}
			}
			at, name = block[within].(map[string]any), of
		}
		at[name] = one.value
	}
	text, err := json.Marshal(map[string]any{"terminal": map[string]any{"sandbox": block}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.settings, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return written
}

// lacks says the same as the reference of settings: which keys hold by which row.
func lacks(machine platform.Enforcement, unheld []string, key, protection string) bool {
	row := machine.Protections[protection]
	switch {
	case protection == "":
		return false
	case key == "localhost", protection == "limits":
		return slices.Contains(unheld, key)
	case row.NotRequested, row.Status == platform.Enforced:
		return false
	}
	return key != "on_denied" || row.Status == platform.Absent // the key promises no more than some reports
}

// names reports whether a warning names a key as one that is not enforced.
func names(warnings []string, key string) bool {
	return slices.ContainsFunc(warnings, func(warning string) bool {
		keys, _, of := strings.Cut(warning, " enforced here: ")
		return of && strings.Contains(keys, `"`+key+`"`)
	})
}
