package session

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

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
	m := Machine{Env: []string{"HOME=" + home}, Program: "/opt/sidecar"}
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
	if tool := m.Complete(p, false); history.Granted(&tool) {
		t.Errorf("a tool: %+v", tool)
	}
	// What others could change is not used.
	if err := os.Chmod(filepath.Join(home, ".local/state/sandbox-sidecar/history"), 0o755); err != nil {
		t.Fatal(err)
	}
	if open := m.Complete(p, true); history.Granted(&open) {
		t.Errorf("a directory that is open to others: %+v", open)
	}
}

// Any session may run in a shared sandbox, whose init is the program, or be one
// that a link has started. Nothing around the program is granted.
func TestMachine_GrantsTheProgramToEverySession(t *testing.T) {
	t.Parallel()
	const access = policy.Read | policy.Execute
	p := policy.Policy{Restricted: true, Project: "/work/p", Temporary: []policy.Temporary{{Path: "/tmp"}}}
	for _, program := range []string{"/opt/dir/sidecar", "/tmp/dir/sidecar"} {
		for _, typed := range []bool{false, true} {
			got := (Machine{Program: program}).Complete(p, typed)
			if got.At(program) != access || got.At(filepath.Dir(program)).Has(policy.Read) {
				t.Errorf("%s, typed %t: %+v", program, typed, got)
			}
		}
	}
	if got := (Machine{}).Complete(p, false); got.ID() != p.ID() {
		t.Errorf("control: the program is unknown: %+v", got)
	}
	off := policy.Policy{Project: "/work/p"}
	if got := (Machine{Program: "/opt/sidecar"}).Complete(off, true); len(got.Rules) > 0 {
		t.Errorf("control: without a sandbox: %+v", got)
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
	silent := errors.New("no answer")
	var m Memory
	for i, step := range []struct {
		now    history.Places
		silent error
		want   history.Places
	}{
		{written, silent, written}, // nothing is known yet
		{real, nil, real},
		{written, silent, real},
		{moved, nil, moved},
		{written, silent, moved},
		{real, nil, real},
	} {
		if got := m.historyAt(step.now, step.silent); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%d: %+v, want %+v", i, got, step.want)
		}
	}
}
