package linux

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
)

func TestUnmended_ByTheKernelsWord(t *testing.T) {
	t.Parallel()
	third := errata[0].open
	for _, test := range []struct {
		name        string
		abi, mended int
		want        []string
	}{
		{"no landlock, nothing to mend", 0, 0, nil},
		{"a kernel that cannot say", 2, 0, []string{third}},
		{"only others are mended", 7, 1<<0 | 1<<1, []string{third}},
		{"mended", 7, 1 << 2, nil},
		{"mended beside ones that are not known yet", 20, 1<<2 | 1<<30, nil},
	} {
		if got := unmended(test.abi, test.mended); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestReport_TellsOfErrata(t *testing.T) {
	t.Parallel()
	for _, mended := range []int{0, 1 << 2} {
		r := Translate(strict, 7)
		r.Errata = unmended(7, mended)
		files := report(r, namespace.Result{})[platform.Filesystem]
		if told := strings.Contains(files.Detail, errata[0].open); told != (mended == 0) ||
			files.Status != platform.Enforced {
			t.Errorf("errata %b: %+v", mended, files)
		}
	}
}
