package namespace

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestPlanMounts_PinsDirectoriesThatCouldBeMoved(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		writable          []string
		protected, pinned string
	}{
		{[]string{"/h/p"}, "/h/p/.git/hooks /h/p/.git/config", "/h/p/.git"},
		{[]string{"/h/p"}, "/h/p/.envrc", ""},
		{[]string{"/h/p"}, "/h/p/a/b/c /h/p/a/d", "/h/p/a /h/p/a/b"},
		{[]string{"/h/p"}, "/h/p/a /h/p/a/b/c", ""}, // all of it is read-only
		{[]string{"/h"}, "/h/p/.git/hooks", "/h/p /h/p/.git"},
		{[]string{"/"}, "/h/p/x", "/h /h/p"},
		{
			[]string{"/h/p", "/h/main/.git"},
			"/h/main/.git/hooks /h/main/.git/worktrees/w/gitdir /h/p/.git",
			"/h/main/.git/worktrees /h/main/.git/worktrees/w",
		},
		{nil, "/h/p/.git/hooks", ""},
		{[]string{"/h/p"}, "/h/p/a/b*", "/h/p/a"}, // a pattern
	} {
		p := &policy.Policy{}
		for _, path := range test.writable {
			p.Rules = append(p.Rules, policy.Rule{Path: path, Access: policy.ReadWrite})
		}
		for path := range strings.FieldsSeq(test.protected) {
			p.Protected = append(p.Protected, policy.Protected{Path: path, Pattern: strings.Contains(path, "*")})
		}
		if got := strings.Join(PlanMounts(p).Pinned, " "); got != test.pinned {
			t.Errorf("%s, with %s writable: pins %q, want %q", test.protected, test.writable, got, test.pinned)
		}
	}
}

func TestProtectedMounts_ArriveByteForByte(t *testing.T) {
	t.Parallel()
	mounts := ProtectedMounts{
		Protected: []string{"/\xff\n\""}, Pinned: []string{"/a", "/\xfe"}, Links: []string{"/\xfd"},
		Reopened: []string{"/\xfc"},
	}
	data, err := json.Marshal(mounts)
	var got ProtectedMounts
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || !reflect.DeepEqual(got, mounts) {
		t.Errorf("%v: %q", err, got)
	}
}

// A settings file may have thousands of entries, and a project brings its own.
func TestPlans_AreLinear(t *testing.T) {
	harness.Linear(t, 20_000, func(n int) {
		p := &policy.Policy{
			Rules: []policy.Rule{{Path: "/p", Access: policy.ReadWrite}}, Temporary: []policy.Temporary{{Path: "/tmp"}},
		}
		for i := range n {
			p.Protected = append(p.Protected, policy.Protected{Path: fmt.Sprintf("/p/protected%d/file", i)})
			p.Hidden = append(p.Hidden, policy.Hidden{Path: fmt.Sprintf("/p/hidden%d/dir", i)})
			p.Rules = append(p.Rules, policy.Rule{Path: fmt.Sprintf("/p/hidden%d/dir/a", i), Access: policy.Read})
		}
		mounts, hidden := PlanMounts(p), PlanHidden(p)
		if len(mounts.Pinned) != 2*n || len(mounts.Protected) != n || len(hidden.Paths) != n ||
			!slices.Equal(hidden.Paths[0].Back, []string{"/p/hidden0/dir/a"}) {
			t.Fatalf("%d pinned, %d protected, %d hidden", len(mounts.Pinned), len(mounts.Protected), len(hidden.Paths))
		}
	})
}
