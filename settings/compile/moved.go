package compile

import (
	"cmp"
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
	// refused are the directories of variables that do not count, but for those that
	// hold more than a tool's own.
	refused []unmoved
}

// unmoved is a directory that a variable names and that does not count.
type unmoved struct {
	path string // real
	why  string
}

// unmoved says why a directory does not count that a variable names and that a real
// path is in, or that is missing with all from the path on; "" if there is none.
func (m *moving) unmoved(path string, exists bool) string {
	for _, u := range m.refused {
		if policy.Contains(u.path, path) || !exists && policy.Contains(path, u.path) {
			return u.why
		}
	}
	return ""
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
func (m *moving) look(
	view fsView, l layers, p project, toolchains []chosen, lists, others []grant, alone *evaluation,
) {
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
	m.makes = append(m.makes, view.usualWritable(toolchains)...)
	// What the project's file drops, other sessions have.
	all := l.withAgent(toolchainsOf(&l.user, &reporter{}))
	if l.others != nil {
		all = append(all, toolchainsOf(l.others, &reporter{})...)
	}
	m.foreign = append(m.foreign, view.usualWritable(all)...)
	m.foreign = slices.DeleteFunc(m.foreign, func(path string) bool { return slices.Contains(m.makes, path) })
}

// usualWritable are the usual places of toolchains that sessions may write.
func (v fsView) usualWritable(toolchains []chosen) (list []string) {
	for _, c := range toolchains {
		for _, place := range c.Places {
			moves := place.Variable != "" && v.host.Env[place.Variable] != ""
			if moves || !place.Access.Has(policy.Write) || place.AlwaysPrivate {
				continue
			}
			for _, path := range v.placePaths(c, place, &reporter{}) {
				list = append(list, v.Resolve(path).Path)
			}
		}
	}
	return list
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
		wrote := !policy.Contains(at, place) && v.noted(places.User.Written, at)
		if wrote || v.wasProject(at) || inDir && v.Entry(filepath.Join(at, ".git")).Err == nil {
			return true
		}
	}
	return false
}

// wasProject reports whether sessions have been in a directory as their project:
// there is a note of that, or their history.
func (v fsView) wasProject(dir string) bool {
	for _, user := range []places.User{v.host.Places(), {Home: v.host.Account}} {
		if history := user.HistoryOf(dir); history != "" && v.Resolve(history).Exists {
			return true
		}
	}
	return v.noted(places.User.Projects, dir)
}

// noted reports whether earlier sessions have left a note about a real path in a
// directory of notes. Where they leave none, nobody knows.
func (v fsView) noted(in func(places.User) string, path string) bool {
	dir := in(places.User{Home: v.host.Account})
	return dir != "" && v.Resolve(filepath.Join(dir, places.Note(path))).Exists
}

// sidecarsOwn reports whether a real path is in a directory of a sidecar's, as is
// the private directory of a project or an overlay, which sessions write. Any name
// of such a directory is one, because variables move them.
func sidecarsOwn(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if places.IsName(name) {
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

// led is the first symlink on the way to a place that a session could have made;
// "" if there is none.
func (v fsView) led(dir string, p toolchain.Place) string {
	real, place := v.Resolve(dir).Path, v.Resolve(filepath.Join(dir, p.Below))
	for _, link := range place.Links {
		if v.makeable(link.Path, real, place.Path) {
			return link.Path
		}
	}
	return ""
}

// othersState says which other agent than c has its state in a real path, or around
// it, and what to do; "" if none has. One agent is not signed in as another.
func (v fsView) othersState(c chosen, real string) string {
	for _, set := range toolchain.All {
		if !set.Agent || set.Name == c.Name {
			continue
		}
		for _, p := range set.Places {
			if p.At == "" || !p.Access.Has(policy.Write) {
				continue
			}
			for _, path := range v.claimed(chosen{Toolchain: set}, p) {
				if at := v.Resolve(path).Path; holds(at, real) || holds(real, at) {
					return fmt.Sprintf("the state of %s is in %s; set it to another directory", set.Name,
						display.Quote(at))
				}
			}
		}
	}
	return ""
}

// claimed are the paths at which an agent may have its state, whatever others have:
// of two agents that variables have moved, neither waits for what is known of the
// other.
func (v fsView) claimed(c chosen, p toolchain.Place) []string {
	if p.Variable == "" || v.host.Env[p.Variable] == "" {
		return v.placePaths(c, p, &reporter{}) // the usual one
	}
	if p.Platform != "" && p.Platform != v.host.Platform {
		return nil
	}
	var paths []string
	for _, dir := range filepath.SplitList(v.host.Env[p.Variable]) {
		if !filepath.IsAbs(dir) {
			continue
		}
		proved, doubtful := v.proves(dir, p)
		if proved || doubtful != "" || v.isUsual(c, p, v.Resolve(filepath.Join(dir, p.Below)).Path) {
			paths = append(paths, v.matches(filepath.Join(dir, p.Below))...)
		}
	}
	return paths
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
	case v.isUsual(c, p, real):
		return true
	case v.inProject(real, p.Access), v.hasAlready(real, p.Access):
		return false // a grant by itself would open what is hidden there
	}
	if sidecarsOwn(real) {
		return refused("sessions write in a directory of the sidecar's; set it to another one")
	}
	const step = "; set it to a directory without projects"
	if link := v.led(dir, p); link != "" {
		return refused("a session could have made " + display.Quote(link) + step)
	}
	if p.Public {
		return true
	}
	enclosed := cmp.Or(v.encloses(real, p.Access), v.othersState(c, real))
	proved, doubtful := v.proves(dir, p)
	inVain := func(why string) {
		if enclosed == "" {
			v.moving.refused = append(v.moving.refused, unmoved{real, p.Variable + " names it, but " + why})
		}
		refused(why)
	}
	switch {
	case proved && enclosed == "":
		return true
	case enclosed != "" && (proved || doubtful != ""):
		refused(enclosed)
	case doubtful != "":
		inVain("a session could have made " + display.Quote(doubtful) + step)
	case p == firstOf(c, p) && (p.Create || v.Resolve(dir).Exists):
		inVain("it holds no " + oneOf(p.Proof()) + "; " + p.Step())
	}
	return false
}
