package compile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// category is a settings key that grants paths, and what it grants.
type category struct {
	key    string
	access policy.Access
}

var categories = []category{
	{"system_paths.executable", readExecute},
	{"system_paths.read_only", policy.Read},
	{"system_paths.read_write", policy.ReadWrite},
	{"additional_executable_paths", readExecute},
	{"additional_read_only_paths", policy.Read},
	{"additional_read_write_paths", policy.ReadWrite},
}

// request is one entry of a list of paths as it is written, or a built-in one.
type request struct {
	text   string
	access policy.Access
	origin policy.Origin
	at     document.Position
	// private: a runtime directory of the session's own replaces the path.
	private bool
}

// grant is a request with the path that it leads to.
type grant struct {
	request
	path  string
	links []resolve.Link
	// namedBy are the files that name the path, and that no session may change.
	namedBy []string
	// cache: what sessions write there is kept from programs outside. hidden:
	// sessions do not see what those have written.
	cache, hidden bool
	// alwaysPrivate is true for a cache that no session writes for programs
	// outside.
	alwaysPrivate bool
}

// copied is a grant of a file of which sessions read a part.
type copied struct {
	grant
	text  string // the part, if there is one
	wider bool   // only a wider grant opens the file
	// told says what is left out, and lost what happens without the part. They
	// belong to a position in a file.
	told, lost string
	severity   document.Severity // of told
	file       string
	position   document.Position
}

// rejectedGrant is a grant that does not count, because it would undo the
// sandbox.
type rejectedGrant struct {
	grant
	why string
}

// requestsOf lists what a layer requests in a category. If the layer does not
// set the key, or a mode resets it, that is the platform's baseline, which the
// additional lists do not have.
func requestsOf(s *settings, c category, platform string) []request {
	from, ok := s.from[c.key]
	if !ok || from.Baseline {
		return baseline(c.key, platform)
	}
	var list []request
	for i, text := range s.values.List(c.key) {
		at := from.element(i)
		list = append(list, request{text: text, access: c.access, at: at, origin: from.policy(c.key, at)})
	}
	return list
}

// baseline lists what a category requests if the user left it null.
func baseline(key, platform string) []request {
	paths := baselines()[platform][key]
	list := make([]request, 0, len(paths))
	for _, b := range paths {
		list = append(list, request{
			text: b.path, access: b.access, private: b.private,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: key},
		})
	}
	return list
}

// dotfiles requests what shells read at start-up.
func (v fsView) dotfiles() []request {
	home := v.host.Home
	if home == "" {
		return nil
	}
	names := homeDotfiles
	if v.Resolve(filepath.Join(home, ".oh-my-zsh")).Exists { // which puts host and version behind the name
		for _, path := range v.matches(filepath.Join(home, ".zcompdump-*")) {
			names = append(slices.Clip(names), filepath.Base(path))
		}
	}
	list := make([]request, 0, len(names))
	for _, name := range names {
		list = append(list, request{
			text: "~/" + name, access: policy.Read,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: "home dotfiles"},
		})
	}
	return list
}

// resolveRequests follows the paths of requests. Those that do not count are
// left out, with a diagnostic; rejected are those that would undo the sandbox.
func resolveRequests(
	view fsView, p project, requests []request, r *reporter,
) (grants []grant, rejected []rejectedGrant) {
	grants = make([]grant, 0, len(requests))
	for _, q := range requests {
		if q.origin.File == policy.OriginBuiltIn {
			if g, ok := resolveBuiltIn(view, q); ok {
				grants = append(grants, g)
			}
			continue
		}
		target, ok := locate(view, p, q, r)
		if !ok {
			continue
		}
		g := grant{request: q, path: target.Path, links: target.Links}
		if q.access.Has(policy.Write) {
			if why := view.undoes(g.path); why != "" {
				r.add(q.origin.File, q.at, document.SeverityError, q.origin.Key,
					"%s undoes the sandbox: %s; the entry does not count", display.Quote(q.text), why)
				rejected = append(rejected, rejectedGrant{grant: g, why: why})
				continue
			}
			g.access |= deviceAccess(g.path)
			diagnoseWritable(g, target, r)
		}
		grants = append(grants, g)
	}
	return grants, rejected
}

// resolveBuiltIn resolves a built-in request. It has no diagnostics: nobody
// wrote it.
func resolveBuiltIn(view fsView, q request) (grant, bool) {
	path, err := view.host.Expand(q.text, "")
	if err != nil {
		return grant{}, false
	}
	target := view.Resolve(path)
	return grant{request: q, path: withFrameworks(target.Path), links: target.Links}, target.Err == nil
}

