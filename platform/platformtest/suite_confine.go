//go:build unix

package platformtest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// confinement are the cases for backends that confine. In each, an allowed act
// must succeed and its forbidden twin must fail: a sandbox that denies
// everything must not pass.
var confinement = map[string]func(*testing.T, suite){
	"reading follows the grants":                    readingFollowsTheGrants,
	"writing follows the grants":                    writingFollowsTheGrants,
	"executing follows the grants":                  executingFollowsTheGrants,
	"names that lead out are followed to their end": namesThatLeadOut,
	"moving files does not widen a grant":           movingDoesNotWiden,
	"the working directory is no grant":             workingDirectoryIsNoGrant,
	"the program must be granted":                   programMustBeGranted,
	"missing grants are reported":                   missingGrantsAreReported,
	"a missing required grant executes nothing":     missingRequiredGrant,
	"a policy that grants nothing denies the root":  nothingGranted,
	"children are confined":                         childrenAreConfined,
	"processes outside cannot be signalled":         signals,
	"sockets outside cannot be connected to":        unixSockets,
}

func readingFollowsTheGrants(t *testing.T, s suite) {
	scene := newScene(t)
	inside, outside := scene.file(t, "in/file", "inside"), scene.file(t, "out/file", "outside")
	single, sibling := scene.file(t, "mixed/granted", "granted"), scene.file(t, "mixed/granted-not", "sibling")
	executable := scene.file(t, "program/file", "")
	rules := []policy.Rule{
		scene.rule("in", policy.Read), scene.rule("mixed/granted", policy.Read),
		scene.rule("program", policy.Execute),
	}
	allowed := []Act{{Verb: Read, Path: inside}, {Verb: List, Path: filepath.Dir(inside)}, {Verb: Read, Path: single}}
	forbidden := []Act{
		{Verb: Read, Path: outside},
		{Verb: List, Path: filepath.Dir(outside)},
		{Verb: Read, Path: sibling},
		{Verb: List, Path: filepath.Dir(single)},
		{Verb: List, Path: scene.dir},
		{Verb: Read, Path: executable}, // executing is not reading
	}
	results := s.perform(t, rules, slices.Concat(allowed, forbidden)...)
	mustAllow(t, allowed, results[:len(allowed)])
	mustRefuse(t, forbidden, results[len(allowed):])
}

func writingFollowsTheGrants(t *testing.T, s suite) {
	scene := newScene(t)
	verbs := []struct{ verb, name string }{
		{string(Write), "written"},
		{string(Truncate), "truncated"},
		{string(Create), "new"},
		{string(MakeDir), "newdir"},
		{string(Symlink), "newlink"},
		{string(Remove), "removed"},
	}
	var allowed, forbidden []Act
	for _, v := range verbs {
		for _, dir := range []string{"rw", "ro", "out"} {
			path := filepath.Join(scene.dir, dir, v.name)
			switch Verb(v.verb) {
			case Write, Truncate, Remove:
				scene.file(t, filepath.Join(dir, v.name), "content")
			}
			act := Act{Verb: Verb(v.verb), Path: path, Target: "nowhere"}
			switch {
			case dir == "rw" && (act.Verb != Truncate || s.features.Truncate):
				allowed = append(allowed, act)
			default:
				forbidden = append(forbidden, act)
			}
		}
	}
	rules := []policy.Rule{scene.rule("rw", policy.ReadWrite), scene.rule("ro", policy.Read)}
	results := s.perform(t, rules, slices.Concat(allowed, forbidden)...)
	mustAllow(t, allowed, results[:len(allowed)])
	s.mustRefuseChanges(t, rules, forbidden, results[len(allowed):])
	for _, dir := range []string{"ro", "out"} {
		for _, name := range []string{"written", "removed"} {
			if content, err := os.ReadFile(filepath.Join(scene.dir, dir, name)); string(content) != "content" {
				t.Errorf("%s/%s changed to %q, %v", dir, name, content, err)
			}
		}
		for _, name := range []string{"new", "newdir", "newlink"} {
			if _, err := os.Lstat(filepath.Join(scene.dir, dir, name)); err == nil {
				t.Errorf("%s/%s was made", dir, name)
			}
		}
	}
}

func executingFollowsTheGrants(t *testing.T, s suite) {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	allowed := []Act{{Verb: Execute, Path: Self(t)}, {Verb: Read, Path: shell}}
	forbidden := []Act{{Verb: Execute, Path: shell}}
	rules := []policy.Rule{{Path: shell, Access: policy.Read, Origin: policy.Origin{File: policy.OriginEditor}}}
	results := s.perform(t, rules, slices.Concat(allowed, forbidden)...)
	mustAllow(t, allowed, results[:len(allowed)])
	mustRefuse(t, forbidden, results[len(allowed):])
}

