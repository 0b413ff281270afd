package linux

import (
	"slices"
	"testing"
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
