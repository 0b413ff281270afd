package review

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	// id differs if these do, and builtIn if those of the built-in table do.
	id, builtIn string
}

// lastNames are those of the last policies, by their root. Most sessions have the
// policy of the one before, and names take 40 KiB.
var lastNames struct {
	sync.Mutex
	byRoot map[string]lastName
}

type lastName struct {
	guarded  []string
	programs map[string]string
	names    *names
}

// maxLastNames bounds them.
const maxLastNames = 64

// guardedOf lists the protected paths of a policy that are reviewed. A hidden one is
// among them: a machine may not be able to hide it.
func guardedOf(p *policy.Policy, index *policy.Index) (guarded []string) {
	for _, one := range p.Protected {
		_, hidden := index.HiddenAt(one.Path)
		if one.Decides && (hidden || one.Busy) || one.Path == p.Audit.Dir {
			continue // sidecars change it
		}
		guarded = append(guarded, one.Path)
	}
	return guarded
}

// programsOf are the files that programs outside run because configuration names
// them, and that the session can write.
func programsOf(p *policy.Policy, index *policy.Index) map[string]string {
	programs := map[string]string{}
	for path, why := range p.Reviewed {
		if index.Writable(path) {
			programs[path] = why
		}
	}
	return programs
}

// kept returns the names of a root, which may be those of the session before.
func kept(root string, guarded []string, programs map[string]string) *names {
	last := &lastNames
	last.Lock()
	defer last.Unlock()
	if known, is := last.byRoot[root]; is && slices.Equal(known.guarded, guarded) &&
		maps.Equal(known.programs, programs) {
		return known.names
	}
	if last.byRoot == nil || len(last.byRoot) >= maxLastNames {
		last.byRoot = map[string]lastName{}
	}
	last.byRoot[root] = lastName{guarded, programs, newNames(root, guarded, programs)}
	return last.byRoot[root].names
}

func newNames(project string, guarded []string, programs map[string]string) *names {
	n := &names{project: project, reasons: map[string]reason{}}
	for path, why := range programs {
		n.reasons[path] = reason{why: why}
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
	all, table := sha256.New(), sha256.New()
	for _, name := range slices.Concat(everywhere, installed) {
		fmt.Fprintf(all, "%q\n", name.Path)
		if name.Why != whyProtected {
			fmt.Fprintf(table, "%q\n", name.Path)
		}
	}
	n.id, n.builtIn = hex.EncodeToString(all.Sum(nil)[:8]), hex.EncodeToString(table.Sum(nil)[:8])
	return n
}