func namesThatLeadOut(t *testing.T, s suite) {
	scene := newScene(t)
	inside, outside := scene.file(t, "in/file", "inside"), scene.file(t, "out/file", "outside")
	in := filepath.Dir(inside)
	for name, target := range map[string]string{
		"to-file": outside, "to-dir": filepath.Dir(outside), "relative": "../out/file", "home": inside,
	} {
		if err := os.Symlink(target, filepath.Join(in, name)); err != nil {
			t.Fatal(err)
		}
	}
	allowed := []Act{{Verb: Read, Path: in + "/home"}, {Verb: Read, Path: in + "/to-dir/../in/file"}}
	forbidden := []Act{
		{Verb: Read, Path: in + "/to-file"},
		{Verb: Read, Path: in + "/to-dir/file"},
		{Verb: List, Path: in + "/to-dir"},
		{Verb: Read, Path: in + "/relative"},
		{Verb: Read, Path: in + "/../out/file"},
		{Verb: Write, Path: in + "/to-file"},
		{Verb: Create, Path: in + "/to-dir/new"},
	}
	rules := []policy.Rule{scene.rule("in", policy.ReadWrite)}
	results := s.perform(t, rules, slices.Concat(allowed, forbidden)...)
	mustAllow(t, allowed, results[:len(allowed)])
	s.mustRefuseChanges(t, rules, forbidden, results[len(allowed):])
}

func movingDoesNotWiden(t *testing.T, s suite) {
	scene := newScene(t)
	moved, kept := scene.file(t, "rw/a/file", "content"), scene.file(t, "ro/file", "content")
	rw := filepath.Join(scene.dir, "rw")
	allowed := []Act{{Verb: Rename, Path: moved, Target: rw + "/a/renamed"}}
	forbidden := []Act{
		{Verb: Rename, Path: kept, Target: rw + "/stolen"},
		{Verb: Link, Path: kept, Target: rw + "/linked"},
		{Verb: Rename, Path: rw + "/a", Target: filepath.Join(scene.dir, "ro/a")},
		{Verb: Rename, Path: rw, Target: filepath.Join(scene.dir, "renamed")},
		{Verb: Remove, Path: kept},
	}
	rules := []policy.Rule{scene.rule("rw", policy.ReadWrite), scene.rule("ro", policy.Read)}
	results := s.perform(t, rules, slices.Concat(allowed, forbidden)...)
	mustAllow(t, allowed, results[:len(allowed)])
	s.mustRefuseChanges(t, rules, forbidden, results[len(allowed):])
}

func workingDirectoryIsNoGrant(t *testing.T, s suite) {
	scene := newScene(t)
	scene.file(t, "out/file", "outside")
	scene.file(t, "in/file", "inside")
	order := func(dir string) []Result {
		order := Confined(t, s.backend, Policy(t, scene.rule("in", policy.Read)), Act{Verb: Read, Path: "file"},
			Act{Verb: List, Path: "."})
		order.Dir = filepath.Join(scene.dir, dir)
		results, _ := Perform(t, s.backend, order)
		return results
	}
	acts := []Act{{Verb: Read, Path: "file"}, {Verb: List, Path: "."}}
	mustAllow(t, acts, order("in"))
	mustRefuse(t, acts, order("out"))
}

func programMustBeGranted(t *testing.T, s suite) {
	order := Order(t)
	var err error
	if order.Confinement, err = s.backend.Confine(&policy.Policy{
		Restricted: true,
		Network:    policy.Network{Allowed: true},
	}, platform.Hooks{}); err != nil {
		t.Fatal(err)
	}
	_, _, err = Output(s.backend, order)
	var failure *platform.Failure
	if !errors.As(err, &failure) || failure.Step != platform.StepProgram || !failure.Denied ||
		failure.Path != order.Program {
		t.Errorf("execute a program that is not granted: %v", err)
	}
	if _, _, err := Output(s.backend, Confined(t, s.backend, Policy(t))); err != nil {
		t.Errorf("execute a program that is granted: %v", err)
	}
}

func missingGrantsAreReported(t *testing.T, s suite) {
	scene := newScene(t)
	inside := scene.file(t, "in/file", "inside")
	rules := []policy.Rule{
		scene.rule("in", policy.Read), scene.rule("no/such", policy.Read),
		scene.rule("in/file/below", policy.ReadWrite),
	}
	acts := []Act{{Verb: Read, Path: inside}}
	results, enforcement := Perform(t, s.backend, Confined(t, s.backend, Policy(t, rules...), acts...))
	mustAllow(t, acts, results)
	for _, rule := range rules[1:] {
		i := slices.IndexFunc(enforcement.Missing, func(m platform.Missing) bool { return m.Path == rule.Path })
		if i < 0 || enforcement.Missing[i].Reason == "" {
			t.Errorf("%s is not reported with a reason among the missing grants: %v", rule.Path, enforcement.Missing)
		}
	}
	if slices.ContainsFunc(enforcement.Missing, func(m platform.Missing) bool { return m.Path == rules[0].Path }) {
		t.Errorf("%s is reported as missing", rules[0].Path)
	}
}

