package settings

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
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// trustVersion is the version of the file's format. A file of another version
// is left alone: a newer sidecar wrote it.
const trustVersion = 1

// trustList is the content of trust.json. Immutable.
type trustList struct {
	path     string
	projects []trustedProject
	// problem is why the file does not count; then nothing is trusted.
	problem string
	// foreign: the file is of a newer version, and must not be overwritten.
	foreign bool
}

// trustedProject is one project whose settings file the user has trusted.
type trustedProject struct {
	// Path is the project's real path.
	Path string `json:"path"`
	// Digest is the SHA-256 of the settings file's bytes, in lower-case
	// hexadecimal digits.
	Digest string `json:"digest"`
	// TrustedAt is for people.
	TrustedAt time.Time `json:"trustedAt"`
}

type trustDocument struct {
	Version  int              `json:"version"`
	Projects []trustedProject `json:"projects"`
}

// trusts reports whether exactly this content was trusted for exactly this
// project.
func (l *trustList) trusts(project, digest string) bool {
	return slices.ContainsFunc(l.projects, func(p trustedProject) bool { return p.Path == project && p.Digest == digest })
}

// with returns the projects with one entry more, in place of what was there for
// the path.
func (l *trustList) with(p trustedProject) []trustedProject {
	return append(l.without(p.Path), p)
}

// without returns the projects but for one.
func (l *trustList) without(project string) []trustedProject {
	return slices.DeleteFunc(slices.Clone(l.projects), func(p trustedProject) bool { return p.Path == project })
}

// parseTrust reads the bytes of trust.json. It is strict: whatever it does not
// understand means that nothing is trusted.
func parseTrust(path string, data []byte) *trustList {
	l := &trustList{path: path}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		l.problem = fmt.Sprintf("not valid JSON: %v", err)
		return l
	}
	if version.Version != trustVersion {
		l.problem, l.foreign = fmt.Sprintf("of version %d, and this program knows version %d", version.Version,
			trustVersion), true
		return l
	}
	var block trustDocument
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&block); err != nil {
		l.problem = fmt.Sprintf("not a list of trusted projects: %v", err)
		return l
	}
	for i, p := range block.Projects {
		digest, err := hex.DecodeString(p.Digest)
		if err != nil || len(digest) != 32 || strings.ToLower(p.Digest) != p.Digest || !isCleanPath(p.Path) {
			l.problem = fmt.Sprintf("entry %d is not a project's path and a digest", i+1)
			return l
		}
	}
	l.projects = block.Projects
	return l
}

// isCleanPath reports whether JSON can hold the path and bring back the same
// bytes: two file names that differ only in bytes that are not UTF-8 would
// become one.
func isCleanPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && utf8.ValidString(path) && !strings.ContainsRune(path, 0)
}

// readTrust reads trust.json. A file that is absent trusts nothing, and that is
// no problem.
func readTrust(path string) (*trustList, textfile.Signature) {
	info, err := fsguard.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err != nil && textfile.Missing(err) {
		return &trustList{path: path}, textfile.Signature{}
	}
	if err == nil && !info.Mode().IsRegular() {
		// A symlink could be pointed at a list of somebody else's making.
		err = textfile.ErrNotRegular
	}
	if err == nil {
		err = textfile.CheckPrivate(info)
	}
	if err != nil {
		return &trustList{path: path, problem: "cannot be used: " + textfile.Cause(err)}, textfile.Signature{}
	}
	data, sig, err := textfile.Read(path)
	if err != nil {
		return &trustList{path: path, problem: "cannot be read: " + textfile.Cause(err)}, sig
	}
	return parseTrust(path, data), sig
}

// trustFile keeps the last content of trust.json.
type trustFile struct {
	path string // "" where the home directory is not known: nothing is ever trusted

	mu    sync.Mutex // guards the fields below; held while the file is looked at
	known bool
	sig   textfile.Signature
	racy  bool
	list  *trustList
}

func newTrustFile(path string) *trustFile {
	f := &trustFile{path: path, list: &trustList{path: path}}
	f.refresh()
	return f
}

// current looks at the file and returns what is trusted, and whether that is
// something else than at the look before.
func (f *trustFile) current() (list *trustList, changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed = f.refresh()
	return f.list, changed
}

// refresh looks at the file and reads it if it may have changed. It reports
// whether what is trusted did. The lock is held.
func (f *trustFile) refresh() bool {
	if f.path == "" {
		return false
	}
	if info, err := fsguard.Lstat(f.path); err == nil && f.known && !f.racy && textfile.SignatureOf(info) == f.sig {
		return false
	}
	list, sig := readTrust(f.path)
	f.sig, f.known = sig, sig != textfile.Signature{}
	f.racy = sig.Racy()
	changed := list.problem != f.list.problem ||
		!slices.EqualFunc(list.projects, f.list.projects, func(a, b trustedProject) bool {
			return a.Path == b.Path && a.Digest == b.Digest
		})
	f.list = list
	return changed
}

// trustPath is where the list of trusted projects lives; "" where the home
// directory is not known.
func trustPath(h resolve.Host) string {
	state := h.Env["XDG_STATE_HOME"]
	if !filepath.IsAbs(state) {
		if h.Home == "" {
			return ""
		}
		state = filepath.Join(h.Home, ".local", "state")
	}
	return filepath.Join(state, "sandbox-sidecar", "trust.json")
}
