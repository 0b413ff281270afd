package compile

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// The directories of settings and of the sidecar's state are read-only in every
// session, whatever is granted. See docs/design/settings-places.md.

// ownPlace is such a directory.
type ownPlace struct {
	path  string // real, as far as it exists
	there bool
	links []resolve.Link // on the way to it
	busy  bool           // sidecars change it while sessions run
	// open are what is in it and the user's to edit.
	open []string
}

// decidingOfZed are the files in Zed's directory that say what Zed runs. All
// else there is the user's to edit from a session that may write it.
var decidingOfZed = []string{"settings.json", "tasks.json", "debug.json"}

// maxNeighbours bounds the other files in Zed's directory that are reopened.
const maxNeighbours = 256

// ownPlaces are those directories, each once. One that holds a home directory is
// left out: a session may have made such a symlink, to keep all later ones from
// writing anything. Its files are guarded nevertheless.
func (s *Input) ownPlaces(r *resolve.View) []ownPlace {
	zeds, others := s.settingsDirs()
	var list []ownPlace
	add := func(dir string, isZeds, busy bool) {
		target := r.Resolve(dir)
		known := slices.ContainsFunc(list, func(p ownPlace) bool { return p.path == target.Path })
		holds := func(home string) bool { return policy.Contains(target.Path, home) }
		if known || target.Err != nil || slices.ContainsFunc(r.RealHomes(s.Host), holds) {
			return
		}
		place := ownPlace{path: target.Path, there: target.Exists, links: target.Links, busy: busy}
		if isZeds {
			place.open = editable(r, target.Path)
		}
		list = append(list, place)
	}
	for _, dir := range others {
		add(dir, false, false)
	}
	for _, dir := range keptDirs(s.Host) {
		add(dir, false, true)
	}
	for _, dir := range zeds {
		add(dir, true, false)
	}
	return list
}

// settingsDirs are the directories of settings files: those of Zed, and all
// others. Those that count without --settings are among them.
func (s *Input) settingsDirs() (zeds, others []string) {
	var files []string
	for _, state := range s.UserStates {
		if filepath.IsAbs(state.File) && places.HoldsOnlySettings(state.File) {
			files = append(files, state.File)
		}
	}
	for _, user := range []places.User{s.Host.Places(), {Home: s.Host.Account}} {
		files = append(files, user.Settings()...)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		if places.IsZeds(file) {
			zeds = append(zeds, dir)
		} else {
			others = append(others, dir)
		}
	}
	return zeds, append(others, filepath.Dir(managed.File))
}

// keptDirs are the directories of what the sidecar keeps about sessions. What
// can be made again is not there; see guardCaches.
func keptDirs(h resolve.Host) []string {
	user := h.Places()
	list := []string{user.State(), places.User{Home: h.Account}.State(), user.Runtime()}
	return slices.DeleteFunc(list, func(dir string) bool { return dir == "" })
}

// editable are what is in Zed's directory and decides about nothing. A symlink
// can be followed anyway.
func editable(r *resolve.View, dir string) []string {
	names, err := r.FS.ReadDir(dir)
	if err != nil {
		return nil // mostly there is none
	}
	var list []string
	for _, name := range names[:min(len(names), maxNeighbours)] {
		path := filepath.Join(dir, name)
		entry := r.Entry(path)
		if entry.Err == nil && (entry.Mode.IsRegular() || entry.Mode.IsDir()) && !slices.Contains(decidingOfZed, name) {
			list = append(list, path)
		}
	}
	return list
}

// shut is what keeps sessions from changing what decides about them.
type shut struct {
	protected []policy.Protected
	reopened  []string
	create    []string // only what exists can be mounted
}

// shutPlaces shuts what the grants would open of the directories, and of the
// symlinks that lead to them.
func shutPlaces(view fsView, granted cover) shut {
	var s shut
	if view.host.Platform != "linux" {
		return s
	}
	for _, place := range view.own {
		for _, link := range place.links {
			if granted.at(link.Dir).Has(policy.Write) {
				entry := decides(link.Path)
				entry.Link = true
				s.protected = append(s.protected, entry)
			}
		}
		if !granted.at(place.path).Has(policy.Write) {
			continue
		}
		entry := decides(place.path)
		entry.Busy = place.busy
		s.protected = append(s.protected, entry)
		if !place.there {
			s.create = append(s.create, place.path)
		}
		for _, path := range place.open {
			if !slices.Contains(view.guarded, path) {
				s.reopened = append(s.reopened, path)
			}
		}
	}
	return s
}

// has reports whether a path lies in a directory that is shut as a whole.
func (s *shut) has(path string) bool {
	p := &policy.Policy{Protected: s.protected, Reopened: s.reopened}
	_, is := p.ProtectedAt(path)
	return is
}

func decides(path string) policy.Protected {
	return policy.Protected{
		Path: path, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: GuardKey}, Decides: true,
	}
}

// mountable reports whether a path, or the directory that holds it, can be
// mounted: it exists, or is made before a session starts. made is the directory
// then.
func (e *evaluation) mountable(path string) (there bool, made string) {
	if e.Resolve(path).Exists {
		return true, ""
	}
	one, is := e.policy.ProtectedAt(path)
	switch {
	case !is || !one.Decides:
		return false, ""
	case slices.Contains(e.create, one.Path):
		return true, one.Path
	}
	return one.Path != path && e.Resolve(one.Path).Exists, ""
}

// exposedState are the directories of state that a grant would let a session
// change.
func (s *Input) exposedState(e *evaluation) []exposure {
	var list []exposure
	for _, dir := range keptDirs(s.Host) {
		path := e.Resolve(dir).Path
		rule, ok := e.policy.Find(policy.Write, path)
		if !ok || slices.ContainsFunc(list, func(x exposure) bool { return x.path == path }) {
			continue
		}
		_, own := e.policy.TemporaryAt(path)
		there, made := e.mountable(path)
		list = append(list, exposure{path: path, there: there, made: made, own: own, warning: fmt.Sprintf(
			"the sidecar's state %s is writable from inside: %s is granted by %s; it can end any process of yours",
			display.Quote(path), display.Quote(rule.Path), rule.Origin,
		)})
	}
	return list
}
