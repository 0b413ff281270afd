package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/history"
)

func TestComplete_LeavesThePolicyAsItIs(t *testing.T) {
	t.Parallel()
	rules := append(make([]policy.Rule, 0, 9), policy.Rule{Path: "/usr", Access: policy.Read})
	p := policy.Policy{Restricted: true, Rules: rules, Environment: policy.Environment{Allowed: []string{"B"}}}
	before := p.ID()
	got := Complete(p, Facts{
		Rules:    []policy.Rule{{Path: "/h", Access: policy.Write}},
		Replaced: []policy.Replaced{{Path: "/a", Source: "/h"}}, Programs: []string{"/bin/sidecar", "/usr/x"},
		Variables: []string{"A", "B"},
	})
	if p.ID() != before || rules[:2][1] != (policy.Rule{}) {
		t.Error("the policy was changed")
	}
	if !got.At("/h/file").Has(policy.Write) || !got.At("/bin/sidecar").Has(policy.Read|policy.Execute) ||
		!got.At("/usr/x").Has(policy.Execute) || !slices.Equal(got.Environment.Allowed, []string{"A", "B"}) {
		t.Errorf("%+v", got)
	}
	if !slices.IsSortedFunc(got.Rules, func(a, b policy.Rule) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	}) {
		t.Errorf("not sorted: %+v", got.Rules)
	}
	if got.ID() == before {
		t.Error("the id does not know what was added")
	}
	if off := Complete(policy.Policy{}, Facts{Programs: []string{"/x"}}); len(off.Rules) > 0 {
		t.Errorf("an unrestricted policy: %+v", off)
	}
}

// The id is the same before the first session has made anything, and after it:
// a policy that the user has agreed to would never start otherwise.
func TestMachine_AnswersTheSameAfterTheFirstSession(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	links := filepath.Join(home, "links")
	m := Machine{Env: []string{"HOME=" + home}, Program: "/opt/sidecar", Shells: links}
	p := policy.Policy{Restricted: true, Project: "/work/p", Rules: []policy.Rule{{Path: "/usr", Access: policy.Read}}}
	first := m.Complete(p, true)
	for _, program := range []string{"bash", "zsh", "fish"} {
		prepared, err := history.Prepare(history.Request{
			Project: p.Project, Policy: &first, Outer: m.Env, Program: program,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range prepared.Rules {
			if !slices.Contains(first.Rules, rule) {
				t.Errorf("%s: the policy lacks %+v", program, rule)
			}
		}
		for _, replaced := range prepared.Replaced {
			if !slices.Contains(first.Replaced, replaced) {
				t.Errorf("%s: the policy lacks %+v", program, replaced)
			}
		}
	}
	again := m.Complete(p, true)
	if again.ID() != first.ID() {
		t.Errorf("another id:\n%+v\n%+v", first, again)
	}
	if tool := m.Complete(p, false); history.Granted(&tool) || tool.ID() != p.ID() {
		t.Errorf("a tool: %+v", tool)
	}
	if at := first.At("/opt/sidecar"); at != 0 {
		t.Errorf("nobody has made links: %v", at)
	}
	if err := os.Mkdir(links, 0o755); err != nil {
		t.Fatal(err)
	}
	if tool := m.Complete(p, false); !tool.At("/opt/sidecar").Has(policy.Execute) {
		t.Errorf("with links: %+v", tool)
	}
	// A session may have put something else there.
	if err := errors.Join(os.Remove(links), os.Symlink("/home/u/.ssh", links)); err != nil {
		t.Fatal(err)
	}
	if tool := m.Complete(p, false); tool.At("/home/u/.ssh") != 0 || tool.At(links) != 0 {
		t.Errorf("a symlink in the place of the links: %+v", tool)
	}
	// What others could change is not used.
	if err := os.Chmod(filepath.Join(home, ".local/state/sandbox-sidecar/history"), 0o755); err != nil {
		t.Fatal(err)
	}
	if open := m.Complete(p, true); history.Granted(&open) {
		t.Errorf("a directory that is open to others: %+v", open)
	}
}

// "shell install --dir" makes links in a directory that only its note names.
func TestMachine_KnowsLinksElsewhere(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes")
	p := policy.Policy{Restricted: true, Project: "/work/p"}
	for _, m := range []Machine{
		{Program: "/opt/sidecar", ShellsElsewhere: notes},
		{Program: "/opt/sidecar", ShellsElsewhere: notes, Shells: notes + "-usual"},
	} {
		if before := m.Complete(p, false); before.At("/opt/sidecar") != 0 {
			t.Errorf("nobody has made links: %+v", before)
		}
		if err := os.Mkdir(notes, 0o700); err != nil {
			t.Fatal(err)
		}
		after := m.Complete(p, false)
		if !after.At("/opt/sidecar").Has(policy.Read|policy.Execute) || after.At(notes) != 0 || after.ID() == p.ID() {
			t.Errorf("with links elsewhere: %+v", after)
		}
		if err := os.Remove(notes); err != nil {
			t.Fatal(err)
		}
	}
}

// While a file system is silent, what the machine has said last counts.
func TestMemory_AnswersForASilentMachine(t *testing.T) {
	t.Parallel()
	look := func(state string) history.Places {
		places, err := history.Look([]string{"XDG_STATE_HOME=" + state})
		if err != nil {
			t.Fatal(err)
		}
		return places
	}
	real, written, moved := look("/a"), look("/b"), look("/c")
	silent := fmt.Errorf("lstat: %w", fsguard.ErrNoAnswer)
	var m Memory
	for i, step := range []struct {
		now    history.Places
		silent error
		want   history.Places
		lstat  error
		made   bool
	}{
		{written, silent, written, silent, false}, // nothing is known yet
		{real, nil, real, nil, true},
		{written, silent, real, silent, true},
		{moved, nil, moved, fs.ErrNotExist, false},
		{written, silent, moved, silent, false},
		{real, nil, real, fs.ErrPermission, false},
	} {
		if got := m.historyAt(step.now, step.silent); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%d: %+v, want %+v", i, got, step.want)
		}
		if got := m.linksAt(step.lstat); got != step.made {
			t.Errorf("%d: links %t", i, got)
		}
	}
}
