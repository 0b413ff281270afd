package protected

import (
	"slices"
	"strings"
	"testing"
)

// What reads the table relies on its form.
func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range Names {
		dir, _ := strings.CutSuffix(name.Path, "/"+name.Path[strings.LastIndexByte(name.Path, '/')+1:])
		switch {
		case seen[name.Path]:
			t.Errorf("%s is listed twice", name.Path)
		case dir != name.Path && strings.Contains(dir, "*") && (name.Group != Installed || strings.HasPrefix(dir, "*")):
			t.Errorf("%s: only the last name may contain *", name.Path)
		case name.Who == "" || name.Why == "":
			t.Errorf("%s: nobody acts upon it", name.Path)
		case name.Group != "" && (!slices.Contains(Groups, name.Group) || name.Group.Why() == ""):
			t.Errorf("%s: there is no group %q", name.Path, name.Group)
		}
		seen[name.Path] = true
	}
}