func missingRequiredGrant(t *testing.T, s suite) {
	scene := newScene(t)
	marker := scene.dir + "/rw/marker"
	scene.file(t, "rw/file", "")
	project := scene.rule("project", policy.ReadWrite)
	project.Origin.File = policy.OriginSession
	order := Confined(t, s.backend, Policy(t, scene.rule("rw", policy.ReadWrite), project),
		Act{Verb: Create, Path: marker})
	_, _, err := Output(s.backend, order)
	var failure *platform.Failure
	if !errors.As(err, &failure) || failure.Step != platform.StepConfine {
		t.Errorf("start a session whose project directory is missing: %v", err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the program was executed")
	}
	scene.file(t, "project/file", "")
	if _, _, err := Output(s.backend, order); err != nil {
		t.Errorf("start a session whose project directory exists: %v", err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error(err)
	}
}

func nothingGranted(t *testing.T, s suite) {
	acts := []Act{
		{Verb: List, Path: "/"},
		{Verb: List, Path: "/etc"},
		{Verb: Read, Path: "/etc/hosts"},
		{Verb: List, Path: os.TempDir()},
	}
	first := 0
	if s.features.RootListed {
		first = 1
	}
	mustRefuse(t, acts[first:], s.perform(t, nil, acts[first:]...))
	etc, err := filepath.EvalSymlinks("/etc")
	if err != nil {
		t.Fatal(err)
	}
	granted := acts[1:3]
	mustAllow(t, granted, s.perform(t, []policy.Rule{{Path: etc, Access: policy.Read}}, granted...))
}

func childrenAreConfined(t *testing.T, s suite) {
	scene := newScene(t)
	scene.file(t, "rw/file", "")
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	order := Confined(t, s.backend, Policy(t, scene.rule("rw", policy.ReadWrite),
		policy.Rule{Path: filepath.Dir(shell), Access: policy.Read | policy.Execute}))
	order.Program, order.Dir = shell, scene.dir
	order.Argv = []string{"sh", "-c", `(: > rw/by-child); (: > by-child) 2>&-; echo "status $?"`}
	output, _, err := Output(s.backend, order)
	if err != nil {
		t.Fatal(err)
	}
	if string(output) == "status 0\n" {
		t.Error("a child wrote outside the grants")
	}
	if _, err := os.Stat(scene.dir + "/rw/by-child"); err != nil {
		t.Errorf("a child could not write inside the grants: %v", err)
	}
	if _, err := os.Stat(scene.dir + "/by-child"); err == nil {
		t.Error("a child made a file outside the grants")
	}
}

func signals(t *testing.T, s suite) {
	bystander := NewBystander(t)
	acts := []Act{{Verb: Kill, PID: bystander.PID()}}
	results := s.perform(t, nil, acts...)
	if s.features.Signals {
		mustRefuse(t, acts, results)
		if err := bystander.End(); err != nil {
			t.Errorf("the bystander did not end of its own accord: %v", err)
		}
		return
	}
	// Then the report must not claim it, which reportIsComplete checks. The
	// successful attack shows that the check works.
	mustAllow(t, acts, results)
}

func unixSockets(t *testing.T, s suite) {
	// A test's own temporary directory may be too long for a socket's address.
	short, err := os.MkdirTemp("", "socket-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(short) })
		short, err = filepath.EvalSymlinks(short)
	}
	if err != nil {
		t.Fatal(err)
	}
	scene := scene{short}
	scene.file(t, "rw/file", "")
	granted, other := scene.dir+"/granted.sock", scene.dir+"/rw/other.sock"
	for _, path := range []string{granted, other} {
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
	}
	p := Policy(t, scene.rule("rw", policy.ReadWrite))
	p.UnixSockets = []policy.UnixSocket{{Path: granted}}
	acts := []Act{{Verb: Connect, Path: granted}, {Verb: Connect, Path: other}}
	results, _ := Perform(t, s.backend, Confined(t, s.backend, p, acts...))
	mustAllow(t, acts[:1], results[:1])
	if s.features.UnixSockets {
		mustRefuse(t, acts[1:], results[1:])
		return
	}
	mustAllow(t, acts[1:], results[1:])
}
