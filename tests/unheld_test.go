package tests

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// askedOf are keys with values that restrict, and the protections that they ask
// for.
var askedOf = []struct {
	key, protection string
	value           any
}{
	{"allow_network", "network", false},
	{"allowed_unix_sockets", "unix_sockets", []string{}},
	{"protected_paths", "protected_paths", []string{"Makefile"}},
	{"hidden_paths", "hidden_paths", []string{"secret"}},
	{"temporary_files", "temporary_files", "private"},
	{"limits.processes", "limits", 500},
	{"limits.memory", "limits", "2G"},
	{"limits.cpu_weight", "limits", 50},
}

// With and without cgroups and namespaces, as root and as a user: what somebody
// wrote and the machine does not enforce is named in the reply, on the screen of
// exec and by policy. Nothing is named that holds.
func TestUnheld_IsNamedOnEveryMachine(t *testing.T) {
	t.Parallel()
	for _, machine := range harness.Machines(t) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			harness.WithAndWithoutCgroups(t, func(t *testing.T, wrap func(*exec.Cmd)) {
				unheldOn(t, func(command *exec.Cmd) {
					if machine.Wrap != nil {
						machine.Wrap(command)
					}
					wrap(command)
				})
			})
		})
	}
}

func unheldOn(t *testing.T, wrap func(*exec.Cmd)) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	chosen := uint64(0)
	for round := range rounds {
		if chosen = ^chosen; round%2 == 0 { // each key is written in one round of two
			chosen = random.Uint64()
		}
		w := harness.NewWorld(t)
		block, written := harness.Sandbox{}, []string{}
		for i, one := range askedOf {
			if chosen>>i&1 == 0 {
				continue
			}
			written = append(written, one.key)
			if _, limit, nested := strings.Cut(one.key, "."); nested {
				limits, _ := block["limits"].(map[string]any)
				if limits == nil {
					limits = map[string]any{}
				}
				limits[limit], block["limits"] = one.value, limits
			} else {
				block[one.key] = one.value
			}
		}
		harness.Write(t, filepath.Join(w.Project, "secret"), "readable")
		e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(block), Wrap: wrap})
		s := e.Spawn(protocol.SpawnParams{Command: "cat secret"})
		s.Exit()
		screen := sidecarPrints(t, w, wrap, "exec", "--", "true")
		printed := sidecarPrints(t, w, wrap, "policy")
		agent := sidecarPrints(t, w, wrap, "acp", "--", "true")
		for _, one := range askedOf {
			row := s.Sandbox.Protections[one.protection]
			holds := row.Status == protocol.Enforced
			switch one.key {
			case "limits.processes":
				holds = strings.Contains(row.Mechanism, "RLIMIT_NPROC") || strings.Contains(row.Mechanism, "pids.max")
			case "limits.memory":
				holds = strings.Contains(row.Mechanism, "memory.max")
			case "limits.cpu_weight": // the controllers come together
				holds = strings.Contains(row.Mechanism, "memory.max")
			}
			want := slices.Contains(written, one.key) && !holds
			for where, text := range map[string]string{
				"the reply": strings.Join(s.Sandbox.Warnings, "\n"), "exec": screen, "policy": printed,
				"acp": agent,
			} {
				if got := saysUnheld(text, one.key); got != want {
					t.Errorf("%q, written %q: %s names it: %v, want %v\n%s\n%+v", one.key, written, where, got, want,
						text, row)
				}
			}
		}
		// The control: what is said of hidden paths is so.
		open := strings.Contains(s.Output(), "readable")
		hidden := slices.Contains(written, "hidden_paths")
		if hidden && open != saysUnheld(strings.Join(s.Sandbox.Warnings, "\n"), "hidden_paths") || !hidden && !open {
			t.Errorf("hidden: %v, the session reads it: %v\n%q", hidden, open, s.Sandbox.Warnings)
		}
	}
}

// sidecarPrints runs the sidecar in the world's project, and returns what it prints.
func sidecarPrints(t *testing.T, w *harness.World, wrap func(*exec.Cmd), args ...string) string {
	t.Helper()
	command := exec.Command(harness.Binary(t), args...)
	command.Dir, command.Env = w.Project, harness.Environ(w)
	wrap(command)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%q: %v\n%s", args, err, output)
	}
	return harness.Unfold(string(output))
}

func saysUnheld(text, key string) bool {
	for line := range strings.Lines(text) {
		if keys, _, of := strings.Cut(line, " enforced here: "); of && strings.Contains(keys, `"`+key+`"`) {
			return true
		}
	}
	return false
}

// Before the first session, policy tries what the machine enforces without the
// directories that sessions get made.
func TestUnheld_PolicyBeforeTheFirstSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
		"toolchains": []string{"go", "java", "node"}, "hidden_paths": []string{"~/private"},
	}))
	command := exec.Command(harness.Binary(t), "policy")
	command.Dir, command.Env = w.Project, harness.Environ(w)
	if out, err := command.CombinedOutput(); err != nil || strings.Contains(string(out), "is not known") {
		t.Errorf("%v: %s", err, out)
	}
}
