//go:build unix

package platformtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Features are the attacks that must fail under a backend. A protection that
// the backend reports as enforced must be among them. The zero value is a
// backend that confines nothing.
type Features struct {
	// Files: files that are not granted cannot be opened, created, removed,
	// renamed or linked, and programs run only from granted paths.
	Files bool
	// FileTree is no attack: a change outside the grants is refused with EROFS,
	// because what is not granted for writing is mounted read-only.
	FileTree bool
	// Truncate: granted files can be emptied by truncate(2). Others cannot in
	// any case.
	Truncate bool
	// Signals: processes outside cannot be signalled.
	Signals bool
	// UnixSockets: path sockets of outside processes cannot be connected to.
	UnixSockets bool
	// RootListed is no attack: the names in the root directory are open,
	// because no program starts without them.
	RootListed bool
}

// Run tests a backend against the contract. The package's TestMain must have
// called Main with the backend's part in the stage.
func Run(t *testing.T, backend platform.Backend, features Features) {
	s := suite{backend: backend, features: features}
	cases := map[string]func(*testing.T, suite){
		"the environment is exact":                    environmentIsExact,
		"the working directory is the one asked for":  workingDirectory,
		"no descriptor is inherited":                  noDescriptorIsInherited,
		"bytes that are no text arrive unchanged":     bytesArriveUnchanged,
		"an order without confinement is unconfined":  unrestrictedOrderIsUnconfined,
		"a failed step never executes":                failedStepNeverExecutes,
		"twenty launches at once":                     twentyLaunchesAtOnce,
		"the probe has an entry for each protection":  probeIsComplete,
		"the report has an entry for each protection": reportIsComplete,
	}
	if features.Files {
		for name, run := range confinement {
			cases[name] = run
		}
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, s)
		})
	}
}

// suite is a backend under test.
type suite struct {
	backend  platform.Backend
	features Features
}

// perform runs an actor under a policy with the given rules.
func (s suite) perform(t *testing.T, rules []policy.Rule, acts ...Act) []Result {
	t.Helper()
	results, _ := Perform(t, s.backend, Confined(t, s.backend, Policy(t, rules...), acts...))
	return results
}

// mustAllow fails the test unless every act succeeded.
func mustAllow(t *testing.T, acts []Act, results []Result) {
	t.Helper()
	for i, result := range results {
		if !result.OK() {
			t.Errorf("%s is granted, but failed: %s", acts[i], result.Error)
		}
	}
}

// mustRefuse fails the test unless the kernel refused every act.
func mustRefuse(t *testing.T, acts []Act, results []Result) {
	t.Helper()
	for i, result := range results {
		switch {
		case result.OK():
			t.Errorf("%s is not granted, but succeeded: %q", acts[i], result.Value)
		case !result.Refused():
			t.Errorf("%s failed, but not for want of permission: %s", acts[i], result.Error)
		}
	}
}

// mustRefuseChanges fails the test unless the kernel refused every act, with
// the error that it has for it under these rules.
func (s suite) mustRefuseChanges(t *testing.T, rules []policy.Rule, acts []Act, results []Result) {
	t.Helper()
	for i, result := range results {
		switch want := refusedAs(acts[i], rules, s.features.FileTree); {
		case result.OK():
			t.Errorf("%s is not granted, but succeeded: %q", acts[i], result.Value)
		case !refused(acts[i], result, want):
			t.Errorf("%s failed, but not as it must: %s, want error %d", acts[i], result.Error, want)
		}
	}
}

// scene is a directory tree to try acts on.
type scene struct{ dir string }

// newScene returns an empty one with a real path.
func newScene(t *testing.T) scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return scene{dir}
}

// file creates a file and the directories above it, and returns its path.
func (s scene) file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// rule grants a path of the scene.
func (s scene) rule(name string, access policy.Access) policy.Rule {
	return policy.Rule{
		Path: filepath.Join(s.dir, name), Access: access,
		Origin: policy.Origin{File: policy.OriginEditor, Key: "test"},
	}
}

// probeIsComplete also compares the probe with the features.
func probeIsComplete(t *testing.T, s suite) {
	protections := s.backend.Probe(context.Background())
	checkComplete(t, protections)
	s.checkHonest(t, protections)
}

func reportIsComplete(t *testing.T, s suite) {
	_, enforcement := Perform(t, s.backend, Confined(t, s.backend, Policy(t)))
	checkComplete(t, enforcement.Protections)
	s.checkHonest(t, enforcement.Protections)
}

func checkComplete(t *testing.T, protections map[string]platform.Protection) {
	t.Helper()
	for _, name := range platform.Protections {
		protection, ok := protections[name]
		switch {
		case name == platform.ProcessTracking && ok:
			t.Errorf("%s is not a backend's to report", name)
		case name == platform.ProcessTracking:
		case !ok:
			t.Errorf("%s is not reported", name)
		case protection.Detail == "":
			t.Errorf("%s is %s without a detail", name, protection.Status)
		case protection.Status != platform.Absent && protection.Mechanism == "":
			t.Errorf("%s is %s without a mechanism", name, protection.Status)
		}
	}
	if want := len(platform.Protections) - 1; len(protections) != want {
		t.Errorf("%d protections are reported, want %d", len(protections), want)
	}
}

// checkHonest fails the test if a protection is claimed that an attack would
// disprove.
func (s suite) checkHonest(t *testing.T, protections map[string]platform.Protection) {
	t.Helper()
	if !s.features.Files {
		return // a fake, which claims what the test says
	}
	for name, holds := range map[string]bool{
		platform.Filesystem: s.features.Files, platform.Signals: s.features.Signals,
		platform.UnixSockets: s.features.UnixSockets,
	} {
		if protections[name].Status == platform.Enforced && !holds {
			t.Errorf("%s is reported as enforced, which it is not", name)
		}
		if protections[name].Status == platform.Absent && holds {
			t.Errorf("%s is reported as absent, which it is not", name)
		}
	}
	for _, name := range []string{platform.Filesystem, platform.Execute} {
		if protections[name].Status == platform.Absent {
			t.Errorf("%s is reported as absent, which it is not", name)
		}
	}
}
