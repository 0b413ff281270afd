package compile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// A line in a file of variables can name any directory, and a session can write
// that line. So a variable of a toolchain opens a directory only if nothing that a
// session could have made speaks for it, and if no place is in it that sessions
// may write: it would widen that one.

// moving is by what the directories that variables name are judged. All paths are
// real.
type moving struct {
	project string // "" if there is none
	// left is the project if this evaluation is without it; else "".
	left string
	// given is what sessions have without toolchains.
	given cover
	// granted are the grants for writing in lists of paths.
	granted []string
	// makes are all places that sessions may write, but for those that variables
	// name.
	makes []string
	// others are projects in which sessions may have been. foreign are places that
	// only other sessions may write, or only git in this one.
	others, foreign []string
}

// moving knows the other projects.
func (s *Input) moving(view fsView, projectDir string) *moving {
	m := &moving{}
	if projectDir == "" && s.ProjectDir != "" {
		m.left = view.Resolve(s.ProjectDir).Path
	}
	for _, other := range s.Others {
		if other != projectDir {
			m.others = append(m.others, view.Resolve(other).Path)
		}
	}
	return m
}

// look notes what sessions have, before the places of toolchains are added: by the
// lists of paths, and by those for the other kind of session.
func (m *moving) look(view fsView, p project, toolchains []chosen, lists, others []grant, alone *evaluation) {
	m.project, m.given = p.path, coverOf(slices.Concat(p.grants, lists))
	m.granted = writable(lists)
	m.makes = slices.Clone(m.granted)
	if p.path != "" {
		m.makes = append(m.makes, p.path)
	}
	m.foreign = slices.Concat(p.git.Outside, writable(others))
	if alone != nil {
		m.foreign = slices.Concat(m.foreign, alone.moving.granted, alone.moving.foreign)
	}
	m.foreign = slices.DeleteFunc(m.foreign, func(path string) bool { return slices.Contains(m.granted, path) })
	for _, c := range toolchains {
		for _, place := range c.Places {
			moves := place.Variable != "" && view.host.Env[place.Variable] != ""
			if moves || !place.Access.Has(policy.Write) || place.AlwaysPrivate {
				continue
			}
			for _, path := range view.placePaths(c, place, &reporter{}) {
				m.makes = append(m.makes, view.Resolve(path).Path)
			}
		}
	}
}

// holds is policy.Contains, where upper and lower case may be the same.
func holds(dir, path string) bool {
	return policy.Contains(strings.ToLower(dir), strings.ToLower(path))
}

// temporary reports whether a path lies in a directory of temporary files, which a
// session mostly has for itself.
func (v fsView) temporary(path string) bool {
	return slices.ContainsFunc(temporaryPaths[v.host.Platform], func(dir string) bool {
		return policy.Contains(v.Resolve(dir).Path, path)
	})
}

// hasAlready reports whether the lists of paths open a place as far.
func (v fsView) hasAlready(place string, access policy.Access) bool {
	return v.moving.given.at(place).Has(access) && !v.temporary(place)
}

// inProject reports whether a place is in the project, so that sessions have it.
func (v fsView) inProject(place string, access policy.Access) bool {
	m := v.moving
	if m.left != "" && policy.Contains(m.left, place) {
		return true
	}
	return m.project != "" && policy.Contains(m.project, place) && m.given.at(m.project).Has(access)
}

// encloses says what is in a place so that a variable must not open it, and what
// to do; "" if nothing is.
func (v fsView) encloses(place string, access policy.Access) string {
	m := v.moving
	for _, home := range v.RealHomes(v.host) {
		if holds(place, home) {
			return "it holds your home directory; set it to a directory below"
		}
	}
	const step = "; set it to a directory without projects"
	projects := []string{m.project, m.left}
	if access.Has(policy.Write) {
		projects = append(projects, m.others...)
	}
	for _, project := range projects {
		if project != "" && place != project && holds(place, project) {
			return "it holds the project " + display.Quote(project) + step
		}
	}
	for _, path := range slices.Concat(m.granted, m.foreign) {
		if place != path && holds(place, path) {
			return "it holds " + display.Quote(path) + ", which sessions may write; set it to another directory"
		}
	}
	return ""
}

