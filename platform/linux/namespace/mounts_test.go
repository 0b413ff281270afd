package namespace

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
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
	mounts := ProtectedMounts{Protected: []string{"/\xff\n\""}, Pinned: []string{"/a", "/\xfe"}}
	data, err := json.Marshal(mounts)
	var got ProtectedMounts
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || !slices.Equal(got.Protected, mounts.Protected) || !slices.Equal(got.Pinned, mounts.Pinned) {
		t.Errorf("%v: %q", err, got)
	}
}