// deviceAccess is what a grant for writing of a path gives beyond that.
func deviceAccess(path string) policy.Access {
	if policy.Contains("/dev", path) && !policy.Contains("/dev/shm", path) {
		return policy.Device
	}
	return 0
}

// diagnoseWritable says what a grant for writing opens beyond what it seems to.
func diagnoseWritable(g grant, target resolve.Target, r *reporter) {
	diagnose := func(severity document.Severity, message string) {
		r.add(g.origin.File, g.at, severity, g.origin.Key, "%s", message)
	}
	switch {
	case g.path == "/dev":
		diagnose(document.SeverityWarning,
			"grants every device, even the terminals of other programs; without it only safe devices")
	case policy.Contains("/dev/pts", g.path) && g.path != "/dev/pts/ptmx": // which /dev/ptmx may lead to
		diagnose(document.SeverityWarning,
			"grants the terminals of other programs and what is typed into them; grant /dev/ptmx instead")
	case policy.Contains("/run/user", g.path) && strings.Count(g.path, "/") <= 3 || g.path == "/run":
		diagnose(document.SeverityWarning, "is a full escape: systemd's user manager and the session bus "+
			"start programs outside; remove it")
	case target.Exists && target.Mode.IsRegular() && g.origin.Key == "additional_read_write_paths":
		diagnose(document.SeverityInfo,
			"is a file: programs that save by replacing it cannot; grant the directory if that is needed")
	}
}

// locate makes an entry absolute and resolves it. It adds a diagnostic if the
// entry does not count or leads elsewhere than it seems to.
func locate(view fsView, p project, q request, r *reporter) (resolve.Target, bool) {
	key := q.origin.Key
	diagnose := func(severity document.Severity, format string, args ...any) {
		r.add(q.origin.File, q.at, severity, key, "%s"+format, append([]any{display.Quote(q.text)}, args...)...)
	}
	path, err := view.host.Expand(q.text, p.base(q.origin.File))
	if err != nil {
		severity := document.SeverityError
		var unset resolve.UnsetError
		if key == socketsKey && errors.As(err, &unset) {
			// SSH_AUTH_SOCK is set on one machine and not on the next, with the
			// same settings.
			severity = document.SeverityInfo
		}
		diagnose(severity, ": %v; the entry does not count", err)
		return resolve.Target{}, false
	}
	target := view.Resolve(path)
	switch {
	case errors.Is(target.Err, fsguard.ErrNoAnswer):
		// A session with this grant would wait for it, too, before it starts.
		diagnose(document.SeverityError, ": %v; the entry does not count", textfile.Cause(target.Err))
		return resolve.Target{}, false
	case errors.Is(target.Err, resolve.ErrTooManyLinks):
		diagnose(document.SeverityError, ": %v; the entry does not count", target.Err)
		return resolve.Target{}, false
	case target.Err != nil:
		diagnose(document.SeverityWarning, ": cannot check %s: %s", display.Quote(target.Path),
			textfile.Cause(target.Err))
	case !target.Exists && strings.ContainsAny(filepath.Base(target.Path), "*?[") && key != socketsKey:
		diagnose(document.SeverityWarning, ": there is no %s, and this list knows no patterns; list %s for all in it",
			display.Quote(target.Path), display.Quote(filepath.Dir(target.Path)))
	case !target.Exists && key != socketsKey:
		diagnose(document.SeverityWarning, ": there is no %s; the entry counts from when there is, for sessions "+
			"started then", display.Quote(target.Path))
	}
	if hasDotDot(path) {
		diagnose(document.SeverityWarning, " leads to %s", display.Quote(target.Path))
	}
	for _, l := range target.Links {
		if policy.Contains("/proc", l.Dir) {
			diagnose(document.SeverityError, " crosses %s, which is another file for each process; the entry "+
				"does not count", display.Quote(l.Path))
			return resolve.Target{}, false
		}
	}
	return target, true
}

func hasDotDot(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		if name == ".." {
			return true
		}
	}
	return false
}

// Redirect is a symlink on the way to a project that a session could have made,
// and where the project's directory is by it.
type Redirect struct{ Link, Target string }

// Error says what is wrong with the project's directory.
func (r *Redirect) Error() string {
	return fmt.Sprintf("the symlink %s, which a session could have made, leads to %s", display.Quote(r.Link),
		display.Quote(r.Target))
}

