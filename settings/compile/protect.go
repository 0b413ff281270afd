package compile

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

const protectedKey = "protected_paths"

// exceptions are the entries "!path" of the user: what the built-in list does
// not protect.
type exceptions []exception

type exception struct {
	path string // what it takes away, with everything below; "" takes away all
	at   document.Position
	text string
	used bool
}

// take reports whether an entry takes a built-in path away.
func (e exceptions) take(path string) bool {
	taken := false
	for i := range e {
		if e[i].path == "" || policy.Contains(e[i].path, path) {
			e[i].used, taken = true, true
		}
	}
	return taken
}

// listed are what the entries of one layer protect.
type listed struct {
	list []policy.Protected
	// ungranted are those outside of the project that no grant holds.
	ungranted []policy.Protected
	// without is what they take away from the built-in list.
	without exceptions
	// unclear is the first entry that could not be understood; nil if there is none.
	unclear *document.FileDiagnostic
}

// protectedOf reads the entries of one layer. Relative ones are relative to the
// project in every layer. Symlinks are not followed: the name inside the project
// has to stay as it is. granted are the grants in which paths outside of the
// project count; nil if none does.
func protectedOf(view fsView, p project, granted cover, s *settings, r *reporter) (l listed) {
	from, ok := s.from[protectedKey]
	if !ok {
		return l
	}
	if p.path == "" {
		r = &reporter{} // each project says it again
	}
	doubt := func(at document.Position, format string, args ...any) {
		message := fmt.Sprintf(format, args...)
		r.add(from.file, at, document.SeverityError, protectedKey, "%s; the entry does not count", message)
		if l.unclear == nil {
			l.unclear = &document.FileDiagnostic{File: from.file, Diagnostic: document.Diagnostic{
				Line: at.Line, Column: at.Column, Severity: document.SeverityError, Key: protectedKey, Message: message,
			}}
		}
	}
	for i, entry := range s.values.ProtectedPaths {
		at := from.element(i)
		text, takes := strings.CutPrefix(entry, "!")
		if takes && text == "*" {
			l.without = append(l.without, exception{at: at, text: entry})
			continue
		}
		if name, is, err := nameAnywhere(text); err != nil {
			doubt(at, "%s: %v", display.Quote(entry), err)
			continue
		} else if is && !takes && p.path == "" {
			continue
		} else if is && !takes {
			l.list = append(l.list, policy.Protected{
				Path: filepath.Join(p.path, text), Origin: from.policy(protectedKey, at), Pattern: true,
			})
			for _, path := range view.anywhere(p, name) {
				l.list = append(l.list, policy.Protected{Path: path, Origin: from.policy(protectedKey, at)})
			}
			continue
		}
		path, err := view.host.Expand(text, p.path)
		if err != nil && p.path == "" {
			continue
		}
		if err != nil {
			doubt(at, "%s: %v", display.Quote(entry), err)
			continue
		}
		top, named := p.path, filepath.Clean(path)
		path, inside := p.inside(named)
		if !inside {
			top, path = "", view.inGrant(named)
			inside = granted.at(path).Has(policy.Write)
		}
		dir, name := filepath.Split(path)
		switch {
		case !inside && granted == nil:
			r.add(from.file, at, document.SeverityWarning, protectedKey,
				"%s has no effect unless you trust this project: its file protects only what is in the project",
				display.Quote(entry))
		case !inside && (takes || strings.Contains(dir, "*")):
			r.add(from.file, at, document.SeverityError, protectedKey,
				"%s lies outside of the project and of all grants for writing; the entry does not count",
				display.Quote(entry))
		case takes && top == "" && view.crosses(named, granted):
			doubt(at, "%s: a symlink that sessions may change is on the way", display.Quote(entry))
		case takes:
			l.without = append(l.without, exception{path: path, at: at, text: entry})
		case strings.Contains(strings.TrimPrefix(dir, top), "*"):
			doubt(at, "%s: only the last name may contain *", display.Quote(entry))
		case !inside:
			r.add(from.file, at, document.SeverityWarning, protectedKey,
				"%s lies outside of the project and of all grants for writing; only questions and suggestions heed it",
				display.Quote(entry))
			for _, one := range expand(view, policy.Protected{
				Path: path, Origin: from.policy(protectedKey, at), Pattern: strings.Contains(name, "*"),
			}) {
				l.ungranted = append(l.ungranted, one)
				if end := view.Resolve(one.Path); !one.Pattern && end.Err == nil && end.Path != one.Path {
					one.Path = end.Path // a file is asked about by the name that it has without links
					l.ungranted = append(l.ungranted, one)
				}
			}
		default:
			l.list = append(l.list, expand(view, policy.Protected{
				Path: path, Origin: from.policy(protectedKey, at),
				Pattern: path != p.path && strings.Contains(name, "*"),
			})...)
		}
	}
	return l
}

