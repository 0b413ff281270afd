package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

const parentKey = "parent_repository"

// VariablesReason is the reason of a hidden path that is a file of variables in
// the repository above the project.
const VariablesReason = "variables of the repository above"

// parentOrder are the values of "parent_repository" from the loosest to the
// strictest.
var parentOrder = []string{string(document.ParentRead), string(document.ParentGit), string(document.ParentOff)}

// parent is the repository above a project, as far as sessions get it. See
// docs/design/git-repositories.md.
type parent struct {
	git.Parent
	protected, configs []string
	// shown: sessions read its working tree, without secretFiles.
	shown       bool
	secretFiles []string
	// reports are what the user should know.
	reports []string
}

// openParent lets sessions have the repository above the project. writable is
// all that some session may write, and granted is what these sessions get
// anyway.
func (p *project) openParent(view fsView, l layers, writable, granted cover) {
	level := l.parentLevel()
	if level == document.ParentOff || p.path == "" || view.git.askParent == nil {
		return
	}
	found, refusal := view.git.parent(view, *p)
	switch {
	case refusal != "":
		p.refusals = append(p.refusals, refusal)
		return
	case found == nil:
		return
	case writable.at(found.Top).Has(policy.Write) && (found.Linked || !granted.at(found.Top).Has(policy.Write)):
		p.refusals = append(p.refusals, found.refused("a session could have made it"))
		return
	}
	opened := *found
	opened.shown = level == document.ParentRead
	if opened.shown {
		var whole bool
		if opened.secretFiles, whole = secretFiles(view, opened.Top, p.path); !whole {
			opened.reports = append(slices.Clone(opened.reports), fmt.Sprintf(
				`%s has many directories: .env is hidden in the nearest %d; "git" as parent_repository hides all`,
				display.Quote(opened.Top), maxSecretDirs))
		}
		// Hiding what git's objects show anyway makes git status and commit -a see a
		// change.
		held := opened.Holds(view.View, opened.secretFiles)
		opened.secretFiles = slices.DeleteFunc(opened.secretFiles, func(file string) bool {
			return slices.Contains(held, file)
		})
	}
	p.parent = &opened
	p.refusals = append(p.refusals, opened.reports...)
	p.grants = append(slices.Clone(p.grants), opened.grants(view, p.path, l.originOf(parentKey))...)
}

// parentLevel is the strictest value that anybody with a say has chosen.
func (l layers) parentLevel() document.ParentRepository {
	row := scalar{key: parentKey, order: parentOrder}
	strictest := l.values()
	for _, bound := range l.bounds {
		if row.isStricter(&bound.values, &strictest) {
			strictest.ParentRepository = bound.values.ParentRepository
		}
	}
	return *strictest.ParentRepository
}

// parent finds the repository above the project that counts, whatever the
// settings say; nil if none does. refusal is why, if the user may not expect
// that.
func (r *repositories) parent(view fsView, p project) (found *parent, refusal string) {
	if kept, known := r.parents[p.path]; known {
		return kept.parent, kept.refusal
	}
	defer func() {
		if r.parents == nil {
			r.parents = map[string]keptParent{}
		}
		r.parents[p.path] = keptParent{found, refusal}
	}()
	above, ok := git.FindParent(view.View, p.path)
	if !ok || tooWide(view, above.Top) || view.undoes(above.Dir) != "" {
		return nil, ""
	}
	found = &parent{Parent: above}
	if what := view.sensitive.Holds(above.Top); what != "" {
		return nil, found.refused("it holds " + what)
	}
	switch why := r.askParent(view.host, p.path, above, r.answer); why {
	case "":
	case git.Ignored:
		return nil, ""
	default:
		return nil, found.refused(why)
	}
	var crowded bool
	if found.protected, found.configs, crowded = above.Guard(view.View, view.host, p.path, r.answer); crowded {
		found.reports = append(found.reports, "too many git submodules or worktrees: modules and worktrees in "+
			display.Quote(above.Dir)+" are read-only; prune some")
	}
	return found, ""
}

// keptParent is what repositories.parent has returned.
type keptParent struct {
	parent  *parent
	refusal string
}

// refused says why sessions do not have the repository.
func (p *parent) refused(why string) string {
	return fmt.Sprintf("the git repository %s above the project is closed: %s", display.Quote(p.Top), why)
}

// systemTrees are the directories that hold no working tree of a user's.
// Others, and everything below them, belong to the system.
var (
	systemTrees = []string{
		"/home", "/root", "/mnt", "/media", "/opt", "/srv", "/tmp", "/var", "/var/tmp", "/run", "/Users", "/Volumes",
		"/private", "/private/tmp", "/private/var",
	}
	systemOnly = []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr",
		"/Applications", "/Library", "/System", "/private/etc",
	}
)

// tooWide reports whether a working tree holds a home directory, or is one of
// the system's.
func tooWide(view fsView, top string) bool {
	if top == "/" || slices.Contains(systemTrees, top) {
		return true
	}
	holds := func(home string) bool { return policy.Contains(top, home) }
	return slices.ContainsFunc(view.RealHomes(view.host), holds) ||
		slices.ContainsFunc(systemOnly, func(dir string) bool { return policy.Contains(dir, top) })
}

