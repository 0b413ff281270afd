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

// mention is a path that a file of the user's writes out.
type mention struct {
	path, by string
	// loosely: it counts also if it does not exist, as a shell may be about to read
	// it.
	loosely bool
}

// maxMentions bounds the paths that are looked up. A framework for a shell has
// hundreds of files.
const maxMentions = 256

// mentions are those of all files, each path once.
type mentions struct {
	list []mention
	seen map[string]bool
}

func (m *mentions) add(more ...mention) {
	for _, one := range more {
		ofMachine := func(dir string) bool { return policy.Contains(dir, one.path) }
		if len(m.list) == maxMentions || m.seen[one.path] || slices.ContainsFunc(machineDirs, ofMachine) {
			continue
		}
		if m.seen == nil {
			m.seen = map[string]bool{}
		}
		m.seen[one.path] = true
		m.list = append(m.list, one)
	}
}

// machineDirs hold most of what start-up files write out, and hardly anything that
// sessions write.
var machineDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/dev", "/proc", "/sys", "/run", "/nix"}

// mentionedIn are the paths in the settings of programs outside, see risks.Naming.
func (v fsView) mentionedIn(home string) (list []mention) {
	for _, name := range risks.Naming {
		file := filepath.Join(home, strings.TrimPrefix(name, "~/"))
		for _, one := range expand(v, policy.Protected{Path: file, Pattern: strings.Contains(file, "*")}) {
			if one.Pattern || !v.isFile(v.Resolve(one.Path)) {
				continue
			}
			text, err := v.FS.ReadFile(v.Resolve(one.Path).Path)
			if err != nil {
				continue
			}
			for _, path := range startup.Mentioned(startup.Commands(one.Path, string(text)), home) {
				list = append(list, mention{path: path, by: one.Path})
			}
		}
	}
	return list
}

func (v fsView) isFile(target resolve.Target) bool {
	return target.Err == nil && target.Exists && target.Mode.IsRegular()
}

// place is the place that is mentioned, and where its path leads, if that is a file
// that nobody else says something about.
func (v fsView) place(m mention) (place sourcedPlace, target resolve.Target, is bool) {
	target = v.Resolve(m.path)
	_, found := v.sensitive.ActingAt(v.View, target.Path)
	missing := target.Err == nil && !target.Exists && m.loosely
	return sourcedPlace{path: target.Path, open: true, acts: display.Quote(m.by) + " names it"}, target,
		!found && (v.isFile(target) || missing)
}

// isOpen reports whether a path is a place only because of that. It is reviewed, and
// no warning of each start.
func (v fsView) isOpen(path string) (open bool) {
	for _, one := range v.sourced().places {
		if one.path == path {
			if !one.open {
				return false
			}
			open = true
		}
	}
	return open
}

// reviewed are the files that programs outside run because a file of the user's
// says so, and that sessions have good reasons to write: why, by their paths. A
// symlink on the way to one is among them.
func (v fsView) reviewed() map[string]string {
	list := map[string]string{}
	for _, one := range v.sourced().places {
		target, isLink := v.Resolve(one.path), v.Entry(one.path).Mode&fs.ModeSymlink != 0
		if one.open && (isLink || v.isFile(target) || target.Err == nil && !target.Exists) {
			list[one.path] = one.acts
		}
	}
	return list
}