// expand adds to a pattern the paths that exist and match it.
func expand(view fsView, p policy.Protected) []policy.Protected {
	list := []policy.Protected{p}
	if !p.Pattern {
		return list
	}
	dir, pattern := filepath.Split(p.Path)
	for _, name := range view.names(filepath.Clean(dir)) {
		if policy.MatchName(pattern, name) {
			list = append(list, policy.Protected{Path: dir + name, Origin: p.Origin})
		}
	}
	return list
}

// names lists a directory, once for each view. It follows no symlink.
func (v fsView) names(dir string) []string {
	if list, known := v.listed[dir]; known {
		return list
	}
	var list []string
	if v.Entry(dir).Err == nil {
		list, _ = v.FS.ReadDir(dir)
	}
	v.listed[dir] = list
	return list
}

// crowded warns of directories with so many names that existing files may match
// a protected pattern and not be found.
func (v fsView) crowded() []string {
	var list []string
	for dir, names := range v.listed {
		if len(names) >= resolve.MaxNames {
			list = append(list, fmt.Sprintf("%s holds %d files or more: not all of those that protected patterns "+
				"match are protected", display.Quote(dir), resolve.MaxNames))
		}
	}
	slices.Sort(list)
	return list
}

// inGrant expresses a clean path by the real path of its directory.
func (v fsView) inGrant(path string) string {
	dir, name := filepath.Split(path)
	return filepath.Join(v.Resolve(dir).Path, name)
}

// crosses reports whether a symlink that a grant lets sessions change is on the
// way to a clean path.
func (v fsView) crosses(path string, granted cover) bool {
	return slices.ContainsFunc(v.Resolve(filepath.Dir(path)).Links, func(link resolve.Link) bool {
		return granted.at(link.Dir).Has(policy.Write)
	})
}

// inside expresses a clean path below the project's real path. The project may
// have been named through a symlink.
func (p project) inside(path string) (string, bool) {
	if p.path == "" {
		return "", false
	}
	if policy.Contains(p.path, path) {
		return path, true
	}
	if policy.Contains(p.dir, path) {
		return filepath.Join(p.path, path[len(p.dir):]), true
	}
	return "", false
}

// builtInProtected is what is protected in this project whatever the settings
// add, without what they take away.
func builtInProtected(view fsView, p project, without exceptions) []policy.Protected {
	if p.path == "" {
		return nil
	}
	var list []policy.Protected
	for _, name := range protected.Names {
		path := filepath.Join(p.path, name.Path)
		repository := protected.Repository(name.Path)
		switch {
		case name.Group != "", repository == ".git" && p.git.Pointer, without.take(path):
			// In a worktree .git is a file, which is protected itself.
		case repository != "" && view.Entry(filepath.Join(p.path, repository)).Err != nil:
			entry := builtIn(path)
			entry.Creatable = true
			list = append(list, entry)
		default:
			entry := builtIn(path)
			entry.Pattern = strings.Contains(filepath.Base(name.Path), "*")
			list = append(list, expand(view, entry)...)
		}
	}
	for _, path := range p.git.Inside {
		if !without.take(path) {
			list = append(list, builtIn(path))
		}
	}
	for i := range list {
		list[i].GitConfig = !list[i].Creatable && slices.Contains(p.git.Configs, list[i].Path)
	}
	return list
}

