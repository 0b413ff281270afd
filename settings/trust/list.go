// Package trust keeps the list of projects whose settings the user trusts.
//
// [Read] reads the list, [Open] keeps its last content, [Change] replaces it under
// a lock. A list that cannot be understood trusts nothing.
package trust

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// version is that of the file's format. A file of another version stays as it
// is: a newer sidecar wrote it.
const version = 1

// List is the content of trust.json. It is immutable.
type List struct {
	// Path is where the list is.
	Path string
	// Projects are the trusted ones.
	Projects []Project
	// Problem is why the file does not count. Then nothing is trusted.
	Problem string
	// foreign: a newer sidecar wrote the file, and it must not be overwritten.
	foreign bool
}

// Project is one project whose settings file the user has trusted.
type Project struct {
	// Path is the project's real path.
	Path string `json:"path"`
	// Digest is the SHA-256 of the settings file's bytes, in lower-case
	// hexadecimal digits.
	Digest string `json:"digest"`
	// TrustedAt is for people.
	TrustedAt time.Time `json:"trustedAt"`
}

type content struct {
	Version  int       `json:"version"`
	Projects []Project `json:"projects"`
}

// Trusts reports whether exactly this content was trusted for exactly this
// project.
func (l *List) Trusts(project, digest string) bool {
	return slices.ContainsFunc(l.Projects, func(p Project) bool { return p.Path == project && p.Digest == digest })
}

// Equal reports whether both lists say the same; no list equals none.
func (l *List) Equal(other *List) bool {
	if l == nil || other == nil {
		return l == other
	}
	return l.Path == other.Path && l.Problem == other.Problem && l.foreign == other.foreign &&
		slices.Equal(l.Projects, other.Projects)
}

// With returns the projects and one more, which replaces the entry of its path.
func (l *List) With(p Project) []Project {
	return append(l.Without(p.Path), p)
}

// Without returns the projects except one.
func (l *List) Without(project string) []Project {
	return slices.DeleteFunc(slices.Clone(l.Projects), func(p Project) bool { return p.Path == project })
}

// parse reads the bytes of trust.json. It is strict: if it does not understand
// something, nothing is trusted.
func parse(path string, data []byte) *List {
	l := &List{Path: path}
	var header struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &header); err != nil {
		l.Problem = fmt.Sprintf("not valid JSON: %v", err)
		return l
	}
	if header.Version != version {
		l.Problem, l.foreign = fmt.Sprintf("of version %d, and this program knows version %d", header.Version,
			version), true
		return l
	}
	var list content
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&list); err != nil {
		l.Problem = fmt.Sprintf("not a list of trusted projects: %v", err)
		return l
	}
	for i, p := range list.Projects {
		digest, err := hex.DecodeString(p.Digest)
		if err != nil || len(digest) != 32 || strings.ToLower(p.Digest) != p.Digest || !IsCleanPath(p.Path) {
			l.Problem = fmt.Sprintf("entry %d is not a project's path and a digest", i+1)
			return l
		}
	}
	l.Projects = list.Projects
	return l
}

// IsCleanPath reports whether JSON can hold the path and return the same bytes.
// Two file names that differ only in bytes that are not UTF-8 would become one.
func IsCleanPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && utf8.ValidString(path) &&
		!strings.ContainsRune(path, 0)
}

// Read reads trust.json. If there is no file, nothing is trusted, and that is
// no problem.
func Read(path string) (*List, textfile.Signature) {
	info, err := fsguard.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err != nil && textfile.Missing(err) {
		return &List{Path: path}, textfile.Signature{}
	}
	if err == nil && !info.Mode().IsRegular() {
		// A symlink could point to a list that somebody else made.
		err = textfile.ErrNotRegular
	}
	if err == nil {
		err = textfile.CheckPrivate(info)
	}
	if err != nil {
		return &List{Path: path, Problem: "cannot be used: " + textfile.Cause(err)}, textfile.Signature{}
	}
	data, sig, err := textfile.Read(path)
	if err != nil {
		return &List{Path: path, Problem: "cannot be read: " + textfile.Cause(err)}, sig
	}
	return parse(path, data), sig
}

// File keeps the last content of trust.json.
type File struct {
	Path string // "" if the home directory is not known: nothing is ever trusted

	mu    sync.Mutex // guards the fields below; held while the file is read
	known bool
	sig   textfile.Signature
	racy  bool
	list  *List
}

// Open reads the list.
func Open(path string) *File {
	f := &File{Path: path, list: &List{Path: path}}
	f.refresh()
	return f
}

// Current returns what is trusted now, and whether that differs from the last
// call.
func (f *File) Current() (list *List, changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed = f.refresh()
	return f.list, changed
}

// refresh reads the file if it may have changed. It reports whether the trusted
// projects did. The lock is held.
func (f *File) refresh() bool {
	if f.Path == "" {
		return false
	}
	if info, err := fsguard.Lstat(f.Path); err == nil && f.known && !f.racy && textfile.SignatureOf(info) == f.sig {
		return false
	}
	list, sig := Read(f.Path)
	f.sig, f.known = sig, sig != textfile.Signature{}
	f.racy = sig.Racy()
	changed := list.Problem != f.list.Problem ||
		!slices.EqualFunc(list.Projects, f.list.Projects, func(a, b Project) bool {
			return a.Path == b.Path && a.Digest == b.Digest
		})
	f.list = list
	return changed
}
