package compile

import (
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
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

// namedByShells lists what the start-up files source that sessions may read. A
// file that is private to the user, or that assigns what looks like a secret,
// is left out, and so is all that it names.
func namedByShells(view fsView, granted outside) (list []named) {
	type sourcing struct {
		file string
		by   []string
	}
	var queue []sourcing
	seen := map[string]bool{}
	for _, name := range sensitive.StartupFiles {
		file := filepath.Join(view.host.Home, name)
		if granted.at(view.Resolve(file).Path).Has(policy.Read) {
			queue = append(queue, sourcing{file: file})
		}
	}
	for len(queue) > 0 && len(list) < maxSourced {
		next := queue[0]
		queue = queue[1:]
		target := view.Resolve(next.file)
		if !target.Exists || !target.Mode.IsRegular() || seen[target.Path] {
			continue
		}
		seen[target.Path] = true
		text, err := view.FS.ReadFile(target.Path)
		if err != nil {
			continue
		}
		if len(next.by) > 0 {
			const others = 0o077
			if target.Mode&others == 0 || len(text) > sensitive.MaxStartupFile ||
				sensitive.MayHoldSecret(target.Path, string(text)) {
				continue
			}
			list = append(list, named{
				path: next.file, by: next.by, key: namedByShellKey, why: "a start-up file names it",
			})
		}
		if by := append(slices.Clone(next.by), next.file); len(by) <= maxSourceDepth {
			for _, path := range startup.Sourced(string(text), view.host.Home) {
				queue = append(queue, sourcing{file: path, by: by})
			}
		}
	}
	return list
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
