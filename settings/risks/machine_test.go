package risks_test

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

const (
	home    = "/home/u"
	project = home + "/project"
	// harmless is a file that no row is about.
	harmless = "/srv/data/file"
	// aSet is the list of sets, which keep the changes of sessions apart.
	aSet = "toolchains"
)

// machine is one on which advice is asked for.
type machine struct {
	home     string // the user's; "" is home
	root     bool
	env      map[string]string
	settings string // "" turns the sandbox on, and grants nothing more
	tree     map[string]string
}

// snapshot is of the settings of a machine. Each file there can be executed: what
// cannot be is not suggested anyway.
func (m machine) snapshot(t *testing.T) *compile.Snapshot {
	t.Helper()
	tree := map[string]string{project + "/": "", harmless: ""}
	maps.Copy(tree, m.tree)
	files := resolvetest.InMemory(tree)
	lstat := files.Lstat
	files.Lstat = func(path string) (fs.FileMode, error) {
		mode, err := lstat(path)
		if err == nil && mode.IsRegular() {
			mode |= 0o755
		}
		return mode, err
	}
	host := settingstest.Host()
	host.Root = m.root
	if m.home != "" {
		host.Home, host.Env["HOME"] = m.home, m.home
	}
	maps.Copy(host.Env, m.env)
	settings := m.settings
	if settings == "" {
		settings = `{"enabled": true}`
	}
	return compile.New(compile.Input{
		Host: host, FS: files, ProjectDir: project,
		UserStates: []source.State{settingstest.State(t, settingstest.UserFile, settings)},
	}, nil, nil)
}

// at is where the place of a row is.
func at(row risks.Place) string {
	if inHome(row) {
		return home + strings.TrimPrefix(row.Path, "~")
	}
	return row.Path
}

// places are those of all rows.
var places = sync.OnceValue(func() (list []string) {
	for _, row := range risks.All() {
		list = append(list, at(row))
	}
	return list
})

func inHome(row risks.Place) bool { return strings.HasPrefix(row.Path, "~/") }

// isSecret reports whether a reader of a place gets a secret. The modes of files
// keep those of the machine from an ordinary user.
func isSecret(row risks.Place, root bool) bool { return row.Secret != "" && (root || inHome(row)) }

// lies reports whether a path is at a place or below it.
func lies(path, place string) bool {
	dir, name := filepath.Split(place)
	if !strings.Contains(name, "*") {
		return policy.Contains(place, path)
	}
	below, is := strings.CutPrefix(path, dir)
	first, _, _ := strings.Cut(below, "/")
	return is && first != "" && policy.MatchName(name, first)
}

// around are the rows whose places a path is in, and those whose places are in it.
func around(path string) (rows []risks.Place) {
	for i, place := range places() {
		if lies(path, place) || policy.Contains(path, place) {
			rows = append(rows, risks.All()[i])
		}
	}
	return rows
}

// words say what a row is about.
func words(row risks.Place) (list []string) {
	for _, word := range []string{row.Secret, row.Acts} {
		if word != "" {
			list = append(list, word)
		}
	}
	if row.Agent != "" {
		list = append(list, row.Agent+" keeps its sign-in there")
	}
	return list
}

// wider is said of what is more than any row: a home directory, what decides about
// sessions, and names that mean something in each directory.
var wider = []string{"that would open ", "decides about sessions", "careful: outside, it is for "}

// says reports whether a hint says what one of some rows is about.
func says(hint string, rows []risks.Place) bool {
	list := slices.Clone(wider)
	for _, row := range rows {
		list = append(list, words(row)...)
	}
	return slices.ContainsFunc(list, func(word string) bool { return strings.Contains(hint, word) })
}

// ask is a question about a place, or about what is in it or around it.
type ask struct {
	access, target string
	// named: the answer has to say what the place is.
	named bool
}

// wrong says what an answer suggests, or does not say; "" if it is right.
func (a ask) wrong(s *compile.Snapshot) string {
	got, err := explain.Suggest(s, document.KindTool, a.access, a.target, "")
	opened := a.target
	if a.access == "create" || a.access == "remove" { // a name belongs to its directory
		opened = path.Dir(a.target)
	}
	rows := around(opened)
	reads := a.access == "read" || a.access == "execute"
	switch {
	case err != nil:
		return err.Error()
	case got.Allowed && a.access == "write":
		return "it is allowed: " + got.Hint
	case got.Allowed:
		return ""
	case got.Setting() == aSet && !reads && !ofAgent(got.Value):
	case got.Key != "":
		return "it is suggested: " + got.Key + "=" + got.Value + ", " + got.Hint
	case (a.named || strings.HasPrefix(got.Hint, "careful: ")) && !says(got.Hint, rows):
		return "the hint does not say what is there: " + got.Hint
	}
	if !a.named {
		return ""
	}
	// Who asks just for that gets the key, behind the care.
	x, err := explain.Why(s, document.KindTool, explain.Attempt(a.access), a.target)
	_, key := document.SplitKey(x.Key)
	switch {
	case err != nil:
		return err.Error()
	case x.Allowed, key == "", key == aSet && !reads:
	case !x.Careful(), !strings.HasPrefix(x.Hint, "careful: "), !says(x.Hint, rows):
		return "it is explained without care: " + x.Key + "=" + x.Value + ", " + x.Hint
	}
	return ""
}

// ofAgent reports whether a set opens the sign-in of an agent, or is none.
func ofAgent(name string) bool {
	set, known := toolchain.Find(name)
	return !known || set.Agent
}