// gitDirs are the directories of repositories in which a session makes only files
// and directories. As with what is protected in them, the user can take away
// those in the project, and not those outside of it.
func gitDirs(p project, without exceptions) []string {
	if p.path == "" {
		return nil
	}
	dirs := slices.Clone(p.git.Dirs)
	if p.parent != nil {
		dirs = append(dirs, p.parent.Dir)
	}
	if !p.git.Pointer {
		dirs = append(dirs, filepath.Join(p.path, ".git")) // which git may make
	}
	return outermost(slices.DeleteFunc(dirs, func(dir string) bool {
		return policy.Contains(p.path, dir) && without.take(dir)
	}))
}

// outermost are the directories that lie in no other, sorted.
func outermost(dirs []string) (list []string) {
	slices.Sort(dirs)
	for _, dir := range dirs {
		if !slices.ContainsFunc(list, func(other string) bool { return policy.Contains(other, dir) }) {
			list = append(list, dir)
		}
	}
	return list
}

func builtIn(path string) policy.Protected {
	return policy.Protected{Path: path, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: protectedKey}}
}

// GuardKey names the origin of the protection of the sidecar's own files.
const GuardKey = "the sidecar's own files"

// guard protects the files that decide about sessions if the grants would let a
// session change them. A grant that contains them is the user's own, so it stays;
// these files do not become writable.
func guard(view fsView, granted cover) shut {
	s := shutPlaces(view, granted)
	var files []policy.Protected
	for _, path := range view.guarded {
		if granted.at(path).Has(policy.Write) && !s.has(path) {
			files = append(files, decides(path))
		}
	}
	s.protected = append(s.protected, files...)
	return s
}

// guardGit protects the user's configuration of git, hooks, and the .git files of
// the repository's other working trees, in places that the grants open. A grant of
// exactly such a file is meant, so it stays. In a directory that the user has
// granted, an exception counts as well.
func guardGit(
	view fsView, l layers, p project, granted grantSet, without exceptions,
) []policy.Protected {
	if slices.Contains(l.user.values.ProtectedPaths, "!*") {
		return nil
	}
	meant := writable(granted.lasting)
	var list []policy.Protected
	for _, path := range slices.Concat(p.git.Elsewhere, pointersIn(view, p.git, granted.cover)) {
		if !slices.Contains(meant, path) && granted.cover.at(path).Has(policy.Write) && !without.take(path) {
			list = append(list, builtIn(path))
		}
	}
	return list
}

// sortProtected orders the paths, and keeps one entry of each. An entry that
// decides about sessions counts most; one that git may create counts least,
// and before it one whose harmless changes are accepted. A pattern and a file
// whose name is spelled like it are two.
func sortProtected(list []policy.Protected) []policy.Protected {
	weight := func(p policy.Protected) int {
		switch {
		case p.Decides:
			return 0
		case p.Creatable:
			return 3
		case p.GitConfig:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b policy.Protected) int {
		pattern := 0
		if a.Pattern != b.Pattern {
			if pattern = 1; b.Pattern {
				pattern = -1
			}
		}
		return cmp.Or(cmp.Compare(a.Path, b.Path), pattern, cmp.Compare(weight(a), weight(b)))
	})
	return slices.CompactFunc(list, func(a, b policy.Protected) bool {
		return a.Path == b.Path && a.Pattern == b.Pattern
	})
}

