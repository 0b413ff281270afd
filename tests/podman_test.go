//go:build linux

package tests

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/containers"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// In a container of rootless Podman a session has all that namespaces give. The
// root of the container is the ordinary user who has started it.
func TestPodman_TakesNothingFromSessions(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	w := harness.NewWorld(t)
	victim := filepath.Join(w.Project, "victim")
	harness.Victim(t, "tests/victim", victim)
	run := func(args ...string) ([]byte, error) {
		line := containers.Podman(victim, args...)
		command := exec.Command(line[0], line[1:]...)
		command.Env, command.Dir = harness.Environ(w), w.Project
		return command.Output()
	}
	if out, err := run("/bin/true"); err != nil {
		harness.Skip(t, "user_namespaces", err.Error()+": "+string(out))
	}
	if out, err := run("/bin/sh", "-c", "exec unshare --user --mount true"); err != nil {
		t.Fatalf("the filter refuses namespaces: %v: %s", err, out)
	}
	out, err := run(harness.Binary(t), "doctor", "--json")
	if err != nil {
		t.Errorf("doctor: %v", err)
	}
	var diagnosis struct {
		Protections []struct {
			Name, Status, Detail string
			Attacks              []struct{ Attack, Verdict string }
		}
	}
	harness.Must(t, json.Unmarshal(out, &diagnosis))
	lesser := []string{"limits", "process_tracking", "denials"} // as without a container and without a cgroup
	for _, p := range diagnosis.Protections {
		if p.Status != "enforced" && !slices.Contains(lesser, p.Name) {
			t.Errorf("%s is %s: %s", p.Name, p.Status, p.Detail)
		}
		for _, a := range p.Attacks {
			if p.Status == "enforced" && a.Verdict != "held" && a.Verdict != "untried" {
				t.Errorf("%s: %s: %s", p.Name, a.Attack, a.Verdict)
			}
		}
	}
	if len(diagnosis.Protections) < 10 {
		t.Errorf("doctor says %s", out)
	}
}
