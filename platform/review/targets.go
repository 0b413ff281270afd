package review

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// maxLinks bounds the symlinks of which the review compares the targets.
const maxLinks = 256

// follow notes what a symlink leads to if the session may write that: programs
// outside act on it under the link's name. Links that the session makes are
// found by themselves.
func (s *State) follow(path string, info fs.FileInfo) {
	if s.taken || info.Mode()&fs.ModeSymlink == 0 {
		return
	}
	if len(s.linked) >= maxLinks {
		s.crowd(path)
		return
	}
	target, err := fsguard.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = missingTarget(path)
	}
	if err != nil || !s.index.Writable(target) {
		return
	}
	if slices.ContainsFunc(s.tops, func(top string) bool { return policy.Contains(target, top) }) {
		return // the search goes there
	}
	s.linked[target] = s.reason(path)
}

// missingTarget is where a symlink leads that leads to a missing name.
func missingTarget(path string) (string, error) {
	text, err := fsguard.ReadlinkPlain(path)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(text) {
		text = filepath.Dir(path) + "/" + text
	}
	dir, err := fsguard.EvalSymlinks(filepath.Dir(text))
	return filepath.Join(dir, filepath.Base(text)), err
}

// scanLinked notes what the links led to.
func (s *State) scanLinked(found map[string]string) {
	for path := range s.linked {
		in := map[string]string{}
		if s.scanPath(in, path) == nil {
			maps.Copy(found, in)
		}
	}
}