// chosenPaths are what is protected, and what follows from the search for it.
type chosenPaths struct {
	list     []policy.Protected
	gitDirs  []string          // see policy.Policy.GitDirs
	reviewed map[string]string // see policy.Policy.Reviewed
	unlinked []string          // see policy.Policy.Unlinked
	without  exceptions        // of the user
	// ungranted are the user's entries outside of the project that no grant holds.
	ungranted []policy.Protected
	refusals  []string // what could not be protected
	// unsearched are the notes on grants that are too large to search.
	unsearched []Note
	// outside are the paths that are protected only because a grant outside of the
	// project holds them. A narrower grant opens what it names there.
	outside map[string]bool
	// unclear is the first entry that could not be understood; nil if there is
	// none.
	unclear *document.FileDiagnostic
}

// review adds the programs that git's configuration names, and the repositories
// that its index does. What is known already stays.
func (c *chosenPaths) review(repository git.Repository) {
	c.unlinked = append(c.unlinked, repository.Unlinked...)
	for path, key := range repository.Programs {
		if c.reviewed[path] == "" {
			c.reviewed[path] = "git runs it: its configuration names it in " + key
		}
	}
}

// choosePaths unites the built-in protected paths with those of the user and of
// the project, and does the same in the roots. Only the user's entries take
// built-in ones away.
func choosePaths(
	view fsView, l layers, p project, grants grantSet, roots chosenRoots, r *reporter,
) chosenPaths {
	users := protectedOf(view, p, grants.cover, &l.user, r)
	list, without, unclear := users.list, users.without, users.unclear
	if from, set := l.user.from[protectedKey]; set && len(l.user.values.ProtectedPaths) == 0 {
		r.add(from.file, from.At, document.SeverityInfo, protectedKey,
			`[] has no effect: the built-in list stays; to protect nothing, write ["!*"]`)
	}
	own := builtInProtected(view, p, without)
	result := chosenPaths{gitDirs: gitDirs(p, without), reviewed: view.reviewed()}
	result.review(p.git)
	outside := roots.builtInOutside(view, p, grants, without, &result)
	list = slices.Concat(list, own, outside)
	for _, e := range without {
		covers := func(p policy.Protected) bool {
			return p.Pattern && p.Origin.File == policy.OriginBuiltIn && p.Covers(e.path)
		}
		if i := slices.IndexFunc(list, covers); i >= 0 {
			whole := strings.TrimPrefix(list[i].Path, p.path+"/")
			r.add(l.user.from[protectedKey].file, e.at, document.SeverityWarning, protectedKey,
				"%s has no effect, as the built-in %s covers it; take that away with %s, and list what must stay",
				display.Quote(e.text), display.Quote(whole), display.Quote("!"+whole))
		} else if !e.used && p.path != "" {
			r.add(l.user.from[protectedKey].file, e.at, document.SeverityWarning, protectedKey,
				"%s takes nothing away: the built-in list has no such path here", display.Quote(e.text))
		}
	}
	tops := append(slices.Clone(roots.dirs), p.path)
	linked, unfollowed := followLinks(view, list, grants.lasting, tops, result.gitDirs, without)
	result.refusals = append(result.refusals, unfollowed...)
	if l.projectSets(protectedKey) {
		projects := protectedOf(view, p, nil, l.project, r)
		more := projects.list
		for _, e := range projects.without {
			r.add(l.projectFile, e.at, document.SeverityWarning, protectedKey,
				"%s has no effect unless you trust this project: its file can only add protected paths",
				display.Quote(e.text))
		}
		if len(more) > 0 {
			adds := slices.DeleteFunc(slices.Clone(l.project.values.ProtectedPaths), func(entry string) bool {
				return strings.HasPrefix(entry, "!")
			})
			l.tightened.values.ProtectedPaths = slices.Concat(l.user.values.ProtectedPaths, adds)
			l.decide(protectedKey)
		}
		list = append(list, more...)
		leads, _ := followLinks(view, more, grants.lasting, tops, result.gitDirs, without)
		for _, one := range leads {
			if policy.Contains(p.path, one.Path) { // what it adds does not reach further
				linked = append(linked, one)
			}
		}
		if unclear == nil {
			unclear = projects.unclear
		}
	}
	firm := slices.Concat(linked, p.parent.guard())
	for _, path := range p.git.OutsideProtected {
		one := builtIn(path)
		one.GitConfig = slices.Contains(p.git.Configs, path)
		firm = append(firm, one) // the grant of the repository depends on it, whatever the settings say
	}
	result.outside = pathsOf(outside)
	for path := range pathsOf(slices.Concat(own, firm)) {
		delete(result.outside, path)
	}
	result.list, result.without, result.unclear = slices.Concat([]policy.Protected{}, list, firm), without, unclear
	result.ungranted = users.ungranted
	return result
}

