package namespace

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
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
		tree := PlanTree(strings.Fields(test.writable))
		if tree == nil || strings.Join(tree.Writable, " ") != test.want {
			t.Errorf("%s: %+v, want %s", test.writable, tree, test.want)
		}
	}
	if tree := PlanTree([]string{"/h", "/"}); tree != nil {
		t.Errorf("everything is writable, and yet %+v", tree)
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
