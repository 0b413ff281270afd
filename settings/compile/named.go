package compile

import (
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/startup"
)

// Built-in origins of grants of files that others name: the user's configuration
// of git, and start-up files of shells.
const (
	namedByGitKey   = "git configuration"
	namedByShellKey = "start-up files"
)

// named is a file that files of the user's name.
type named struct {
	path string // symlinks in it are not followed
	// by are the files that lead to it, the first one that programs read of
	// themselves.
	by       []string
	key, why string
}

// namedFiles grants what the user's configuration of git and the start-up files
// of shells name for reading, as far as set does not open it already: without
// it, every command of git and every login shell ends with an error. A file that
// is secret stays closed, and so does what a session may have named.
func namedFiles(view fsView, set grantSet) (list []grant) {
	granted := outsideOf(set.granted, set.temporary, set.hidden)
	if view.host.Home == "" {
		return nil
	}
	for _, file := range slices.Concat(namedByGit(view), namedByShells(view, granted)) {
		target := view.Resolve(file.path)
		_, hidden := granted.index.HiddenAt(target.Path)
		there := target.Err == nil && target.Exists && target.Mode.IsRegular()
		if !there || hidden || granted.at(target.Path).Has(policy.Read) || view.sensitive.Holds(target.Path) != "" {
			continue
		}
		var by []string
		links := target.Links
		for _, name := range file.by {
			from := view.Resolve(name)
			by, links = append(by, from.Path), slices.Concat(links, from.Links)
		}
		list = append(list, grant{path: target.Path, links: links, namedBy: by, request: request{
			text: file.path, access: policy.Read,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: file.key, Reason: file.why},
		}})
	}
	return list
}

func namedByGit(view fsView) (list []named) {
	for _, file := range git.NamedFiles(view.View, view.host) {
		list = append(list, named{path: file.Path, by: file.By, key: namedByGitKey, why: file.Key + " names it"})
	}
	return list
}

// Bounds of the search for files that start-up files name.
const (
	maxSourced     = 64
	maxSourceDepth = 8
)

// sourcing is a start-up file of a shell, or a file that one sources.
type sourcing struct {
	file string
	// by are the files that lead to it, the start-up file first. There are none if
	// it is that.
	by []string
}

// eachSourced visits what start-up files source, and what that does, each file
// once. visit gets the text of a readable file, and says whether that counts.
// whole is false if a bound left something out.
func eachSourced(
	view fsView, home string, start []string, visit func(one sourcing, at resolve.Target, text string, read bool) bool,
) (whole bool) {
	var queue []sourcing
	for _, file := range start {
		queue = append(queue, sourcing{file: file})
	}
	seen := map[string]bool{}
	whole = true
	for visited := 0; len(queue) > 0; {
		if visited == maxSourced {
			return false
		}
		next := queue[0]
		queue = queue[1:]
		target := view.Resolve(next.file)
		if seen[target.Path] {
			continue
		}
		seen[target.Path] = true
		var text []byte
		read := target.Exists && target.Mode.IsRegular()
		if read {
			var err error
			text, err = view.FS.ReadFile(target.Path)
			read = err == nil
		}
		if len(next.by) > 0 {
			if !visit(next, target, string(text), read) {
				continue
			}
			visited++
		}
		by := append(slices.Clone(next.by), next.file)
		for _, path := range startup.Sourced(string(text), home) {
			if len(by) > maxSourceDepth {
				whole = false
				break
			}
			queue = append(queue, sourcing{file: path, by: by})
		}
	}
	return whole
}

// namedByShells lists what the start-up files source that sessions may read. A
// file that is private to the user, or that assigns what looks like a secret,
// is left out, and so is all that it names.
func namedByShells(view fsView, granted outside) (list []named) {
	var start []string
	for _, name := range sensitive.StartupFiles {
		file := filepath.Join(view.host.Home, name)
		if granted.at(view.Resolve(file).Path).Has(policy.Read) {
			start = append(start, file)
		}
	}
	eachSourced(view, view.host.Home, start, func(one sourcing, at resolve.Target, text string, read bool) bool {
		const others = 0o077
		if !read || at.Mode&others == 0 || len(text) > sensitive.MaxStartupFile ||
			sensitive.MayHoldSecret(at.Path, text) {
			return false
		}
		list = append(list, named{
			path: one.file, by: one.by, key: namedByShellKey, why: "a start-up file names it",
		})
		return true
	})
	return list
}

// sourcedFiles keeps what start-up files source, for all evaluations of a
// snapshot.
type sourcedFiles struct {
	known bool
	paths []string // names in real directories, and what they lead to
	whole bool     // see eachSourced
}

// sourced finds it, in every home directory and whoever may read it.
func (v fsView) sourced() *sourcedFiles {
	s := v.startup
	if s.known {
		return s
	}
	s.known, s.whole = true, true
	for _, home := range v.host.Homes() {
		var start []string
		for _, name := range sensitive.StartupFiles {
			start = append(start, filepath.Join(home, name))
		}
		whole := eachSourced(v, home, start, func(one sourcing, at resolve.Target, _ string, _ bool) bool {
			s.paths = append(s.paths, v.inGrant(one.file), at.Path)
			return true
		})
		s.whole = s.whole && whole
	}
	slices.Sort(s.paths)
	s.paths = slices.Compact(s.paths)
	return s
}

// namedPaths are the real paths of the files that the user's configuration of
// git names, but for what a session may have named.
func namedPaths(view fsView, writable cover) (list []string) {
	for _, file := range namedByGit(view) {
		target := view.Resolve(file.path)
		links := target.Links
		steady := true
		for _, name := range file.by {
			from := view.Resolve(name)
			steady, links = steady && !writable.at(from.Path).Has(policy.Write), slices.Concat(links, from.Links)
		}
		for _, link := range links {
			steady = steady && !writable.at(link.Dir).Has(policy.Write)
		}
		if steady {
			list = append(list, target.Path)
		}
	}
	return list
}
