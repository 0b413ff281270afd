//go:build unix

package rpc

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// restricting are keys with values that restrict, and the protection that each
// asks for. Those of keys that always hold are "".
var restricting = []struct {
	key, protection string
	value           any
}{
	{"system_paths.executable", "execute", []string{"/usr", "/bin", "/lib", "/lib64"}},
	{"system_paths.read_only", "filesystem", []string{"/etc"}},
	{"system_paths.read_write", "filesystem", []string{"/tmp", "/dev/null"}},
	{"allow_network", "network", false},
	{"allowed_hosts", "network_hosts", []string{"example.com"}},
	{"denied_hosts", "", []string{"example.org"}},
	{"localhost", "network", "none"},
	{"allowed_env_vars", "", []string{"PATH"}},
	{"allowed_unix_sockets", "unix_sockets", []string{"/run/one.sock"}},
	{"signing_keys", "unix_sockets", []string{}},
	{"credentials", "hidden_paths", map[string]any{"TOKEN": map[string]any{"hosts": []string{}}}},
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

// notRestricting are the other keys: they only grant, say who is restricted and
// what happens otherwise, or are no matter of the machine.
var notRestricting = []string{
	"enabled", "mode", "apply_to", "additional_executable_paths", "additional_read_only_paths",
	"additional_read_write_paths", "shell", "on_unavailable", "process_tracking", "audit", "audit_required",
}

// noLandlock is why a machine cannot sandbox.
const noLandlock = "there is no Landlock"

// A new key is part of the property below, or a reason says why not.
func TestRestricting_KnowsEveryKey(t *testing.T) {
	t.Parallel()
	known := slices.Clone(notRestricting)
	for _, one := range restricting {
		known = append(known, one.key)
	}
	var keys []string
	for _, key := range document.Keys() {
		keys = append(keys, key.Name)
	}
	slices.Sort(known)
	slices.Sort(keys)
	if !slices.Equal(known, keys) {
		t.Errorf("known are %q\nkeys are  %q", known, keys)
	}
}

// Whatever is written, in whichever block, and whatever the machine enforces, or
// if it cannot sandbox at all: warnings name each key that does not hold, and no
// other; policy/get says the same. Without a sandbox no session starts that must not
// have the network, and each other one does.
func TestSpawn_NamesEveryKeyThatDoesNotHold(t *testing.T) {
	t.Parallel()
	machines, rounds := 30, 10
	if testing.Short() {
		machines = 15
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	said, silent, refused := 0, 0, 0
	for machine := range machines {
		enforcement := anyEnforcement(random)
		backend, confines := &platformtest.Fake{Enforcement: enforcement}, machine%5 > 0
		if !confines {
			backend.Unavailable = errors.New(noLandlock)
		}
		f := start(t, backend, `{}`)
		e := f.connect()
		for range rounds {
			written := writeAny(t, f, random)
			result, err := try(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "true"})
			refuses := !confines && slices.Contains(written, "allow_network")
			if refuses {
				refused++
			}
			if refuses != (err != nil) || refuses && !isNetworkRefusal(err) {
				t.Fatalf("terminal/spawn with %q on %+v, confines: %v: %v", written, enforcement, confines, err)
			}
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
				if !confines {
					want = slices.Contains(written, one.key) && needsSandbox(one.key, one.protection)
				}
				warned := map[string][]string{"policy/get": policy.Warnings}
				if !refuses {
					warned["terminal/spawn"] = result.Sandbox.Warnings
				}
				for where, warnings := range warned {
					if got := names(warnings, one.key); got != want {
						t.Errorf("%s with %q on %+v, confines: %v: %s is named: %v, want %v\n%q", where, written,
							enforcement, confines, one.key, got, want, warnings)
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
	if said < 100 || silent < 100 || refused == 0 {
		t.Errorf("%d keys did not hold, %d did, %d sessions were refused: that is no test", said, silent, refused)
	}
}

// isNetworkRefusal reports whether an error is the answer to a session that must not
// have the network, from a machine without sandboxes.
func isNetworkRefusal(err error) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Code == protocol.CodeSandboxUnavailable &&
		refused.Message == "confine session: sandbox unavailable: "+noLandlock &&
		strings.HasPrefix(refused.Data.Hint, "set allow_network to true;")
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

// writeAny writes settings with some of the keys, and returns those that count for
// terminals: not those of the block for tools.
func writeAny(t *testing.T, f *fixture, random *rand.Rand) []string {
	t.Helper()
	terminals, tools := map[string]any{}, map[string]any{}
	block := map[string]any{"enabled": true, "terminal": terminals, "tool": tools}
	var written []string
	for _, one := range restricting {
		at := block
		switch random.IntN(9) {
		case 0, 1:
		case 2:
			if !document.OnlyWhole(one.key) {
				at = terminals
			}
		case 3:
			if !document.OnlyWhole(one.key) {
				put(tools, one.key, one.value)
			}
			continue
		default:
			continue
		}
		written = append(written, one.key)
		put(at, one.key, one.value)
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

// put writes a key, which may be one of an object in the block.
func put(block map[string]any, key string, value any) {
	if within, name, nested := strings.Cut(key, "."); nested {
		if block[within] == nil {
			block[within] = map[string]any{}
		}
		block, key = block[within].(map[string]any), name
	}
	block[key] = value
}

// needsSandbox says which keys do not hold in a session without a sandbox: those
// of a protection, and those that bound the connections that the sidecar makes.
func needsSandbox(key, protection string) bool {
	return protection != "" || key == "denied_hosts" || key == "limits.connections"
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
		return of && (strings.Contains(keys, `"`+key+`"`) || strings.Contains(keys, `"terminal.`+key+`"`))
	})
}
