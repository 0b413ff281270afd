package risks_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// The other tables of the package: sockets, ports, variables that move places, and
// names.

// A place that a variable moves needs the same care where it is then, for each
// variable. Without the variables most of these paths are suggested.
func TestGate_FollowsEachVariable(t *testing.T) {
	t.Parallel()
	env := risks.Variables("/srv/moved")
	moved := risks.In([]string{home}, func(name string) string { return env[name] })[len(risks.All()):]
	tree := map[string]string{}
	for _, place := range moved {
		tree[place.Path+"/there"] = ""
	}
	set, unset := machine{env: env, tree: tree}.snapshot(t), machine{tree: tree}.snapshot(t)
	asked, suggested, seen := 0, 0, map[string]bool{}
	for _, place := range moved {
		seen[place.Variable] = true
		if place.Class() == 0 {
			continue
		}
		accesses := []string{"write"}
		if place.Secret != "" || place.Agent != "" {
			accesses = append(accesses, "read")
		}
		for _, access := range accesses {
			target := path.Join(place.Path, "there")
			asked++
			got, err := explain.Suggest(set, document.KindTool, access, target, "")
			switch apart := access == "write" && got.Setting() == aSet && !ofAgent(got.Value); {
			case err != nil, got.Allowed, got.Key != "" && !apart:
				t.Errorf("%s: %s %s: %+v, %v", place.Variable, access, target, got, err)
			}
			if got, err := explain.Suggest(unset, document.KindTool, access, target, ""); err == nil && got.Key != "" {
				suggested++
			}
		}
	}
	for name := range env {
		if !seen[name] {
			t.Errorf("%s moves nothing", name)
		}
	}
	if 2*suggested < asked {
		t.Errorf("control: without the variables only %d of %d paths are suggested", suggested, asked)
	}
}

// named is a path that a pattern stands for: each * is a name of that row.
func named(pattern string, row int) string {
	name := strings.ReplaceAll(pattern, "*", fmt.Sprint("x", row))
	if below, is := strings.CutPrefix(name, "~"); is {
		return home + below
	}
	return name
}

// No socket of the table is suggested. The hint says what the program behind it does
// for those who connect.
func TestGate_SuggestsNoSocketOfTheTable(t *testing.T) {
	t.Parallel()
	const other = "/srv/data/socket"
	tree := map[string]string{other: ""}
	for i, row := range risks.Sockets() {
		if at := named(row.Path, i); !strings.HasPrefix(at, risks.AbstractPrefix) {
			tree[at] = ""
		}
	}
	for i, pattern := range risks.NameServices {
		tree[named(pattern, i)] = ""
	}
	s := machine{tree: tree}.snapshot(t)
	for i, row := range risks.Sockets() {
		target := named(row.Path, i)
		got, err := explain.Suggest(s, document.KindTool, "connect_unix", target, "")
		if row.Obeys == "" || err != nil || got.Key != "" || !strings.HasPrefix(got.Hint, "careful: "+row.Obeys) {
			t.Errorf("%s: %+v, %v", target, got, err)
		}
		x, err := explain.Why(s, document.KindTool, explain.ConnectUnix, target)
		if err != nil || x.Allowed || !x.Careful() || !strings.HasPrefix(x.Hint, "careful: ") {
			t.Errorf("%s is explained as %+v, %v", target, x, err)
		}
	}
	for i, pattern := range risks.NameServices {
		target := named(pattern, i)
		got, err := explain.Suggest(s, document.KindTool, "connect_unix", target, "")
		if err != nil || got.Key != "" || !strings.HasPrefix(got.Hint, "careful: ") {
			t.Errorf("%s, which looks names up: %+v, %v", target, got, err)
		}
	}
	got, err := explain.Suggest(s, document.KindTool, "connect_unix", other, "")
	if err != nil || got.Key != "allowed_unix_sockets" || got.Value != other {
		t.Errorf("control: %+v, %v", got, err)
	}
}

// No port is suggested at which a program usually listens that carries out what
// others say.
func TestGate_SuggestsNoPortOfTheTable(t *testing.T) {
	t.Parallel()
	s := machine{settings: `{"enabled": true, "localhost": "own"}`}.snapshot(t)
	for port, who := range risks.Obeying {
		got, err := explain.Suggest(s, document.KindTool, "connect", fmt.Sprint("127.0.0.1:", port), "")
		if who == "" || err != nil || got.Key != "" || !strings.HasPrefix(got.Hint, "careful: "+who) {
			t.Errorf("%d, %q: %+v, %v", port, who, got, err)
		}
	}
	const other = 4321
	if who := risks.Obeying[other]; who != "" {
		t.Fatalf("%d is that of %s: choose another", other, who)
	}
	got, err := explain.Suggest(s, document.KindTool, "connect", fmt.Sprint("127.0.0.1:", other), "")
	if err != nil || got.Key != "allowed_hosts" || got.Value != fmt.Sprint("localhost:", other) {
		t.Errorf("control: %+v, %v", got, err)
	}
}

// Settings that say which programs run are not suggested for writing, whether they
// exist or not.
func TestGate_SuggestsNoFileThatNamesPrograms(t *testing.T) {
	t.Parallel()
	s := machine{tree: map[string]string{home + "/.config/": ""}}.snapshot(t)
	for i, pattern := range risks.Naming {
		target := named(pattern, i)
		for _, access := range []string{"write", "create", "remove"} {
			got, err := explain.Suggest(s, document.KindTool, access, target, "")
			apart := got.Setting() == aSet && !ofAgent(got.Value)
			if err != nil || got.Key != "" && !apart || got.Key == "" && !got.Allowed && got.Hint == "" {
				t.Errorf("%s %s: %+v, %v", access, target, got, err)
			}
		}
	}
	suggestsTheHarmless(t, s)
}

// In a directory that an answer has opened, a file of a usual name of secrets needs
// an answer for itself.
func TestGate_OpensNoSecretNameUnseen(t *testing.T) {
	t.Parallel()
	tree, dir := map[string]string{}, path.Dir(harmless)
	for i, pattern := range risks.SecretNames {
		tree[path.Join(dir, named(pattern, i))] = ""
	}
	s := machine{tree: tree}.snapshot(t)
	for target := range tree {
		if explain.Unseen(s, document.KindTool, "read", target) {
			t.Errorf("%s is opened unseen", target)
		}
	}
	if !explain.Unseen(s, document.KindTool, "read", harmless) {
		t.Errorf("control: %s is not", harmless)
	}
}
