package git

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// NamedFile is a file that the user's configuration of git makes git read.
type NamedFile struct {
	// Path is absolute; symlinks in it are not followed.
	Path string
	// By are the files that lead to it, the user's own first.
	By []string
	// Key is the variable that names it, such as "include.path".
	Key string
	// Certificates: it is a file or a directory of certificates of servers.
	Certificates bool
}

// fileKeys are the variables whose value is a file that git reads, beside those
// of includes. Each is a path as git-config(1) describes it.
var fileKeys = []string{
	"core.excludesfile", "core.attributesfile", "commit.template", "mailmap.file", "blame.ignorerevsfile",
	"diff.orderfile", "gpg.ssh.allowedsignersfile", "gpg.ssh.revocationfile",
}

// certificateKeys are those of section http whose value is a file or a directory of
// certificates. http.<url>.* has them, too.
var certificateKeys = []string{"sslcainfo", "sslcapath", "proxysslcainfo"}

// Bounds of the search for files that are named. git follows 10 levels of
// includes (MAX_INCLUDE_DEPTH in config.c).
const (
	maxNamedFiles   = 64
	maxIncludeDepth = 10
)

// NamedFiles are the files that the configuration outside of any repository makes
// git read: git ends with an error if it cannot read one. What a repository's
// own configuration names is left out, because sessions change that.
func NamedFiles(view *resolve.View, host resolve.Host) []NamedFile {
	n := &namer{finder: finder{view: view, host: host}}
	for _, file := range homeConfigurations(host) {
		n.read(file, nil)
	}
	return n.found
}

type namer struct {
	finder
	found []NamedFile
}

// read lists what a file of configuration names. by are the files that have led
// to it. Conditions of includes are taken as met: a branch can change.
func (n *namer) read(file string, by []string) {
	if len(by) > maxIncludeDepth || slices.Contains(by, file) {
		return
	}
	by = append(slices.Clone(by), file)
	entries, _ := gitconfig.Parse(n.raw(file), gitconfig.BlanksKept)
	for _, e := range entries {
		section, name := e.Split()
		include := e.Key == "include.path" || section == "includeif" && name == "path"
		certificates := section == "http" && slices.Contains(certificateKeys, name)
		named := (certificates || slices.Contains(fileKeys, e.Key)) &&
			(strings.HasPrefix(e.Value, "/") || strings.HasPrefix(e.Value, "~"))
		if !e.Valued || !include && !named {
			continue
		}
		path, ok := n.expand(filepath.Dir(file), e.Value)
		path = filepath.Clean(path)
		known := func(f NamedFile) bool { return f.Path == path }
		if !ok || len(n.found) >= maxNamedFiles || slices.ContainsFunc(n.found, known) {
			continue
		}
		n.found = append(n.found, NamedFile{Path: path, By: by, Key: e.Key, Certificates: certificates})
		if include {
			n.read(path, by)
		}
	}
}