// pathsOf are the paths of entries that protect what exists.
func pathsOf(list []policy.Protected) map[string]bool {
	paths := map[string]bool{}
	for _, one := range list {
		if !one.Pattern && !one.Creatable {
			paths[one.Path] = true
		}
	}
	return paths
}

// protect adds the file's protected paths.
func (b bounding) protect(s *settings) {
	if !s.sets(protectedKey) {
		return
	}
	required := protectedOf(b.view, b.project, b.evaluation.cover, s, b.reporter)
	linked, _ := followLinks(b.view, required.list, b.lasting, nil, nil, nil)
	list := slices.Concat(required.list, linked)
	b.evaluation.ungranted = slices.Concat(b.evaluation.ungranted, required.ungranted)
	b.refuse(required.unclear)
	for _, e := range required.without {
		b.reporter.add(s.from[protectedKey].file, e.at, document.SeverityWarning, protectedKey,
			`%s has no effect in "required", which only adds protected paths`, display.Quote(e.text))
	}
	adds := slices.DeleteFunc(slices.Clone(s.values.ProtectedPaths), func(entry string) bool {
		return strings.HasPrefix(entry, "!")
	})
	b.policy.Protected = sortProtected(slices.Concat(list, b.policy.Protected))
	b.bounds.protects = b.bounds.protects || len(list) > 0
	b.decides(s, protectedKey, slices.Concat(b.merged.ProtectedPaths, adds))
}

func (b *asker) protected() {
	var lost []string
	all := b.e.policy
	all.Protected = slices.Clone(all.Protected)
	for i := range all.Protected {
		all.Protected[i].Creatable = false
	}
	firm, either := policy.NewIndex(&b.e.policy), policy.NewIndex(&all)
	for _, was := range b.alone.policy.Protected {
		still := firm.Protects(was.Path) || was.Creatable && either.Protects(was.Path)
		if !still && b.writes(was.Path) {
			lost = append(lost, display.Quote(strings.TrimPrefix(was.Path, b.e.policy.Project+"/")))
		}
	}
	if len(lost) == 0 {
		return
	}
	const most = 4
	if more := len(lost) - most; more > 0 {
		lost = append(lost[:most], fmt.Sprintf("%d more", more))
	}
	b.addKey(protectedKey, "sessions may change %s, which programs outside of the sandbox rely on",
		strings.Join(lost, ", "))
}

// writes reports whether a rule grants writing at the path, above it or below
// it.
func (b *asker) writes(path string) bool {
	return slices.ContainsFunc(b.e.policy.Rules, func(rule policy.Rule) bool {
		return rule.Access.Has(policy.Write) && (policy.Contains(rule.Path, path) || policy.Contains(path, rule.Path))
	})
}

// diagnoseProtected finds a grant for writing of a protected path.
func (e *evaluation) diagnoseProtected(r *reporter, g grant) {
	if !g.access.Has(policy.Write) {
		return
	}
	if protected, ok := e.policy.ProtectedAt(g.path); ok {
		r.add(g.origin.File, g.at, document.SeverityWarning, g.origin.Key, "%s stays read-only: %s is protected by %s",
			display.Quote(g.text), display.Quote(protected.Path), protected.Origin)
	}
}
