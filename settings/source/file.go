package source

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

const (
	// settleTime is how long a file that had content may be missing or empty
	// before that counts. Editors that save by "move away, write anew" or by
	// "truncate, write" leave such a gap. A session that starts in it would
	// have no sandbox.
	settleTime = 100 * time.Millisecond
	settleStep = 5 * time.Millisecond
)

// File is one settings file: its state now, and the last content that could be
// used.
type File struct {
	path     string
	platform string
	owner    document.Owner
	// required: the user named this very file, so it must exist.
	required bool
	// managed: it is the organisation's, and has blocks of its own.
	managed bool
	used    time.Time // by a snapshot; only projects' files are forgotten. The store's lock guards it

	// guards the fields below; held while the file is read, which takes as long
	// as its file system does
	mu    sync.Mutex
	seen  bool // it was read before; the first time is no change
	known bool // sig describes the file as it was last read
	racy  bool
	sig   textfile.Signature

	state State
}

// State is what a snapshot keeps of a file. It is immutable.
type State struct {
	File string
	// Exists: there is a file, readable or not.
	Exists bool
	// Read: the file could be read, and Digest is that of its bytes.
	Read   bool
	Digest [sha256.Size]byte
	// Good is the last content that could be used; nil if there is none, or if
	// there is no file.
	Good *document.Block
	// Problem is why the file as it is now does not count; nil if it does.
	Problem *document.Diagnostic
	// Required: the user named this very file.
	Required bool
	// Managed: the file is the organisation's. Good are its defaults, and Bound
	// is what it requires; both are nil or none is.
	Managed bool
	Bound   *document.Block
	// Ignored is why a file of the organisation's does not count at all; nil if
	// it counts.
	Ignored *document.Diagnostic
	// Limited is why a file of the user's only tightens, as Bound says; "" if it
	// counts as it is written.
	Limited string
	// NoAnswer: the file system does not answer, so nobody knows what is there.
	NoAnswer bool
}

// Refuses returns why sessions of a kind must not start: it is unclear what the
// file asks for. It is nil if they may start.
func (s State) Refuses(kind document.Kind) *document.Diagnostic {
	switch unknown := s.Problem != nil && s.Good == nil; {
	case kind == document.KindTool, s.Managed:
		return s.Doubt()
	case unknown && s.Required:
		return s.Problem
	}
	return nil
}

// Doubt returns why it is unclear what the file asks for; nil if it is clear.
func (s State) Doubt() *document.Diagnostic {
	if s.Bound != nil && s.Bound.FirstError != nil {
		return s.Bound.FirstError
	}
	if s.Good != nil {
		return s.Good.FirstError
	}
	return s.Problem
}

func newFile(path, platform string) *File {
	return &File{path: path, platform: platform, owner: OwnerOf(path), state: State{File: path}}
}

// OwnerOf distinguishes Zed's settings files, the user's and projects', from
// ours by their names.
func OwnerOf(path string) document.Owner {
	dir := strings.ToLower(filepath.Base(filepath.Dir(path))) // "Zed" on Windows, as seen from WSL
	switch {
	case filepath.Base(path) != "settings.json":
	case dir == "zed":
		return document.Editor
	case dir == ".zed":
		return document.Project
	}
	return document.Sidecar
}

// lastGood is the last good content, if it set anything. Content that asked for
// nothing says nothing about what a broken file asks for.
func (s *File) lastGood() *document.Block {
	if s.state.Good.HasSettings() {
		return s.state.Good
	}
	return nil
}

// current brings the state up to date and returns it, and whether it differs
// from the last one.
func (s *File) current() (state State, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.refresh() && s.seen
	s.seen = true
	return s.state, changed
}

// refresh reads the file if it may have changed. It reports whether content or
// readability did. The lock is held.
func (s *File) refresh() bool {
	deadline := time.Now().Add(settleTime)
	for {
		next, changed := s.inspect()
		if changed && s.vanished(next) && time.Now().Before(deadline) {
			s.known = false
			time.Sleep(settleStep)
			continue
		}
		if changed {
			s.state = next
		}
		return changed
	}
}

