package linux

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { platformtest.Main(m, stage.ConfineSelf) }

// requireLandlock returns the kernel's ABI version. If there is none, it skips the
// test; see harness.Skip.
func requireLandlock(t *testing.T) int {
	t.Helper()
	abi, err := stage.LandlockABI()
	if err != nil {
		harness.Skip(t, platform.Filesystem, err.Error())
	}
	return abi
}

// features are what a kernel with this ABI version can do.
func features(abi int) platformtest.Features {
	return platformtest.Features{
		Files: true, FileTree: availableNamespaces().Mounts, Truncate: abi >= stage.TruncationABI, Signals: abi >= 6,
		UnixSockets: abi >= 9 || mediationAvailable() == nil,
	}
}

func TestBackend_Conforms(t *testing.T) {
	t.Parallel()
	abi := requireLandlock(t)
	platformtest.Run(t, Backend{}, features(abi))
}

func TestBackend_ConformsWithoutNamespaces(t *testing.T) {
	t.Parallel()
	abi := requireLandlock(t)
	without := features(abi)
	without.FileTree = false
	platformtest.Run(t, Backend{namespaces: &namespace.Available{Gap: "switched off"}}, without)
}

// Package darwin tests its evaluator of Seatbelt profiles with the same table.
func TestBackend_AnswersAsInTheTable(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	t.Logf("%d answers of the kernel are as in the table", platformtest.RunTable(t, Backend{}))
}

// older emulates a kernel with an older ABI version: every kernel accepts the
// rulesets of its predecessors.
type older struct {
	Backend
	abi int
}

func (o older) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	return confine(ruleset{stage.Translate(p, o.abi)}, p, nil, hooks)
}

// The test tries all versions whose rights this kernel knows. A version above
// the last preset is treated as the last.
func TestBackend_ConformsOnOtherKernels(t *testing.T) {
	t.Parallel()
	abi := requireLandlock(t)
	have, haveScoped := stage.Handled(abi)
	tried := 0
	for _, version := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20} {
		fs, scoped := stage.Handled(version)
		if fs&^have != 0 || scoped&^haveScoped != 0 {
			continue
		}
		tried++
		t.Run(fmt.Sprintf("abi %d", version), func(t *testing.T) {
			t.Parallel()
			backend := older{abi: version}
			for _, verb := range []platformtest.Verb{platformtest.Kill, platformtest.Truncate} {
				probeOlder(t, backend, verb)
			}
			probeMove(t, backend)
		})
	}
	if tried == 0 {
		t.Error("not even the rights of this kernel's own version are known")
	}
}

// probeMove moves a file between two directories of the project. Landlock allows
// that only from ABI 2 on.
func probeMove(t *testing.T, backend older) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	harness.Write(t, dir+"/from/file", "content")
	if err := os.Mkdir(dir+"/to", 0o700); err != nil {
		t.Fatal(err)
	}
	p := platformtest.Policy(t, rule(dir, policy.ReadWrite, policy.OriginSession))
	act := platformtest.Act{Verb: platformtest.Rename, Path: dir + "/from/file", Target: dir + "/to/file"}
	results, _ := platformtest.Perform(t, backend, platformtest.Confined(t, backend, p, act))
	if moved := results[0].OK(); moved != (backend.abi >= 2) {
		t.Errorf("%s: %+v", act, results[0])
	}
}

// probeOlder compares the report of an older kernel with one attack.
func probeOlder(t *testing.T, backend older, verb platformtest.Verb) {
	t.Helper()
	victim := t.TempDir() + "/victim"
	harness.Write(t, victim, "content")
	bystander := platformtest.NewBystander(t)
	act := platformtest.Act{Verb: verb, Path: victim, PID: bystander.PID()}
	results, enforcement := platformtest.Perform(t, backend,
		platformtest.Confined(t, backend, platformtest.Policy(t), act))
	holds := true
	status := enforcement.Protections[platform.Filesystem].Status
	if verb == platformtest.Kill {
		holds = features(backend.abi).Signals
		status = enforcement.Protections[platform.Signals].Status
	}
	if results[0].OK() == holds || results[0].Refused() != holds {
		t.Errorf("%s: %+v", act, results[0])
	}
	if status == platform.Enforced && !holds {
		t.Errorf("%s succeeds although the report says %s", act, status)
	}
}
