package risks_test

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// What the rows say is all that these tests know of a place: that it is secret, who
// acts on it, and whose state it is. The code that gives advice is asked about each.

// kindOf says which care a row needs; "" if it says of none.
func kindOf(row risks.Place) string {
	switch secret, acting := row.Class()&risks.Secret != 0, row.Class()&risks.Acting != 0; {
	case secret && acting:
		return "secret, and acted on"
	case secret:
		return "secret"
	case acting && row.Agent != "":
		return "an agent's"
	case acting:
		return "acted on"
	case row.Harmless:
		return "harmless"
	}
	return ""
}

// A row of no kind would be suggested. So would one of a kind that is new, and that
// no test knows.
func TestGate_KnowsTheKindOfEachRow(t *testing.T) {
	t.Parallel()
	known := []string{
		"Path", "Secret", "Plain", "Shown", "Mixed", "Format", "Harmless", "Acts", "Store", "Set", "Agent", "Variable",
	}
	fields := reflect.TypeFor[risks.Place]()
	for i := range fields.NumField() {
		if name := fields.Field(i).Name; !slices.Contains(known, name) {
			t.Errorf("the field %s is new: say in kindOf what it means for advice", name)
		}
	}
	rows := map[string]int{}
	for _, row := range risks.All() {
		kind := kindOf(row)
		if kind == "" {
			t.Errorf("%s has no kind, so it would be suggested", row.Path)
		}
		rows[kind]++
	}
	for _, kind := range []string{"secret, and acted on", "secret", "an agent's", "acted on", "harmless"} {
		if rows[kind] == 0 {
			t.Errorf("no row is %s: this test finds nothing", kind)
		}
	}
	if kind := kindOf(risks.Place{Path: "~/.new", Set: "go", Shown: true, Store: true}); kind != "" {
		t.Errorf("control: a row that says nothing of its place is %s", kind)
	}
}

// state is what there is of the places.
type state int

const (
	directory state = iota // with a file in each
	file                   // unless another place is in it
	missing
)

// treeOf has the places. The machine's stay directories, and so does what holds the
// user's settings.
func treeOf(as state) map[string]string {
	tree := map[string]string{home + "/.config/": ""}
	for i, place := range places() {
		inside := place + "/"
		below := func(path string) bool { return strings.HasPrefix(path, inside) }
		switch isFile := as == file && inHome(risks.All()[i]) && !below(settingstest.UserFile); {
		case as == missing:
		case isFile && !slices.ContainsFunc(places(), below):
			tree[place] = ""
		default:
			tree[inside+"there"] = ""
		}
	}
	return tree
}

// asksAbout are the questions about the place of a row, what is in it, and what is
// around it.
func asksAbout(row risks.Place, as state, root bool) (list []ask) {
	place := at(row)
	above := path.Dir(place)
	inside := []string{place, place + "/there"}
	if as == file {
		inside = inside[:1]
	}
	for _, target := range inside {
		list = append(list, ask{"write", target, true})
		if isSecret(row, root) || row.Agent != "" {
			list = append(list, ask{"read", target, true})
		}
		if isSecret(row, root) {
			list = append(list, ask{"execute", target, false})
		}
	}
	if as == missing {
		return append(list, ask{"create", place + "/new", false})
	}
	list = append(list, ask{"write", above, false}, ask{"remove", place, false})
	if as == directory {
		list = append(list, ask{"create", place + "/new", false})
	}
	if isSecret(row, root) {
		list = append(list, ask{"read", above, false}, ask{"execute", above, false})
	}
	return list
}

// What programs outside act on is never suggested for writing, and what is secret
// for nothing: the place itself, what is in it, and the directory above. If no
// setting is suggested, the hint says what the row says.
func TestGate_SuggestsNoPlaceOfTheTable(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		as   state
		root bool
	}{
		"a directory": {as: directory}, "a file": {as: file}, "missing": {as: missing},
		"a directory, as root": {as: directory, root: true}, // the machine's alone
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := machine{root: of.root, tree: treeOf(of.as)}.snapshot(t)
			asked := 0
			for _, row := range risks.All() {
				if row.Class() == 0 || of.root && inHome(row) {
					continue
				}
				for _, a := range asksAbout(row, of.as, of.root) {
					asked++
					if why := a.wrong(s); why != "" {
						t.Errorf("%s, %s: %s %s: %s", row.Path, kindOf(row), a.access, a.target, why)
					}
				}
			}
			if asked == 0 {
				t.Error("nothing was asked")
			}
			suggestsTheHarmless(t, s)
		})
	}
}

// suggestsTheHarmless is the control: what no row is about is suggested as before.
func suggestsTheHarmless(t *testing.T, s *compile.Snapshot) {
	t.Helper()
	for _, test := range []struct{ access, target, key, value string }{
		{"read", harmless, "additional_read_only_paths", harmless},
		{"write", harmless, "additional_read_write_paths", harmless},
		{"execute", harmless, "additional_executable_paths", harmless},
		{"create", path.Dir(harmless) + "/new", "additional_read_write_paths", path.Dir(harmless)},
	} {
		got, err := explain.Suggest(s, document.KindTool, test.access, test.target, "")
		if err != nil || got.Key != test.key || got.Value != test.value {
			t.Errorf("control: %s %s: %+v, %v", test.access, test.target, got, err)
		}
	}
}

