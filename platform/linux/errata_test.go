package linux

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
)

func TestUnfixedErrata_AsTheKernelReports(t *testing.T) {
	t.Parallel()
	third := errata[0].effect
	for _, test := range []struct {
		name       string
		abi, fixed int
		want       []string
	}{
		{"no landlock, nothing to fix", 0, 0, nil},
		{"a kernel that cannot report", 2, 0, []string{third}},
		{"only others are fixed", 7, 1<<0 | 1<<1, []string{third}},
		{"fixed", 7, 1 << 2, nil},
		{"fixed beside ones that are unknown here", 20, 1<<2 | 1<<30, nil},
	} {
		if got := unfixedErrata(test.abi, test.fixed); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestReport_NamesErrata(t *testing.T) {
	t.Parallel()
	for _, fixed := range []int{0, 1 << 2} {
		r := Translate(strict, 7)
		r.Errata = unfixedErrata(7, fixed)
		files := report(r, namespace.Result{})[platform.Filesystem]
		if named := strings.Contains(files.Detail, errata[0].effect); named != (fixed == 0) ||
			files.Status != platform.Enforced {
			t.Errorf("errata %b: %+v", fixed, files)
		}
	}
}
