package namespace

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestPlanTree_KeepsTheTopmostPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ writable, want string }{
		{"", ""},
		{"/tmp /h/p /dev/null", "/dev/null /h/p /tmp"},
		{"/h/p /h/p/.git /h /tmp/x/y /tmp", "/h /tmp"},
		{"/a /a.b /a/c /ab", "/a /a.b /ab"},
		{"/h/p /h/p", "/h/p"},
	} {
		tree := PlanTree(strings.Fields(test.writable), &policy.Policy{})
		if tree == nil || strings.Join(tree.Writable, " ") != test.want {
			t.Errorf("%s: %+v, want %s", test.writable, tree, test.want)
		}
	}
	if tree := PlanTree([]string{"/h", "/"}, &policy.Policy{}); tree != nil {
		t.Errorf("everything is writable, and yet %+v", tree)
	}
}

// A directory that is replaced is not written; the one in its place is.
func TestPlanTree_WritesWhatReplacesADirectory(t *testing.T) {
	t.Parallel()
	p := &policy.Policy{Temporary: []policy.Temporary{{Path: "/tmp", Source: "/tmp/own/files"}}}
	tree := PlanTree([]string{"/tmp", "/tmp/project", "/h"}, p)
	if want := []string{"/h", "/tmp/own/files", "/tmp/project"}; !slices.Equal(tree.Writable, want) {
		t.Errorf("%q, want %q", tree.Writable, want)
	}
}

// What a policy grants below a replaced or hidden directory is mounted back,
// and nothing that the session does not see is protected.
func TestPlan_MountsBackWhatIsGranted(t *testing.T) {
	t.Parallel()
	p := &policy.Policy{
		Rules: []policy.Rule{
			{Path: "/tmp", Access: policy.ReadWrite}, {Path: "/tmp/p"}, {Path: "/tmp/p/x"}, {Path: "/h/a/b"},
		},
		UnixSockets: []policy.UnixSocket{{Path: "/tmp/.X11-unix/X0"}, {Abstract: "/tmp/y"}},
		Temporary:   []policy.Temporary{{Path: "/tmp", Source: "/s"}},
		Hidden:      []policy.Hidden{{Path: "/h"}, {Path: "/tmp/p/.env"}, {Path: "/tmp/gone"}},
		Protected:   []policy.Protected{{Path: "/tmp/q/.git"}, {Path: "/tmp/p/.git"}},
	}
	if got := PlanTemporary(p).Dirs[0].Back; !slices.Equal(got, []string{"/tmp/.X11-unix/X0", "/tmp/p"}) {
		t.Errorf("back into /tmp: %q", got)
	}
	hidden := PlanHidden(p).Paths
	if len(hidden) != 2 || !slices.Equal(hidden[0].Back, []string{"/h/a/b"}) || hidden[1].Path != "/tmp/p/.env" {
		t.Errorf("hidden: %+v", hidden)
	}
	mounts := PlanMounts(p)
	if !slices.Equal(mounts.Protected, []string{"/tmp/p/.git"}) || !slices.Equal(mounts.Pinned, []string{"/tmp/p"}) {
		t.Errorf("protected: %+v", mounts)
	}
}

func TestPrivatePaths_ArriveByteForByte(t *testing.T) {
	t.Parallel()
	odd := "/\xff\n\""
	setup := Setup{
		Temporary: &Temporary{Dirs: []TemporaryDir{{Path: odd, Source: odd + "s", Back: []string{odd + "b"}}}},
		Hidden:    &Hidden{Paths: []HiddenPath{{Path: odd, Back: []string{odd + "c"}}}},
	}
	data, err := json.Marshal(setup)
	var got Setup
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || !reflect.DeepEqual(got.Temporary, setup.Temporary) ||
		!reflect.DeepEqual(got.Hidden, setup.Hidden) {
		t.Errorf("%v: %+v %+v", err, got.Temporary, got.Hidden)
	}
}

func TestTree_ArrivesByteForByte(t *testing.T) {
	t.Parallel()
	tree := Tree{Writable: []string{"/\xff\n\"", "/a"}}
	data, err := json.Marshal(tree)
	var got Tree
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || !slices.Equal(got.Writable, tree.Writable) {
		t.Errorf("%v: %q", err, got)
	}
}
