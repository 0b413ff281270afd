package compile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
)

// PrivateReason is the reason of a hidden path that only its mode makes one.
const PrivateReason = "private to you"

// maxPrivate bounds the private files that are hidden: each takes a mount.
const maxPrivate = 512

// privateFiles keeps a search for private files for all evaluations of a
// snapshot.
type privateFiles struct {
	bases   []string // nil: not looked for yet
	counted string
	found   sensitive.Private
}

func (f *privateFiles) find(h *hider, named []string) sensitive.Private {
	view := h.view
	if f.bases == nil {
		f.bases = view.sensitive.Bases(view.View, view.host.Getenv)
	}
	counts := func(path string) bool { return h.cover.at(path) != 0 }
	counted := slices.DeleteFunc(slices.Clone(f.bases), func(base string) bool { return !counts(base) })
	key := strings.Join(slices.Concat(counted, []string{h.project.path}, named), "\x00")
	if f.counted != key {
		known := append(h.knownPlaces(), named...)
		f.counted, f.found = key, view.sensitive.FindPrivate(view.View, counted, known)
	}
	return f.found
}

// knownPlaces are files of the sidecar and of git, about which other parts of
// the policy decide.
func (h *hider) knownPlaces() []string {
	list := slices.Concat(h.view.guarded, h.project.git.Elsewhere)
	for _, user := range []places.User{h.view.host.Places(), h.view.host.Kept()} {
		list = append(list, user.State(), user.Cache(), filepath.Dir(user.Shells()))
		for _, file := range user.Settings() {
			list = append(list, filepath.Dir(file))
		}
	}
	for i, path := range list {
		list[i] = h.view.Resolve(path).Path
	}
	return list
}

// private hides the files in home directories that only the user may read, where
// a grant opens more than the directory of one program. It returns what the user
// must know of that. named are the files that the user's configuration of git
// names: without one, every command of git ends with an error.
func (h *hider) private(named []string) (notes []string) {
	found := h.view.private.find(h, named)
	meant := map[string]bool{}
	for _, g := range h.granted {
		if !g.private && !h.isWide(g.path) {
			meant[g.path] = true
		}
	}
	decided := func(path string) bool {
		for dir := range upwards(path) {
			if _, hidden := h.found[dir]; hidden || meant[dir] {
				return true
			}
		}
		return h.cover.at(path) == 0
	}
	paths := slices.DeleteFunc(slices.Clone(found.Paths), decided)
	if found.Usual && len(paths) > 0 {
		return []string{"most files of your home directory are private to you: " +
			"only known places of secrets are hidden"}
	}
	if len(paths) > maxPrivate {
		paths, found.Whole = paths[:maxPrivate], false
	}
	from := policy.Origin{File: policy.OriginBuiltIn, Key: hiddenKey, Reason: PrivateReason}
	for _, path := range paths {
		h.add(path, from)
	}
	for _, path := range found.Remote {
		notes = append(notes, fmt.Sprintf("%s is on a remote file system: "+
			"only known places of secrets are hidden there", display.Quote(path)))
	}
	if !found.Whole {
		notes = append(notes, "too many files in your home directory: some private ones are not hidden; "+
			"grant less of it")
	}
	return notes
}

// isWide reports whether a grant of a path opens what several programs keep in a
// home directory. A grant of one program's directory means all files in it.
func (h *hider) isWide(path string) bool {
	return slices.ContainsFunc(h.view.private.bases, func(base string) bool { return policy.Contains(path, base) })
}
