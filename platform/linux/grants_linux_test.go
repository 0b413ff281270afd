package linux

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A socket in another's place is known by what it is, not by its path.
func TestGrantSockets_InAnothersPlace(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(harness.ShortDir(t))
	harness.Must(t, err)
	filter, other := filepath.Join(dir, "filter"), filepath.Join(dir, "other")
	for _, path := range []string{filter, other} {
		listener, err := net.Listen("unix", path)
		harness.Must(t, err)
		defer listener.Close()
	}
	p := &policy.Policy{
		Restricted: true, UnixSockets: []policy.UnixSocket{{Path: filter}, {Path: other}},
		Replaced: []policy.Replaced{{Path: "/home/u/agent", Source: filter}},
	}
	r := &ruleset{Ruleset: stage.Translate(p, 9)}
	got := r.grantSockets(p)
	for _, rule := range r.Rules {
		if bound := rule.Checked != nil; bound != (string(rule.Path) == filter) {
			t.Errorf("%s: the rule is for a checked socket: %t", rule.Path, bound)
		}
	}
	if !slices.Equal(got.Pinned, []string{filter}) || !slices.Equal(got.Paths, []string{other}) {
		t.Errorf("%+v", got)
	}
}

// A session that moves another daemon's socket to the path of a granted one, after
// that was checked and before the stage opens it, is not connected to it. From
// Linux 7.1 on Landlock decides that, below it the sidecar.
func TestConfine_GrantsTheSocketThatWasChecked(t *testing.T) {
	t.Parallel()
	if abi := requireLandlock(t); abi < 9 {
		if err := mediationAvailable(); err != nil {
			harness.Skip(t, platform.UnixSockets, err.Error())
		}
	}
	for name, moved := range map[string]bool{"as it was": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(harness.ShortDir(t))
			harness.Must(t, err)
			granted, other := filepath.Join(dir, "granted"), filepath.Join(dir, "other")
			for _, path := range []string{granted, other} {
				listener, err := net.Listen("unix", path)
				harness.Must(t, err)
				defer listener.Close()
			}
			p := platformtest.Policy(t, rule(dir, policy.ReadWrite, "f"))
			p.UnixSockets = []policy.UnixSocket{{Path: granted}}
			act := platformtest.Act{Verb: platformtest.Connect, Path: granted}
			order := platformtest.Confined(t, Backend{}, p, act)
			if moved {
				harness.Must(t, os.Rename(other, granted))
			}
			results, _ := platformtest.Perform(t, Backend{}, order)
			switch connected := results[0].OK(); {
			case connected && moved:
				harness.Breach(t, "connected to a socket that was moved to the path of a granted one")
			case !connected && !moved:
				t.Errorf("the granted socket: %+v", results[0])
			}
		})
	}
}

// What was granted and is gone by the start, or behind a symlink, is reported with
// the reason, and the symlink moves the grant nowhere.
func TestStage_SaysWhyAGrantIsLost(t *testing.T) {
	t.Parallel()
	requireLandlock(t)
	top := realTempDir(t)
	at := func(name string) string { return filepath.Join(top, name) }
	rules := []policy.Rule{}
	for _, name := range []string{"kept", "gone", "linked", "secret"} {
		harness.Must(t, os.Mkdir(at(name), 0o700))
		if name != "secret" {
			rules = append(rules, rule(at(name), policy.Read, "f"))
		}
	}
	acts := []platformtest.Act{
		{Verb: platformtest.List, Path: at("kept")},
		{Verb: platformtest.List, Path: at("secret")},
		{Verb: platformtest.List, Path: at("linked")},
	}
	order := platformtest.Confined(t, Backend{}, platformtest.Policy(t, rules...), acts...)
	harness.Must(t, errors.Join(os.Remove(at("gone")), os.Remove(at("linked")), os.Symlink("secret", at("linked"))))
	results, enforcement := platformtest.Perform(t, Backend{}, order)
	if !results[0].OK() {
		t.Errorf("what is still there: %+v", results[0])
	}
	if results[1].OK() || results[2].OK() {
		harness.Breach(t, "a symlink has moved a grant: %+v", results)
	}
	want := []platform.Missing{
		{Path: at("gone"), Reason: "it was not there at the start"},
		{Path: at("linked"), Reason: "a symlink was on the way to it"},
	}
	if !slices.Equal(enforcement.Missing, want) {
		t.Errorf("%+v, want %+v", enforcement.Missing, want)
	}
}
