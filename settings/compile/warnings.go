package compile

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// fileWarnings are the warnings that the diagnostics have, too.
func (s *Input) fileWarnings(diagnostics []document.FileDiagnostic) []string {
	var list []string
	for _, state := range s.states() {
		if state.Ignored != nil {
			list = append(list, fmt.Sprintf("your organisation's %s %s", display.Quote(state.File),
				state.Ignored.Message))
		}
		if state.Problem == nil {
			continue
		}
		warning := fmt.Sprintf("%s cannot be used (%s): what it asks for is not known",
			display.Quote(state.File), state.Problem)
		if state.Good != nil {
			warning = fmt.Sprintf("%s cannot be used (%s): its last good content counts",
				display.Quote(state.File), state.Problem)
		}
		if state.Doubt() != nil {
			warning += "; " + untilFixed
		}
		list = append(list, warning)
	}
	for _, state := range s.UserStates {
		list = append(list, countErrors(state, diagnostics)...)
	}
	if s.ProjectState != nil && s.ProjectState.Problem == nil && s.ProjectState.Doubt() != nil {
		list = append(list, countErrors(*s.ProjectState, diagnostics)...)
	}
	return list
}

// untilFixed is the consequence of an unclear mistake.
const untilFixed = "tools will not start until it is fixed"

// risks are what sessions of a kind may do that the user may not expect.
func (e *evaluation) risks(kind document.Kind) []string {
	if !e.restricted.Has(kind) {
		return nil
	}
	return slices.Concat(e.refusals, e.projectRisks)
}

// countErrors says that one of the user's files has entries that do not count.
// The user may rely on a misspelt one.
func countErrors(state source.State, diagnostics []document.FileDiagnostic) []string {
	var first *document.FileDiagnostic
	count := 0
	for i, d := range diagnostics {
		whole := state.Problem != nil
		if d.File != state.File || d.Severity != document.SeverityError || whole {
			continue
		}
		if first == nil {
			first = &diagnostics[i]
		}
		count++
	}
	fixed := ""
	if state.Doubt() != nil {
		fixed = "; " + untilFixed
	}
	switch count {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("a setting does not count: %s%s", first, fixed)}
	default:
		return []string{fmt.Sprintf("%d settings do not count, the first: %s%s", count, first, fixed)}
	}
}

// findProjectRisks warns of project directories that contain much more than a
// project.
func (e *evaluation) findProjectRisks() []string {
	project := e.policy.Project
	if project == "" {
		return nil
	}
	real := func(path string) string { return e.Resolve(path).Path }
	homes := e.RealHomes(e.host)
	switch {
	case project == "/":
		return []string{"the project directory is /: sessions may read every file that you may"}
	case slices.Contains(homes, project):
		return []string{fmt.Sprintf("the project directory %s is your home directory: sessions may read and write"+
			" all your files", display.Quote(project))}
	case slices.ContainsFunc(homes, func(home string) bool { return policy.Contains(project, home) }):
		return []string{fmt.Sprintf("the project directory %s holds your home directory: sessions may read and write"+
			" all your files", display.Quote(project))}
	case project == real("/tmp") || project == real("/var/tmp"):
		return []string{fmt.Sprintf("the project directory %s is shared by all programs: sessions may change "+
			"their temporary files", display.Quote(project))}
	}
	return e.findPlaceRisks(project)
}

// findPlaceRisks warns of a project directory that holds keys, or that programs
// outside act on.
func (e *evaluation) findPlaceRisks(project string) []string {
	var warnings []string
	moved := func(path string) bool { return e.sensitive.MovedInto(project, path) }
	hidden := func(path string) bool { return e.hides(path) || moved(path) }
	shown, _ := e.sensitive.Opens(project, hidden)
	covered, _ := e.sensitive.Opens(project, moved)
	switch {
	case shown != "":
		warnings = append(warnings, fmt.Sprintf("the project directory %s holds %s: sessions may read and write them",
			display.Quote(project), shown))
	case covered != "":
		warnings = append(warnings, fmt.Sprintf("the project directory %s holds %s: if there are no namespaces, "+
			"sessions may read and write them", display.Quote(project), covered))
	}
	actor, found := e.sensitive.ActorAt(project)
	if !found { // a symlink to it may be such a place
		actor, found = e.sensitive.PlaceAt(e.View, project)
	}
	if found {
		warnings = append(warnings, fmt.Sprintf("the project directory %s: sessions may write it, and %s",
			display.Quote(project), actor.Acts))
	}
	return warnings
}

// exposure is a file that decides about sessions and that a session may write.
type exposure struct {
	path, warning string
	// there: the file exists, or a directory of ours that holds it. Only then can
	// it be protected.
	there bool
	// made is the directory, if it has to be made first; "" if it exists.
	made string
	// own: the path leads to a file of the project's own, in its own /tmp.
	own bool
}

// findExposed lists the user's settings files and the list of trusted projects
// if a grant would let a session change them.
func (s *Input) findExposed(e *evaluation) []exposure {
	var list []exposure
	add := func(what string, paths []string) {
		for _, path := range paths {
			if rule, ok := e.policy.Find(policy.Write, path); ok {
				_, own := e.policy.TemporaryAt(path)
				there, made := e.mountable(path)
				list = append(list, exposure{path: path, there: there, made: made, own: own, warning: fmt.Sprintf(
					"%s %s is writable from inside: %s is granted by %s; a session can change what later "+
						"sessions may do", what, display.Quote(path), display.Quote(rule.Path), rule.Origin,
				)})
			}
		}
	}
	add("the settings file", s.settingsFiles(e.View))
	add("the list of trusted projects", s.trustFiles(e.View))
	add("the directory of shells", s.shells(e.View))
	return append(list, s.exposedState(e)...)
}