// The same questions find each suggestion where the rows are about another home
// directory.
func TestGate_FindsWhatIsSuggested(t *testing.T) {
	t.Parallel()
	s := machine{home: "/home/other", tree: treeOf(directory)}.snapshot(t)
	rows, found := 0, 0
	for _, row := range risks.All() {
		if row.Class() == 0 || !inHome(row) {
			continue
		}
		a := ask{access: "write", target: at(row) + "/there"}
		if row.Secret != "" {
			a.access = "read"
		}
		rows++
		if a.wrong(s) != "" {
			found++
		}
	}
	// Some names mean something in each directory.
	if t.Logf("%d of %d", found, rows); 2*found < rows {
		t.Errorf("of %d rows only %d were found to be suggested", rows, found)
	}
}

// A directory is not suggested for reading if the only secret in it is that of one
// row. The home directory and ~/.config need care without any.
func TestGate_SuggestsNoDirectoryOfOneSecret(t *testing.T) {
	t.Parallel()
	asked := 0
	for _, row := range risks.All() {
		above := path.Dir(at(row))
		if !isSecret(row, false) || above == home || above == home+"/.config" {
			continue
		}
		asked++
		s := machine{tree: map[string]string{at(row) + "/there": ""}}.snapshot(t)
		if why := (ask{access: "read", target: above}).wrong(s); why != "" {
			t.Errorf("%s: read %s: %s", row.Path, above, why)
		}
	}
	if asked == 0 {
		t.Error("nothing was asked")
	}
}

// denied is a denial with the directory that an answer could open.
func denied(access, target, directory string) spawn.Denial {
	return spawn.Denial{Denial: platform.Denial{
		Access: platform.Refused(access), Target: target, Directory: directory, Process: "program", PID: 1, Count: 1,
	}}
}

// With on_denied "ask" nothing in the places is a question, and an answer about a
// directory opens none of them. A set is offered, as it keeps the changes apart.
func TestGate_AsksAboutNoPlaceOfTheTable(t *testing.T) {
	t.Parallel()
	s := machine{tree: treeOf(directory)}.snapshot(t)
	allowed := func(access, target string) bool {
		got, err := explain.Suggest(s, document.KindTool, access, target, "")
		return err == nil && got.Allowed
	}
	for _, row := range risks.All() {
		if row.Class() == 0 {
			continue
		}
		accesses := []string{"write"}
		if isSecret(row, false) || row.Agent != "" {
			accesses = append(accesses, "read")
		}
		for _, access := range accesses {
			for _, opened := range []bool{false, true} { // by an answer about a directory above
				denial := denied(access, at(row)+"/there", at(row))
				denial.Opened = opened
				question, suggestion, may := presentation.Question(s, document.KindTool, denial)
				set := access == "write" && suggestion.Setting() == aSet && !ofAgent(suggestion.Value)
				switch {
				case !may, access == "read" && allowed(access, denial.Target):
				case opened, !set, question.Directory != "", slices.Contains(question.Choices, "once"):
					t.Errorf("%s: %s %s, opened: %t: %+v", row.Path, access, denial.Target, opened, question)
				}
			}
		}
	}
}

// A question about a harmless file offers its directory, unless a place is there.
func TestGate_OffersNoDirectoryOfAPlace(t *testing.T) {
	t.Parallel()
	tree, reads, writes := treeOf(directory), map[string]bool{}, map[string]bool{}
	for _, row := range risks.All() {
		above := path.Dir(at(row))
		reads[above] = reads[above] || isSecret(row, false)
		writes[above] = writes[above] || row.Acts != ""
		tree[path.Join(above, "file")] = ""
	}
	s := machine{tree: tree}.snapshot(t)
	for access, dirs := range map[string]map[string]bool{"read": reads, "write": writes} {
		for dir, holds := range dirs {
			if !holds {
				continue
			}
			question, _, _ := presentation.Question(s, document.KindTool, denied(access, path.Join(dir, "file"), dir))
			if question.Directory != "" || slices.Contains(question.Choices, "directory") {
				t.Errorf("%s: the whole directory %s is offered: %+v", access, dir, question)
			}
		}
		dir := path.Dir(harmless)
		question, _, may := presentation.Question(s, document.KindTool, denied(access, harmless, dir))
		if !may || question.Directory != dir || !slices.Contains(question.Choices, "directory") {
			t.Errorf("control: %s: %+v", access, question)
		}
	}
}

// Names without a secret in a place, and places that a row says to be harmless, are
// suggested or allowed.
func TestGate_ClosesNoHarmlessName(t *testing.T) {
	t.Parallel()
	tree, names := treeOf(directory), []string{}
	for _, row := range risks.All() {
		for _, plain := range row.Plain {
			name := path.Join(at(row), strings.ReplaceAll(plain, "*", "x"))
			tree[name], names = "", append(names, name)
		}
		needsCare := func(other risks.Place) bool { return other.Secret != "" || other.Agent != "" }
		if row.Class() == 0 && !slices.ContainsFunc(around(at(row)), needsCare) {
			names = append(names, at(row))
		}
	}
	s := machine{tree: tree}.snapshot(t)
	if len(names) == 0 {
		t.Error("nothing was asked")
	}
	for _, name := range names {
		got, err := explain.Suggest(s, document.KindTool, "read", name, "")
		if err != nil || got.Key == "" && !got.Allowed {
			t.Errorf("read %s: %+v, %v", name, got, err)
		}
	}
}
