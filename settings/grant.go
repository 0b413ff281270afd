package settings

import (
	"errors"
	"fmt"
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

// grant is one resolved entry of a category.
type grant struct {
	text   string // as written
	path   string
	access policy.Access
	origin policy.Origin
	at     document.Position
	links  []resolve.Link
	// private: a runtime directory of the session's own stands for the path.
	private bool
}

// rejectedGrant is a grant that does not count, because it would undo the sandbox.
type rejectedGrant struct {
	grant
	why string
}

// grantsOf resolves the list of a category in one layer. Where the layer does
// not set it, it is the platform's baseline, which the additional lists do not
// have.
func (e *evaluation) grantsOf(s *settings, c category) []grant {
	from, ok := s.from[c.key]
	if !ok {
		return e.baseline(c.key)
	}
	var list []grant
	for i, text := range s.values.List(c.key) {
		at := from.element(i)
		target, ok := e.locate(from.file, at, c.key, text)
		if !ok {
			continue
		}
		g := grant{
			text: text, path: target.Path, access: c.access, at: at, links: target.Links, origin: from.policy(c.key, at),
		}
		if c.access.Has(policy.Write) {
			if why := e.undoes(g.path); why != "" {
				e.report(from.file, at, document.SeverityError, c.key, "%s undoes the sandbox: %s; the entry does not count", display.Quote(text),
					why)
				e.rejected = append(e.rejected, rejectedGrant{grant: g, why: why})
				continue
			}
			e.judgeWritable(from.file, &g, target)
		}
		list = append(list, g)
	}
	return list
}

// judgeWritable completes a grant for writing and says what it opens.
func (e *evaluation) judgeWritable(file string, g *grant, target resolve.Target) {
	remark := func(severity document.Severity, message string) {
		e.report(file, g.at, severity, g.origin.Key, "%s", message)
	}
	if policy.Contains("/dev", g.path) && !policy.Contains("/dev/shm", g.path) {
		g.access |= policy.Device
	}
	switch {
	case g.path == "/dev":
		remark(document.SeverityWarning, "grants every device, the terminals of other programs and what is typed into them included;"+
			" without this entry the safe devices are granted")
	case policy.Contains("/dev/pts", g.path) && g.path != "/dev/pts/ptmx": // which /dev/ptmx may lead to
		remark(document.SeverityWarning, "grants the terminals of other programs and what is typed into them;"+
			" with /dev/ptmx alone a session has terminals of its own")
	case policy.Contains("/run/user", g.path) && strings.Count(g.path, "/") <= 3 || g.path == "/run":
		remark(document.SeverityWarning, "grants the session bus and systemd's user manager, which start programs outside of the "+
			"sandbox:"+
			" this is a full escape; without this entry a session has a runtime directory of its own")
	case target.Exists && target.Mode.IsRegular() && g.origin.Key == "additional_read_write_paths":
		remark(document.SeverityInfo, "is a file: programs that save by replacing it cannot; grant the directory if that is needed")
	}
}

// locate makes an entry absolute and resolves it, with a diagnostic where it
// does not count or leads elsewhere than it seems to.
func (e *evaluation) locate(file string, at document.Position, key, text string) (resolve.Target, bool) {
	path, err := e.host.Expand(text, e.base(file))
	if err != nil {
		severity := document.SeverityError
		var unset resolve.UnsetError
		if key == "allowed_unix_sockets" && errors.As(err, &unset) {
			// SSH_AUTH_SOCK is set on one machine and not on the next, with the
			// same settings.
			severity = document.SeverityInfo
		}
		e.report(file, at, severity, key, "%s: %v; the entry does not count", display.Quote(text), err)
		return resolve.Target{}, false
	}
	target := e.resolver.Resolve(path)
	switch {
	case errors.Is(target.Err, fsguard.ErrNoAnswer):
		// A session that is granted it would wait for it, too, before it
		// starts.
		e.report(file, at, document.SeverityError, key, "%s: %v; the entry does not count", display.Quote(text), textfile.Cause(target.Err))
		return resolve.Target{}, false
	case errors.Is(target.Err, resolve.ErrTooManyLinks):
		e.report(file, at, document.SeverityError, key, "%s: %v; the entry does not count", display.Quote(text), target.Err)
		return resolve.Target{}, false
	case target.Err != nil:
		e.report(file, at, document.SeverityWarning, key, "%s: cannot look at %s: %s", display.Quote(text), display.Quote(target.Path),
			textfile.Cause(target.Err))
	case !target.Exists && key != "allowed_unix_sockets":
		e.report(file, at, document.SeverityWarning, key, "%s: there is no %s; the entry counts from when there is, for sessions "+
			"started then",
			display.Quote(text), display.Quote(target.Path))
	}
	if hasDotDot(path) {
		e.report(file, at, document.SeverityWarning, key, "%s leads to %s", display.Quote(text), display.Quote(target.Path))
	}
	for _, l := range target.Links {
		if policy.Contains("/proc", l.Dir) {
			e.report(file, at, document.SeverityError, key, "%s crosses %s, which is another file for each process; the entry does "+
				"not count",
				display.Quote(text), display.Quote(l.Path))
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

// baseline resolves what a category grants where the user left it null.
func (e *evaluation) baseline(key string) []grant {
	var list []grant
	for _, b := range baselines[e.host.Platform][key] {
		target := e.resolver.Resolve(b.path)
		if target.Err != nil {
			continue
		}
		list = append(list, grant{
			text: b.path, path: target.Path, access: b.access, links: target.Links, private: b.private,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: key},
		})
	}
	return list
}

// dotfiles grants what shells read at start-up.
func (e *evaluation) dotfiles() []grant {
	if e.host.Home == "" {
		return nil
	}
	var list []grant
	for _, name := range homeDotfiles {
		target := e.resolver.Resolve(e.host.Home + "/" + name)
		if target.Err != nil {
			continue
		}
		list = append(list, grant{
			text: "~/" + name, path: target.Path, access: policy.Read, links: target.Links,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: "home dotfiles"},
		})
	}
	return list
}

// refuseMovable drops the grants that cross a symlink lying in a directory that
// the session may write: the session could point the link to any file, and the
// next session would be granted it. All grants for writing count, those that
// are dropped themselves included, so that the outcome does not depend on an
// order.
func (e *evaluation) refuseMovable(list []grant) []grant {
	var kept []grant
next:
	for _, g := range list {
		for _, l := range g.links {
			if !e.writable.at(l.Dir).Has(policy.Write) {
				continue
			}
			message := fmt.Sprintf("%s crosses the symlink %s, which a session may replace because it may write its directory:"+
				" the entry does not count; grant %s itself", display.Quote(g.text), display.Quote(l.Path), display.Quote(g.path))
			if g.origin.File == policy.OriginBuiltIn {
				e.refusals = append(e.refusals, message)
			} else {
				e.report(g.origin.File, g.at, document.SeverityError, g.origin.Key, "%s", message)
			}
			continue next
		}
		kept = append(kept, g)
	}
	return kept
}
