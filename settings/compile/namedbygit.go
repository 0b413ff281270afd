package compile

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
)

// namedByGitKey is the built-in origin of grants of files that the user's
// configuration of git names.
const namedByGitKey = "git configuration"

// namedByGit grants the files that the user's configuration of git names for
// reading, as far as set does not open them already: without one, every command
// of git ends with an error. A file that is secret stays closed, and so does
// what a session may have named.
func namedByGit(view fsView, set grantSet) (list []grant) {
	granted := outsideOf(set.granted, set.temporary, set.hidden)
	if view.host.Home == "" {
		return nil
	}
	for _, file := range git.NamedFiles(view.View, view.host) {
		target := view.Resolve(file.Path)
		_, hidden := granted.index.HiddenAt(target.Path)
		there := target.Err == nil && target.Exists && target.Mode.IsRegular()
		if !there || hidden || granted.at(target.Path).Has(policy.Read) || view.sensitive.Holds(target.Path) != "" {
			continue
		}
		var by []string
		links := target.Links
		for _, name := range file.By {
			from := view.Resolve(name)
			by, links = append(by, from.Path), slices.Concat(links, from.Links)
		}
		list = append(list, grant{path: target.Path, links: links, namedBy: by, request: request{
			text: file.Path, access: policy.Read,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: namedByGitKey, Reason: file.Key + " names it"},
		}})
	}
	return list
}

// namedPaths are the real paths of the files that the user's configuration of
// git names, but for what a session may have named.
func namedPaths(view fsView, writable cover) (list []string) {
	for _, file := range git.NamedFiles(view.View, view.host) {
		target := view.Resolve(file.Path)
		links := target.Links
		steady := true
		for _, name := range file.By {
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
