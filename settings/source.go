package settings

import (
	"crypto/sha256"
	"os"
	"time"
)

const (
	// racyWindow: a file changed this shortly before it was read may change again without a trace in its times, whose granularity
	// is up to 10 ms on Linux and 2 s on FAT. It is read again at the next look.
	racyWindow = 2 * time.Second
	// settleTime is how long a file that had content may be gone or empty before that counts: editors that save by "move away,
	// write anew" or by "truncate, write" leave such a gap, and a session started within it would be without its sandbox.
	settleTime = 100 * time.Millisecond
	settleStep = 5 * time.Millisecond
)

// source is one settings file: what is there now, and the last content that could be used. The store's lock guards it.
type source struct {
	path     string
	platform string

	known bool // sig describes the file that was last looked at
	racy  bool
	sig   signature

	state fileState
	used  time.Time // by a snapshot; only projects' files are forgotten for lack of use
}

// fileState is what a snapshot keeps of a file. Immutable.
type fileState struct {
	file string
	// exists: something is there, readable or not.
	exists bool
	// read: the file could be read, and digest is that of its bytes.
	read   bool
	digest [sha256.Size]byte
	// good is the last content that could be used; nil where there is none, or the file is absent.
	good *document
	// problem is why the file as it is now does not count; nil where it does.
	problem *Diagnostic
}

func newSource(path, platform string) *source {
	return &source{path: path, platform: platform, state: fileState{file: path}}
}

// refresh looks at the file and reads it if it may have changed. It reports whether content or readability did.
func (s *source) refresh() bool {
	deadline := time.Now().Add(settleTime)
	for {
		next, changed := s.look()
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
func (s *source) vanished(next fileState) bool {
	had := s.state.good != nil && len(s.state.good.where) > 0
	return had && (!next.exists || next.read && s.sig.size == 0)
}

// look returns the state the file is in now, and whether it differs from the recorded one.
func (s *source) look() (fileState, bool) {
	info, err := os.Stat(s.path)
	if err != nil {
		s.known = false
		return s.unusable(err)
	}
	if s.known && !s.racy && signatureOf(info) == s.sig {
		return s.state, false
	}
	data, sig, err := readFile(s.path)
	s.sig, s.known = sig, sig != signature{}
	s.racy = sig.racy()
	if err != nil {
		return s.unusable(err)
	}
	next := fileState{file: s.path, exists: true, read: true, digest: sha256.Sum256(data), good: s.state.good}
	if s.state.read && next.digest == s.state.digest {
		return s.state, false
	}
	document, problem := decode(data, s.platform)
	if problem != nil {
		next.problem = problem
	} else {
		next.good = document
	}
	return next, true
}

// unusable is the state after a failed look: absent, or there but not to be read, in which case the last good content stays.
func (s *source) unusable(err error) (fileState, bool) {
	message := "cannot read: " + cause(err)
	if missing(err) {
		if _, lstatErr := os.Lstat(s.path); lstatErr != nil {
			return fileState{file: s.path}, s.state.exists
		}
		// A dangling link is a home directory that is only half there: taking it for "no settings" would switch the sandbox off.
		message = "cannot read: a symlink to a file that does not exist"
	}
	problem := Diagnostic{Line: 1, Column: 1, Severity: SeverityError, Message: message}
	next := fileState{file: s.path, exists: true, good: s.state.good, problem: &problem}
	changed := s.state.problem == nil || *s.state.problem != problem
	return next, changed
}
