package doors

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	table "github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// kindOf names what a row of the table of places says of a place.
func kindOf(row table.Place) string {
	var kind []string
	for _, one := range []struct {
		name string
		is   bool
	}{
		{"secret", row.Secret != ""},
		{"acted on", row.Acts != ""},
		{"an agent's", row.Agent != ""},
		{"with a set", row.Set != ""},
		{"shown", row.Shown},
		{"mixed", row.Mixed != ""},
		{"a pattern", strings.Contains(row.Path, "*")},
		{"the machine's", !inHome(row)},
	} {
		if one.is {
			kind = append(kind, one.name)
		}
	}
	return strings.Join(kind, ", ")
}

func inHome(row table.Place) bool { return strings.HasPrefix(row.Path, "~/") }

// sampled has a row of each kind: if there is one, a row outside of ~/.config, which
// sessions may read by default. A shell's own history is left out: that a shell was
// refused it is only logged (platform.Expected).
func sampled(t *testing.T) (list []table.Place) {
	t.Helper()
	at := map[string]int{}
	inConfig := func(row table.Place) bool { return strings.HasPrefix(row.Path, "~/.config/") }
	for _, row := range table.All() {
		if row.Path == "~/.bash_history" {
			continue
		}
		if row.Class() == 0 {
			if !row.Harmless {
				t.Errorf("%s has no kind, so it would be suggested", row.Path)
			}
			continue
		}
		i, known := at[kindOf(row)]
		switch {
		case !known:
			at[kindOf(row)] = len(list)
			list = append(list, row)
		case inConfig(list[i]) && !inConfig(row):
			list[i] = row
		}
	}
	for _, kind := range []string{"secret", "acted on", "secret, acted on", "acted on, an agent's"} {
		if _, known := at[kind]; !known {
			t.Fatalf("no row is %s: this test finds nothing", kind)
		}
	}
	return list
}

// entry is an access to a place of the table.
type entry struct {
	row            table.Place
	access, target string
	// advised: nothing tries it, and only advice is asked for.
	advised bool
}

func (e entry) String() string {
	return fmt.Sprintf("%s (%s): %s", e.row.Path, kindOf(e.row), e.mark())
}

// mark is how each front door names the access.
func (e entry) mark() string { return e.access + ` "` + e.target + `"` }

// isSet reports whether a set gives sessions what they need, without a risk.
func (e entry) isSet() bool { return e.row.Set != "" && e.row.Agent == "" && e.row.Secret == "" }

// reach makes the place of a row, and lists the accesses that need care. What is the
// machine's is left alone.
func (s *scene) reach(row table.Place) (list []entry) {
	add := func(target string, advised bool, accesses ...string) {
		for _, access := range accesses {
			list = append(list, entry{row, access, target, advised})
		}
	}
	secret := row.Secret != "" && row.Mixed == "" // sessions read the rest of a mixed one
	if !inHome(row) {
		found, err := filepath.Glob(row.Path)
		harness.Must(s.t, err)
		switch {
		case secret && os.Geteuid() == 0 && len(found) > 0: // their modes keep it from others
			add(found[0], true, "read")
		case row.Acts != "" && row.Secret != "":
			add(row.Path, true, "write")
		case row.Acts != "":
			add(filepath.Join(row.Path, "sandbox-sidecar-test"), true, "write")
		default:
			s.t.Logf("nothing of this machine is asked about: %s, found %q", row.Path, found)
		}
		return list
	}
	target := s.HomePath(strings.ReplaceAll(strings.TrimPrefix(row.Path, "~/"), "*", "x"))
	holds := func(other table.Place) bool { return strings.HasPrefix(other.Path, row.Path+"/") }
	if row.Set != "" || row.Agent != "" || len(row.Plain) > 0 || slices.ContainsFunc(table.All(), holds) {
		target = filepath.Join(target, "there")
	}
	harness.Write(s.t, target, "offline=true\n")
	harness.Must(s.t, os.Chmod(target, 0o755)) // what cannot be executed is not suggested anyway
	if secret || row.Agent != "" {
		add(target, false, "read")
	}
	add(target, false, "write")
	if secret {
		add(target, true, "execute")
	}
	return list
}

// check checks what was said of one access alone. explains: the key may be named,
// behind the care.
func (e entry) check(t *testing.T, said string, explains bool) {
	t.Helper()
	said = harness.Unfold(said)
	switch suggests := steps.MatchString(said); {
	case suggests && !explains:
		harness.Breach(t, "%s is suggested:\n%s", e, said)
	case suggests && !strings.Contains(said, "careful"):
		harness.Breach(t, "%s is suggested without care:\n%s", e, said)
	default:
		e.checkCare(t, said)
	}
}

// checkCare checks that a text says what the row says of the place, or names
// the set.
func (e entry) checkCare(t *testing.T, said string) {
	t.Helper()
	words := []string{e.row.Secret, e.row.Acts}
	if e.row.Agent != "" {
		words = append(words, e.row.Agent+" keeps its sign-in there")
	}
	if e.isSet() {
		words = append(words, strconv.Quote(e.row.Set))
	}
	if !slices.ContainsFunc(words, func(word string) bool { return word != "" && strings.Contains(said, word) }) {
		harness.Breach(t, "%s: none of %q is said:\n%s", e, words, said)
	}
}

// scenery is a scene with a place of each kind.
type scenery struct {
	*scene
	entries []entry
	control entry
}

// everyKind makes one.
func everyKind(t *testing.T, rows []table.Place) *scenery {
	t.Helper()
	s := &scenery{scene: newScene(t, situation{})}
	s.control = entry{access: "read", target: s.OutsidePath("file")}
	harness.Write(t, s.control.target, "content\n")
	for _, row := range rows {
		s.entries = append(s.entries, s.reach(row)...)
	}
	return s
}

// tried are the entries that a session tries.
func (s *scenery) tried() []entry {
	return slices.DeleteFunc(slices.Clone(s.entries), func(e entry) bool { return e.advised })
}

// lineOf tries some accesses in a shell, one after the other.
func lineOf(list ...entry) string {
	var lines []string
	for _, e := range list {
		if e.access == "read" {
			lines = append(lines, "cat "+harness.Quote(e.target))
		} else {
			lines = append(lines, "echo x >>"+harness.Quote(e.target))
		}
	}
	return strings.Join(lines, "; ")
}
