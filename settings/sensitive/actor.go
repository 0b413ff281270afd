package sensitive

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// Actor is who acts on what sessions could write.
type Actor struct {
	// Acts is a clause, such as "your shells run it when they start".
	Acts string
	// Set is the entry of "toolchains" that gives sessions what they need of the
	// place without that risk; "" if there is none.
	Set string
	// Agent is the agent whose state it is, with its sign-in; "" if it is none.
	Agent string
}

// SignIn is a clause that says what a reader of an agent's state gets.
func (a Actor) SignIn() string { return a.Agent + " keeps its sign-in there" }

// FindActor says who acts on what is written at a path or below it. The path is
// absolute, without symlinks. A place below the path counts if it does not exist
// yet: sessions could make it. found is false if nobody is known to act on it.
func FindActor(r *resolve.View, homes []string, path string) (actor Actor, found bool) {
	all := actingIn(homes)
	for i := range all {
		all[i].real = r.Resolve(all[i].real).Path
	}
	if actor, found := within(all, path); found {
		return actor, true
	}
	if name, found := named(path); found {
		return Actor{Acts: fmt.Sprintf("outside, it is for %s: %s", name.Who, name.Why)}, true
	}
	if actor, found := below(all, path); found {
		return actor, true
	}
	if r.Resolve(filepath.Join(path, ".git")).Exists {
		return Actor{Acts: "a git repository is there, and git outside runs its hooks and what its settings name"}, true
	}
	return Actor{}, false
}

// ActorAt says who acts on what is written in a directory, as FindActor does, but
// looks nothing up: symlinks in the home directories do not count.
func ActorAt(homes []string, dir string) (actor Actor, found bool) {
	all := actingIn(homes)
	if actor, found = within(all, dir); !found {
		actor, found = below(all, dir)
	}
	return actor, found
}

// acting is a place that somebody acts on.
type acting struct {
	risks.Place
	real string // its path
}

// actingIn are all such places: those of the machine, and those of each home
// directory with its path in theirs.
func actingIn(homes []string) (all []acting) {
	for _, known := range risks.All {
		below, inHome := strings.CutPrefix(known.Path, "~/")
		switch {
		case known.Acts == "":
		case !inHome:
			all = append(all, acting{known, known.Path})
		default:
			for _, home := range homes {
				all = append(all, acting{known, filepath.Join(home, below)})
			}
		}
	}
	return all
}

// within finds the innermost place that a path is in.
func within(all []acting, path string) (actor Actor, found bool) {
	longest := -1
	for _, known := range all {
		if policy.Contains(known.real, path) && len(known.real) > longest {
			longest, found = len(known.real), true
			actor = Actor{Acts: known.Acts, Set: known.Set, Agent: known.Agent}
		}
	}
	return actor, found
}

// below finds a place that a path holds.
func below(all []acting, path string) (Actor, bool) {
	for _, known := range all {
		if policy.Contains(path, known.real) {
			return Actor{Acts: fmt.Sprintf("%s is below it, and %s", display.Quote(known.real), known.Acts)}, true
		}
	}
	return Actor{}, false
}

// named finds the name of a project's table that a path has, or holds, in any
// directory: the project may be somebody else's. Names that sessions change for
// good reasons are left out, but for hooks and unfinished operations of git.
func named(path string) (protected.Name, bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, name := range protected.Names {
		if name.Group != "" && name.Group != protected.Hooks && name.Group != protected.Unfinished {
			continue
		}
		pattern := strings.Split(name.Path, "/")
		for from := range parts {
			if most := min(len(pattern), len(parts)-from); matches(pattern[:most], parts[from:from+most]) {
				return name, true
			}
		}
	}
	return protected.Name{}, false
}

func matches(pattern, parts []string) bool {
	for i, part := range parts {
		if same, _ := filepath.Match(pattern[i], part); !same {
			return false
		}
	}
	return true
}