// vanished: there were settings, and now there is no file or an empty one.
func (s *File) vanished(next State) bool {
	had := s.state.Good.HasSettings() || s.state.Bound.HasSettings()
	return had && (!next.Exists || next.Read && s.sig.Size == 0)
}

// inspect returns the file's state now, and whether it differs from the
// recorded one.
func (s *File) inspect() (State, bool) {
	info, err := fsguard.Stat(s.path)
	if err != nil {
		s.known = false
		return s.unusable(err)
	}
	if s.managed {
		if err := managed.Check(s.path); err != nil {
			s.known = false
			return s.unchecked(err)
		}
	}
	if s.known && !s.racy && textfile.SignatureOf(info) == s.sig {
		return s.state, false
	}
	data, sig, err := textfile.Read(s.path)
	s.sig, s.known = sig, sig != textfile.Signature{}
	s.racy = sig.Racy()
	if err != nil {
		return s.unusable(err)
	}
	next := State{File: s.path, Exists: true, Read: true, Digest: sha256.Sum256(data), Required: s.required}
	if s.state.Read && next.Digest == s.state.Digest {
		return s.state, false
	}
	if s.managed {
		return s.decodeManaged(data, next), true
	}
	block, problem := document.Decode(data, s.platform, s.owner)
	switch last := s.lastGood(); {
	case problem != nil:
		next.Good, next.Problem = last, problem
	case block.Empty && last != nil:
		next.Good = last
		next.Problem = &document.Diagnostic{
			Line: 1, Column: 1, Severity: document.SeverityError,
			Message: document.EmptyText,
		}
	default:
		if block.FirstError != nil && last != nil {
			block.Inherit(last)
		}
		next.Good = block
	}
	return next, true
}

// unusable is the state if the file cannot be read: absent, or there but not
// readable. Then the last good content stays.
func (s *File) unusable(err error) (State, bool) {
	message, exists := "cannot read: "+textfile.Cause(err), true
	if textfile.Missing(err) {
		why, whyErr := obstacle(s.path)
		switch {
		case whyErr != nil:
			err, message = whyErr, "cannot read: "+textfile.Cause(whyErr)
		case why != "":
			// A dangling link may mean a home directory that is only half
			// mounted, and a file in the place of the directory one that was
			// copied there. Taking it for "no settings" would switch the sandbox
			// off.
			message = "cannot read: " + why
		case s.required:
			message, exists = "cannot read: there is no such file", false
		default:
			return State{File: s.path, Managed: s.managed}, s.state.Exists
		}
	}
	problem := document.Diagnostic{Line: 1, Column: 1, Severity: document.SeverityError, Message: message}
	next := State{
		File: s.path, Exists: exists, Good: s.lastGood(), Problem: &problem, Required: s.required,
		NoAnswer: errors.Is(err, fsguard.ErrNoAnswer),
	}
	if s.managed {
		next.Managed = true
		next.Good, next.Bound = s.lastManaged()
	}
	changed := s.state.Problem == nil || *s.state.Problem != problem
	return next, changed
}

// obstacle says what makes a path missing: a symlink that leads nowhere, or a
// regular file in the place of a directory. It is "" if the path just does not
// exist. The error is one of looking it up.
func obstacle(path string) (string, error) {
	for at := path; ; at = filepath.Dir(at) {
		info, err := fsguard.Lstat(at)
		switch {
		case textfile.Missing(err) && at != filepath.Dir(at):
			continue
		case err != nil:
			return "", err
		}
		link := info.Mode()&fs.ModeSymlink != 0
		if link {
			info, err = fsguard.Stat(at)
		}
		switch {
		case errors.Is(err, fsguard.ErrNoAnswer):
			return "", err
		case err != nil && at == path:
			return "a symlink to a file that does not exist", nil
		case err != nil:
			return fmt.Sprintf("the directory %s is a symlink that leads nowhere", display.Quote(at)), nil
		case at != path && info.Mode().IsRegular():
			return fmt.Sprintf("%s is a file and should be a directory", display.Quote(at)), nil
		}
		return "", nil
	}
}
