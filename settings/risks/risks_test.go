package risks

import (
	"path"
	"strings"
	"testing"
)

// What reads the table relies on its form.
func TestAll(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, place := range All {
		below, inHome := strings.CutPrefix(place.Path, "~")
		switch {
		case seen[place.Path]:
			t.Errorf("%s is listed twice", place.Path)
		case !inHome && !path.IsAbs(place.Path), path.Clean("/"+below) != "/"+strings.TrimPrefix(below, "/"):
			t.Errorf("%s is no clean path", place.Path)
		case place.Secret == "" && place.Acts == "":
			t.Errorf("%s: it is neither secret nor acted on", place.Path)
		case place.Secret == "" && len(place.Plain) > 0:
			t.Errorf("%s: no secret, so no names without one", place.Path)
		case strings.HasSuffix(place.Acts, "."):
			t.Errorf("%s: %q is no clause", place.Path, place.Acts)
		}
		for _, pattern := range place.Plain {
			if _, err := path.Match(pattern, "x"); err != nil || strings.Contains(pattern, "/") {
				t.Errorf("%s: %q is no pattern of a name", place.Path, pattern)
			}
		}
		seen[place.Path] = true
	}
}
