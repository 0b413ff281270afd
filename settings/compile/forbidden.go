package compile

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// A grant for writing that would undo the sandbox does not count, whoever wrote
// it. Nobody means it, and it would open every later session. If such a place
// is only a part of what is granted, as in a grant of the home directory, the
// grant counts. Then the place is protected or the user is warned.

// kernelPlaces are directories whose files control a platform's kernel. On
// Linux they include what confines and ends processes.
var kernelPlaces = map[string][]string{"linux": {"/proc", "/sys"}}

// forbiddenPlace is a path that no session may write, with what a session would
// gain.
type forbiddenPlace struct{ path, gain string }

// forbidden are the places of this snapshot, under their real paths.
func (s *Input) forbidden(r *resolve.View) []forbiddenPlace {
	var list []forbiddenPlace
	for _, path := range kernelPlaces[s.Host.Platform] {
		list = append(list, forbiddenPlace{
			path, "orders to the kernel, by which a session leaves its sandbox and its end",
		})
	}
	for _, path := range s.OwnPaths {
		list = append(list, forbiddenPlace{
			r.Resolve(path).Path,
			"the program that confines it, or what that program keeps about sessions",
		})
	}
	for _, dir := range s.shells(r) {
		list = append(list, forbiddenPlace{dir, "the shells that confine what editors and agents run"})
	}
	for _, dir := range stateDirs(s.Host) {
		list = append(list, forbiddenPlace{r.Resolve(dir).Path, "what the sidecar keeps about sessions and trusts"})
	}
	for _, state := range s.UserStates {
		if state.File == policy.OriginEditor {
			continue
		}
		path := state.File
		if places.HoldsOnlySettings(path) {
			path = filepath.Dir(path)
		}
		list = append(list, forbiddenPlace{r.Resolve(path).Path, "the settings, which say what later sessions may do"})
	}
	return list
}

// HoldsState reports whether a path is in a directory of the sidecar's own files:
// the audit trail, the history of shells, the journal, what is trusted.
func (s *Snapshot) HoldsState(path string) bool {
	view := resolve.NewView(s.FS)
	return slices.ContainsFunc(stateDirs(s.Host), func(dir string) bool {
		return policy.Contains(dir, path) || policy.Contains(view.Resolve(dir).Path, path)
	})
}

// stateDirs are the directories of the sidecar's own files, whether they exist
// or not.
func stateDirs(h resolve.Host) []string {
	user := h.Places()
	account := places.User{Home: h.Account} // no variable moves it
	return slices.DeleteFunc([]string{
		user.Runtime(), user.State(), user.Cache(), account.State(), account.Cache(),
	}, func(dir string) bool { return dir == "" })
}

// undoes says why a grant for writing of a path would undo the sandbox; "" if
// it would not.
func (v fsView) undoes(path string) string {
	if path == "/" {
		return "it would grant writing everything, the settings and the kernel's own files included"
	}
	for _, forbidden := range v.forbidden {
		if policy.Contains(forbidden.path, path) {
			return "a session that writes there changes " + forbidden.gain
		}
	}
	return ""
}

// enfolds says what a grant for writing of path would also open, of the files
// that decide about sessions; "" if nothing.
func (v fsView) enfolds(path string) string {
	for _, forbidden := range v.forbidden {
		if path != forbidden.path && policy.Contains(path, forbidden.path) {
			return forbidden.gain
		}
	}
	return ""
}

// projectGrant is what a session may do in its project: everything, unless that
// would undo the sandbox. refusal says that it would.
func projectGrant(view fsView, path string) (g grant, refusal string) {
	g = grant{path: path, request: request{
		access: policy.ReadWrite,
		origin: policy.Origin{File: policy.OriginSession, Key: "projectDir"},
	}}
	if why := view.undoes(path); why != "" {
		g.access = readExecute
		refusal = fmt.Sprintf("the project directory %s is granted for reading only: %s", display.Quote(path), why)
	}
	return g, refusal
}
