package lifecycle

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// SessionFingerprint is what every process of a session carries on macOS,
// inherits and cannot take off: two places in its Seatbelt profile that no
// other profile treats so. One is denied and its sibling is allowed, and the
// kernel tells of any process of the user how it stands with both. A process
// without a sandbox may use both, one in a stranger's sandbox may use both or
// neither.
//
// The zero value is no fingerprint. Values may be copied.
type SessionFingerprint struct {
	// ID is used by no other session.
	ID string `json:"id"`
	// Dir is a directory of the session's own, with a real path, that no
	// session can write. Empty: there is no mark by path.
	Dir string `json:"dir,omitempty"`
}

// NewSessionFingerprint makes the fingerprint of a session. Its ID is part of
// names in a profile, so it may hold nothing but letters, digits and "-".
func NewSessionFingerprint(id, dir string) (SessionFingerprint, error) {
	if id == "" || strings.Trim(id, "-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return SessionFingerprint{}, fmt.Errorf("make fingerprint: id %q holds more than letters, digits and \"-\"", id)
	}
	if dir != "" && (!filepath.IsAbs(dir) || filepath.Clean(dir) != dir) {
		return SessionFingerprint{}, fmt.Errorf("make fingerprint: %q is no clean path", dir)
	}
	return SessionFingerprint{ID: id, Dir: dir}, nil
}

// IsZero reports whether there is no fingerprint.
func (f SessionFingerprint) IsZero() bool { return f.ID == "" }

// Medium is what a mark is made of.
type Medium string

const (
	// ByName is a mark made of two names of services that do not exist: there
	// is nothing that could be removed, moved or spelt otherwise.
	ByName Medium = "mach-lookup"
	// ByPath is a mark made of two paths.
	ByPath Medium = "file-read-data"
)

// Mark is a pair of questions about a process, of which the process is answered
// one with no and the other with yes.
type Mark struct {
	Medium          Medium
	Denied, Allowed string
}

// Marks are the marks that a session's profile holds. Each is enough to
// recognise a process; there are two kinds because the system documents
// neither.
func (f SessionFingerprint) Marks() []Mark {
	if f.IsZero() {
		return nil
	}
	marks := []Mark{{Medium: ByName, Denied: servicePrefix + f.ID + ".deny", Allowed: servicePrefix + f.ID + ".allow"}}
	if f.Dir != "" {
		marks = append(marks, Mark{Medium: ByPath, Denied: filepath.Join(f.Dir, "deny"),
			Allowed: filepath.Join(f.Dir, "allow")})
	}
	return marks
}

// servicePrefix begins the names of services. Nobody registers one under it.
const servicePrefix = "sandbox-sidecar.session."

// Answer is the kernel's about one process and one operation.
type Answer int

const (
	// Yes: the process may.
	Yes Answer = iota
	// No: it may not, or there is no such process.
	No
	// Unknown: the question could not be answered.
	Unknown
)

// ErrUnknown means that it could not be found out whether a process carries a
// fingerprint.
var ErrUnknown = errors.New("no answer about a process")

// CarriedBy asks about one process. The denied side comes first and the allowed
// side last: of a process that ends between the two questions, or has ended
// before, the second answer is not "yes", so that a match is always a match
// with a living process.
func (m Mark) CarriedBy(ask func(medium Medium, argument string) Answer) (bool, error) {
	switch ask(m.Medium, m.Denied) {
	case Yes:
		return false, nil
	case Unknown:
		return false, ErrUnknown
	}
	switch ask(m.Medium, m.Allowed) {
	case Yes:
		return true, nil
	case Unknown:
		return false, ErrUnknown
	}
	return false, nil
}