func (s *Input) guarded(r *resolve.View) []string {
	list := slices.Concat(s.settingsFiles(r), s.trustFiles(r))
	if account := (places.User{Home: s.Host.Account}).Trust(); account != "" {
		list = append(list, bothNames(r, account)...) // it counts once it exists
	}
	zeds, others := s.settingsDirs()
	for _, dir := range zeds {
		for _, name := range decidingOfZed[1:] {
			list = append(list, filepath.Join(r.Resolve(dir).Path, name))
		}
	}
	if s.Host.Platform == "darwin" { // Seatbelt needs no mounts
		for _, dir := range others {
			list = append(list, r.Resolve(dir).Path)
		}
	}
	list = slices.Concat(list, s.programs(r), s.shells(r))
	slices.Sort(list)
	return slices.Compact(list)
}

// shells are the directories of links that are shells, and that which says where
// such directories are. A symlink is listed with what it leads to.
func (s *Input) shells(r *resolve.View) []string {
	var dirs []string
	for _, user := range []places.User{s.Host.Places(), {Home: s.Host.Account}} {
		listed := user.ShellsElsewhere()
		dirs = append(dirs, user.Shells(), listed)
		if listed == "" {
			continue
		}
		names, err := r.FS.ReadDir(r.Resolve(listed).Path)
		if err != nil {
			names = nil // mostly there is none
		}
		for _, name := range names {
			dirs = append(dirs, filepath.Join(listed, name))
		}
	}
	var list []string
	for _, dir := range dirs {
		if dir == "" || !r.Resolve(dir).Exists {
			continue
		}
		// A session may have made such a symlink, to keep all later ones from
		// writing anything.
		holds := func(home string) bool { return policy.Contains(r.Resolve(dir).Path, home) }
		if slices.ContainsFunc(r.RealHomes(s.Host), holds) {
			continue
		}
		for _, path := range bothNames(r, dir) {
			if !slices.ContainsFunc(list, func(above string) bool { return policy.Contains(above, path) }) {
				list = append(list, path)
			}
		}
	}
	return list
}

// programs are the running program, and those beside it that it runs, even if
// they are missing.
func (s *Input) programs(r *resolve.View) []string {
	var list, missing []string
	for _, path := range s.OwnPaths {
		if named := bothNames(r, path)[1]; r.Entry(named).Mode&fs.ModeSymlink != 0 {
			list = append(list, named) // the next start goes by it
		}
		switch entry := r.Resolve(path); {
		case !entry.Exists:
			missing = append(missing, entry.Path)
		case entry.Mode.IsRegular():
			list = append(list, entry.Path)
		}
	}
	there := slices.Clone(list)
	for _, path := range missing { // it may also be a directory of state
		beside := func(program string) bool { return filepath.Dir(program) == filepath.Dir(path) }
		if slices.ContainsFunc(there, beside) {
			list = append(list, path)
		}
	}
	return list
}

// settingsFiles are the user's files: each under its real path, and under its
// name in the real directory. These differ if the file is a symlink.
func (s *Input) settingsFiles(r *resolve.View) []string {
	list := bothNames(r, managed.File)
	for _, state := range s.UserStates {
		if state.File != policy.OriginEditor {
			list = append(list, bothNames(r, state.File)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// trustFiles are the names of the list of trusted projects, as for
// settingsFiles.
func (s *Input) trustFiles(r *resolve.View) []string {
	if s.Trust == nil || s.Trust.Path == "" {
		return nil
	}
	return slices.Compact(bothNames(r, s.Trust.Path))
}

// bothNames are a file's real path and its name in the real directory. These
// differ if the file is a symlink.
func bothNames(r *resolve.View, file string) []string {
	dir, name := filepath.Split(file)
	return []string{r.Resolve(file).Path, filepath.Join(r.Resolve(dir).Path, name)}
}

// trusts reports whether the user trusts the project's file as it was read, for
// the directory that it would govern.
func (s *Input) trusts(project string) bool {
	// A content with a mistake inherits values of an older content, which
	// nobody has trusted.
	return s.Trust != nil && s.ProjectState != nil && s.ProjectState.Read && s.ProjectState.Problem == nil &&
		s.ProjectState.Doubt() == nil && trust.IsCleanPath(project) &&
		s.Trust.Trusts(project, hex.EncodeToString(s.ProjectState.Digest[:]))
}

// trustExposed says how sessions under the user's own policy could write the
// list of trusted projects; "" if they cannot. If they can, anybody may have
// written it, and nothing on it counts.
func (s *Input) trustExposed(e *evaluation) string {
	for _, path := range s.trustFiles(e.View) {
		if rule, ok := e.policy.Find(policy.Write, path); ok {
			return fmt.Sprintf("sessions could write the list of trusted projects %s: %s is granted by %s",
				display.Quote(path), display.Quote(rule.Path), rule.Origin)
		}
	}
	return ""
}

// trustExposedToAny is trustExposed for sessions of every kind.
func (s *Input) trustExposedToAny(view fsView, alone *evaluation) string {
	if why := s.trustExposed(alone); why != "" || !s.byKind() {
		return why
	}
	return s.trustExposed(s.run(view, s.ProjectDir, asIgnored, alone.kind.Other(), nil))
}
