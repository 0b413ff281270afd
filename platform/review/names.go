package review

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
)

// names says what is scanned and searched for under a policy. Nothing changes
// it, so sessions share it.
type names struct {
	project string
	// reasons has one for each path that is scanned, which may be a directory.
	reasons map[string]reason
	// everywhere are the names that are searched for in subdirectories, and
	// installed those that are searched for in the project itself, too.
	everywhere, installed index
}

// lastNames are those of the last policy. Most sessions have the policy of the
// one before, and names take 40 KiB.
var lastNames struct {
	sync.Mutex
	project  string
	guarded  []string
	programs map[string]string
	names    *names
}

// namesOf returns the names of a policy.
func namesOf(p *policy.Policy) *names {
	var guarded []string
	index := policy.NewIndex(p)
	for _, one := range p.Protected {
		if _, hidden := index.HiddenAt(one.Path); hidden || one.Busy || one.Path == p.Audit.Dir {
			continue // sidecars change it
		}
		guarded = append(guarded, one.Path)
	}
	programs := map[string]string{} // those that the session can write
	for path, key := range p.GitPrograms {
		if index.Writable(path) && p.Project != "" {
			programs[path] = key
		}
	}
	last := &lastNames
	last.Lock()
	defer last.Unlock()
	if last.names == nil || last.project != p.Project || !slices.Equal(last.guarded, guarded) ||
		!maps.Equal(last.programs, programs) {
		last.project, last.guarded, last.programs = p.Project, guarded, programs
		last.names = newNames(p.Project, guarded, programs)
	}
	return last.names
}

func newNames(project string, guarded []string, programs map[string]string) *names {
	n := &names{project: project, reasons: map[string]reason{}}
	for path, key := range programs {
		n.reasons[path] = reason{why: "git runs it: its configuration names it in " + key}
	}
	isGuarded := map[string]bool{}
	var everywhere, installed []protected.Name
	for _, path := range guarded {
		if _, name, is := (&policy.Protected{Path: path, Pattern: true}).Anywhere(); is {
			one := protected.Name{Path: name, Why: whyProtected}
			everywhere, installed = append(everywhere, one), append(installed, one)
			continue
		}
		n.reasons[path] = reason{why: whyProtected}
		isGuarded[path] = true
	}
	if project == "" {
		return n
	}
	for _, one := range protected.Names {
		path := filepath.Join(project, one.Path)
		switch {
		case one.Group == protected.Installed:
			installed = append(installed, one)
		case one.Scripts:
			n.reasons[path+scripts] = reason{one.Why, one.Group}
		case one.Group != "" || isGuarded[path]:
			n.reasons[path] = reason{one.Why, one.Group}
		default:
			continue // the user has taken it away
		}
		if !strings.HasPrefix(one.Path, ".git/") {
			everywhere = append(everywhere, one)
		}
	}
	n.everywhere, n.installed = newIndex(everywhere), newIndex(installed)
	return n
}