// Hint says what the user can do.
func (r *Redirect) Hint() string {
	return "if you made the symlink, open " + display.Quote(r.Target) + " itself"
}

// Unready is why no sandboxed session may start in the project, and the path
// that it is about, if the cause does not name it; nil if one may.
func (c *Result) Unready() (path string, cause error) {
	switch {
	case c.NoAnswer != "":
		return c.NoAnswer, fsguard.ErrNoAnswer
	case c.Redirect != nil:
		return "", c.Redirect
	case c.Overfull != nil:
		return "", c.Overfull
	}
	return "", nil
}

// Overfull is a directory of git working trees with more names than can be compared.
type Overfull struct{ Dir string }

// Error says what is wrong with the directory.
func (o *Overfull) Error() string {
	return fmt.Sprintf("%s holds more than %d names, so git's oldest worktrees are unknown", display.Quote(o.Dir),
		resolve.MaxNames)
}

// Hint says what the user can do.
func (o *Overfull) Hint() string {
	return `run "git worktree prune" there, outside; then remove what it leaves in that directory`
}

// overfullOf is the first such directory of the project, or of other directories
// that sessions write; nil if there is none.
func overfullOf(view fsView, p project, dirs []string) *Overfull {
	first := p.git.Overfull
	for _, dir := range dirs {
		first = cmp.Or(first, view.git.of(view, dir).Overfull)
	}
	if first == "" {
		return nil
	}
	return &Overfull{Dir: first}
}

// redirected returns the first symlink on the way to a project that lies where a
// session may write: in what the settings grant, in another project of the
// editor's, or in a git repository, which somebody else's sidecar may have had
// for a project. The session could point it to any directory, and the next
// session would be granted that one.
func redirected(view fsView, projectDir string, others []string, writable cover) *Redirect {
	target := view.Resolve(projectDir)
	if len(target.Links) == 0 {
		return nil
	}
	made := maps.Clone(writable)
	for _, other := range others {
		if other != projectDir {
			made.add(view.Resolve(other).Path, policy.Write)
		}
	}
	home := view.Resolve(view.host.Home).Path
	for _, l := range target.Links {
		if made.at(l.Dir).Has(policy.Write) || InRepository(view.View, l.Dir, home) {
			return &Redirect{Link: l.Path, Target: target.Path}
		}
	}
	return nil
}

// InRepository reports whether a directory lies in a git repository. One that
// holds the home directory does not count: it has the user's start-up files,
// and links there lead to other disks. Both are real paths.
func InRepository(view *resolve.View, dir, home string) bool {
	for above := range upwards(dir) {
		if above == "/" || above == home || strings.HasPrefix(home, above+"/") {
			return false
		}
		if view.Entry(filepath.Join(above, ".git")).Err == nil {
			return true
		}
	}
	return false
}

// dropMovable drops the grants that cross a symlink in a directory that the
// session may write. The session could point the link to any file, and the next
// session would be granted that. The same holds for a file that names others.
// All grants for writing count, the dropped ones included, so that the result
// does not depend on an order. refusals are the messages for built-in grants.
func dropMovable(list []grant, writable cover, r *reporter) (rest []grant, refusals []string) {
	if !slices.ContainsFunc(list, func(g grant) bool { return len(g.links)+len(g.namedBy) > 0 }) {
		return list, nil
	}
	rest = make([]grant, 0, len(list))
	refuse := func(g grant, message string) {
		if g.origin.File == policy.OriginBuiltIn {
			refusals = append(refusals, message)
			return
		}
		r.add(g.origin.File, g.at, document.SeverityError, g.origin.Key, "%s", message)
	}
next:
	for _, g := range list {
		for _, file := range g.namedBy {
			if writable.at(file).Has(policy.Write) {
				refuse(g, fmt.Sprintf("%s: a session may change %s, which names %s: not granted", display.Quote(g.text),
					display.Quote(file), display.Quote(g.path)))
				continue next
			}
		}
		for _, l := range g.links {
			if !writable.at(l.Dir).Has(policy.Write) {
				continue
			}
			refuse(g, fmt.Sprintf("%s crosses the symlink %s, which a session may change: the entry does not count; "+
				"grant %s itself", display.Quote(g.text), display.Quote(l.Path), display.Quote(g.path)))
			continue next
		}
		rest = append(rest, g)
	}
	return rest, refusals
}