// makeable reports whether a session could have made a real path in dir, which a
// variable names, so that it proves nothing for place. It does not matter if
// sessions may write the place anyway.
func (v fsView) makeable(path, dir, place string) bool {
	m := v.moving
	if slices.ContainsFunc(m.granted, func(at string) bool {
		return policy.Contains(at, place) && !v.temporary(at)
	}) {
		return false
	}
	writable := func(at string) bool { return holds(at, path) && !policy.Contains(at, place) }
	other := func(at string) bool { return holds(at, path) }
	if slices.ContainsFunc(m.makes, writable) || slices.ContainsFunc(m.others, other) ||
		slices.ContainsFunc(m.foreign, other) {
		return true
	}
	homes := v.RealHomes(v.host)
	for at := range upwards(path) {
		if slices.ContainsFunc(homes, func(home string) bool { return policy.Contains(at, home) }) {
			break
		}
		// A repository in the directory is a project of somebody's. The directory
		// itself may be one, as that of a version manager is.
		inDir := at != dir && policy.Contains(dir, at)
		if v.wasProject(at) || inDir && v.Entry(filepath.Join(at, ".git")).Err == nil {
			return true
		}
	}
	return false
}

// wasProject reports whether sessions have been in a directory as their project:
// their history is kept. Where it is not, nobody knows.
func (v fsView) wasProject(dir string) bool {
	for _, user := range []places.User{v.host.Places(), {Home: v.host.Account}} {
		if history := user.HistoryOf(dir); history != "" && v.Resolve(history).Exists {
			return true
		}
	}
	return false
}

// proves reports whether a directory that a variable names is what the variable
// says, by what it holds. If only what a session could have made says so, that is
// doubtful.
func (v fsView) proves(dir string, p toolchain.Place) (proved bool, doubtful string) {
	real, place := v.Resolve(dir).Path, v.Resolve(filepath.Join(dir, p.Below)).Path
	for _, proof := range p.Proof() {
		paths := []string{dir}
		for name := range strings.SplitSeq(strings.TrimSuffix(proof, "/"), "/") {
			var next []string
			for _, path := range paths {
				next = append(next, v.glob(filepath.Join(path, name))...)
			}
			paths = next
		}
		for _, path := range paths {
			found := v.Resolve(path)
			if found.Err != nil || !found.Exists || found.Mode.IsDir() != strings.HasSuffix(proof, "/") {
				continue
			}
			made := func(link resolve.Link) bool { return v.makeable(link.Path, real, place) }
			if !v.makeable(found.Path, real, place) && !slices.ContainsFunc(found.Links, made) {
				return true, ""
			}
			doubtful = path
		}
	}
	return false, doubtful
}

// admits reports whether a variable may name a directory for a place. If not, it
// says why.
func (v fsView) admits(c chosen, p toolchain.Place, dir string, r *reporter) bool {
	real := v.Resolve(filepath.Join(dir, p.Below)).Path
	refused := func(why string) bool {
		r.addOnce(c.origin.File, c.at, document.SeverityWarning, toolchainsKey,
			"%s: the variable %s is %s: not granted, because %s", display.Quote(c.Name), p.Variable,
			display.Quote(dir), why)
		return false
	}
	// Programs set variables, and programs make mistakes: nobody asked for the
	// whole home directory.
	if !p.Public { // which is a file, and looked into
		if what := v.sensitive.Holds(real); what != "" {
			return refused("that is " + what)
		}
	}
	if p.Access.Has(policy.Write) {
		if why := v.undoes(real); why != "" {
			return refused(why)
		}
	}
	switch {
	case p.Public, v.isUsual(c, p, real):
		return true
	case v.inProject(real, p.Access):
		return false // a grant by itself would open what is hidden there
	}
	enclosed := v.encloses(real, p.Access)
	proved, doubtful := v.proves(dir, p)
	switch {
	case proved && enclosed == "":
		return true
	case v.hasAlready(real, p.Access): // so that no note is true
	case enclosed != "" && (proved || doubtful != ""):
		refused(enclosed)
	case doubtful != "":
		refused(fmt.Sprintf("a session could have made %s; set it to a directory without projects",
			display.Quote(doubtful)))
	case p == firstOf(c, p) && (p.Create || v.Resolve(dir).Exists):
		refused("it holds no " + oneOf(p.Proof()))
	}
	return false
}
