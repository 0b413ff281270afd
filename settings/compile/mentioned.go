package compile

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/startup"
)

// Bounds of the paths that files of the user's write out: those of all files that
// are looked up, and those of one that count. A framework for a shell has hundreds
// of files.
const (
	maxMentions   = 1024
	maxMentionsOf = 128
)

// mentions are the files that files of the user's write out: each once, by the first
// that does. It is no good for several goroutines.
type mentions struct {
	view fsView
	list []mention
	seen map[string]bool // paths, and those of loaded directories with a slash at the end
}

// mention is a place, and where its path leads.
type mention struct {
	place  sourcedPlace
	target resolve.Target
}

// add adds paths that a file writes out, if they are of files. loosely says that
// those count, too, that do not exist: a shell may be about to read them.
func (m *mentions) add(by string, paths []string, loosely bool) {
	counted := 0
	for _, path := range paths {
		ofMachine := func(dir string) bool { return policy.Contains(dir, path) }
		if m.seen[path] || slices.ContainsFunc(machineDirs, ofMachine) {
			continue
		}
		if counted == maxMentionsOf || len(m.seen) == maxMentions {
			return
		}
		m.seen[path] = true
		target := m.view.Resolve(path)
		missing := target.Err == nil && !target.Exists && loosely
		_, found := m.view.sensitive.ActingAt(m.view.View, target.Path)
		if found || !m.view.isFile(target) && !missing {
			continue
		}
		counted++
		place := sourcedPlace{path: target.Path, open: true, acts: display.Quote(by) + " names it"}
		m.list = append(m.list, mention{place, target})
	}
}

// load adds directories that a file has programs load what is in, whether they exist
// yet or not. A home directory, and what holds one, is none: all kinds of files are
// there.
func (m *mentions) load(by string, paths []string) {
	counted := 0
	for _, path := range paths {
		ofMachine := func(dir string) bool { return policy.Contains(dir, path) }
		if m.seen[path+"/"] || slices.ContainsFunc(machineDirs, ofMachine) {
			continue
		}
		if counted == maxMentionsOf || len(m.seen) >= maxMentions {
			return
		}
		m.seen[path+"/"] = true
		target := m.view.Resolve(path)
		holds := func(home string) bool { return policy.Contains(target.Path, home) }
		_, found := m.view.sensitive.ActingAt(m.view.View, target.Path)
		if found || target.Err != nil || target.Exists && !target.Mode.IsDir() ||
			slices.ContainsFunc(m.view.host.Homes(), holds) {
			continue
		}
		counted++
		acts := display.Quote(by) + " has programs load what is in it"
		m.list = append(m.list, mention{sourcedPlace{path: target.Path, open: true, acts: acts}, target})
	}
}

// machineDirs hold most of what such files write out, and hardly anything that
// sessions write.
var machineDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys", "/run", "/nix", "/snap", "/Library",
	"/System", "/Applications", "/opt/homebrew", "/private/etc",
}

// settings adds what the settings of programs outside write out, see risks.Naming.
func (m *mentions) settings() {
	v := m.view
	for _, file := range risks.NamingIn(v.host.Homes(), v.host.Getenv) {
		pattern := strings.Contains(filepath.Base(file), "*")
		for _, one := range expand(v, policy.Protected{Path: file, Pattern: pattern}) {
			target := v.Resolve(one.Path)
			if one.Pattern || !v.isFile(target) {
				continue
			}
			text, err := v.FS.ReadFile(target.Path)
			if err != nil {
				continue
			}
			for _, home := range v.host.Homes() {
				m.add(one.Path, startup.Mentioned(startup.Commands(one.Path, string(text)), home), false)
				m.load(one.Path, startup.Mentioned(startup.Loads(one.Path, string(text)), home))
			}
		}
	}
}

func (v fsView) isFile(target resolve.Target) bool {
	return target.Err == nil && target.Exists && target.Mode.IsRegular()
}

// isOpen reports whether a path is a place only because of that. It is reviewed, and
// no warning of each start.
func (v fsView) isOpen(path string) bool {
	return slices.ContainsFunc(v.sourced().places, func(one sourcedPlace) bool { return one.open && one.path == path })
}

// reviewed are the files that programs outside run because a file of the user's
// says so, and that sessions have good reasons to write: why, by their paths. A
// symlink on the way to one is among them.
func (v fsView) reviewed() map[string]string {
	list := map[string]string{}
	for _, one := range v.sourced().places {
		isLink := v.Entry(one.path).Mode&fs.ModeSymlink != 0
		target := v.Resolve(one.path)
		if one.open && one.acts != "" && (isLink || v.isFile(target) || target.Err == nil && !target.Exists) {
			list[one.path] = one.acts
		}
	}
	return list
}