// grants are those of the repository: all that git reads of it, and its working
// tree if that is shown. The right to write comes with protection; see
// allowGuarded.
func (p *parent) grants(view fsView, project string, from policy.Origin) []grant {
	var list []grant
	add := func(path string, access policy.Access) {
		list = append(list, grant{path: path, request: request{access: access, origin: from}})
	}
	add(p.Dir, policy.Read)
	if p.shown {
		add(p.Top, readExecute)
		return list
	}
	file := func(path string) {
		if entry := view.Entry(path); entry.Err == nil && entry.Mode.IsRegular() {
			add(path, policy.Read)
		}
	}
	for dir := filepath.Dir(project); ; dir = filepath.Dir(dir) {
		file(filepath.Join(dir, ".gitignore"))
		file(filepath.Join(dir, ".gitattributes"))
		if dir == p.Top {
			break
		}
	}
	for _, name := range []string{".git", ".gitmodules", ".mailmap"} {
		file(filepath.Join(p.Top, name))
	}
	return list
}

// guard protects what git would run. The grant of the repository depends on it,
// whatever the settings say.
func (p *parent) guard() (list []policy.Protected) {
	if p == nil {
		return nil
	}
	for _, path := range p.protected {
		one := builtIn(path)
		one.GitConfig = slices.Contains(p.configs, path)
		list = append(list, one)
	}
	return list
}

// secrets are the paths in the working tree that sessions do not see.
func (p *parent) secrets() []string {
	if p == nil {
		return nil
	}
	return p.secretFiles
}

// maxSecretDirs bounds the search for secrets, which every start waits for.
const maxSecretDirs = 64

// secretFiles lists the .env files in a working tree outside of the project,
// those in the directories above the project first. Not whole: there are more
// directories or names than are searched.
func secretFiles(view fsView, top, project string) (list []string, whole bool) {
	var queue []string
	for dir := filepath.Dir(project); ; dir = filepath.Dir(dir) {
		queue = append(queue, dir)
		if dir == top {
			break
		}
	}
	known, all := map[string]bool{project: true}, true
	for _, dir := range queue {
		known[dir] = true
	}
	for searched := 0; len(queue) > 0; searched++ {
		if searched == maxSecretDirs {
			return list, false
		}
		dir := queue[0]
		queue = queue[1:]
		for _, name := range view.names(dir) {
			if !risks.IsEnvFile(name) {
				continue
			}
			file := view.Resolve(filepath.Join(dir, name))
			if file.Exists && file.Mode.IsRegular() && policy.Contains(top, file.Path) &&
				!policy.Contains(project, file.Path) {
				list = append(list, file.Path)
			}
		}
		below, err := view.FS.Dirs(dir)
		switch {
		case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
			continue // sessions cannot search it either
		case errors.Is(err, resolve.ErrNotAllFound):
			all = false
		case err != nil:
			return list, false
		}
		for _, name := range below {
			path := filepath.Join(dir, name)
			if name != ".git" && name != "node_modules" && !known[path] {
				queue, known[path] = append(queue, path), true
			}
		}
	}
	return list, all
}

// alsoInParent hides what a relative entry names from the root of the parent's
// working tree, too: there it would be hidden if that were the project.
func (h *hider) alsoInParent(entry string, from policy.Origin) {
	above := h.project.parent
	if above == nil || !above.shown || strings.HasPrefix(entry, "~") || strings.HasPrefix(entry, "$") ||
		filepath.IsAbs(entry) || !filepath.IsLocal(entry) || filepath.Clean(entry) == "." {
		return
	}
	h.inParent(h.view.matches(filepath.Join(above.Top, entry)), from)
}

// anywhereInParent does the same for an entry "**/name".
func (h *hider) anywhereInParent(name string, from policy.Origin) {
	if above := h.project.parent; above != nil && above.shown {
		h.inParent(h.view.anywhere(project{path: above.Top}, name), from)
	}
}

// inParent hides what is in the parent's working tree, and not in the project.
func (h *hider) inParent(paths []string, from policy.Origin) {
	for _, path := range paths {
		target := h.view.Resolve(path)
		if target.Err == nil && target.Exists && !policy.Contains(target.Path, h.project.path) &&
			!policy.Contains(h.project.path, target.Path) {
			h.add(target.Path, from)
		}
	}
}

// parent asks for a looser value of a trusted project's file.
func (b *asker) parent() {
	row := scalar{key: parentKey, order: parentOrder}
	if !row.isStricter(&b.alone.merged, &b.e.merged) {
		return
	}
	opens := "git works with the repository above the project, which holds all files of all commits"
	if *b.e.merged.ParentRepository == document.ParentRead {
		opens = "sessions may read the repository above the project, and its other directories"
	}
	b.addKey(parentKey, "%s", opens)
}
