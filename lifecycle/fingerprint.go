package lifecycle

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// SessionFingerprint is what every process of a session carries on macOS. It is
// inherited and cannot be removed: two rules in its Seatbelt profile that no
// other profile has. One denies a place and the other allows its sibling. The
// kernel answers for any process of the user what it may do with each. A
// process without a sandbox may use both, one in another sandbox may use both
// or neither.
//
// The zero value is no fingerprint. Values may be copied.
type SessionFingerprint struct {
	// ID is unique to the session.
	ID string `json:"id"`
	// Dir is a directory of the session's own, with a real path, that no
	// session can write. Empty: there is no mark by path.
	Dir string `json:"dir,omitempty"`
}

// NewSessionFingerprint makes the fingerprint of a session. The ID becomes part
// of names in a profile, so it may hold nothing but letters, digits and "-".
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
	// ByName is a mark made of two names of services that do not exist: nothing
	// can be removed, moved or spelt differently.
	ByName Medium = "mach-lookup"
	// ByPath is a mark made of two paths.
	ByPath Medium = "file-read-data"
)

// Mark is a pair of questions about a process. A process of the session gets
// "no" to one and "yes" to the other.
type Mark struct {
	Medium          Medium
	Denied, Allowed string
}

// Marks are the marks in a session's profile. Each is enough to recognise a
// process. There are two kinds because the system documents neither.
func (f SessionFingerprint) Marks() []Mark {
	if f.IsZero() {
		return nil
	}
	marks := []Mark{{Medium: ByName, Denied: servicePrefix + f.ID + ".deny", Allowed: servicePrefix + f.ID + ".allow"}}
	if f.Dir != "" {
		marks = append(marks, Mark{
			Medium: ByPath, Denied: filepath.Join(f.Dir, "deny"),
			Allowed: filepath.Join(f.Dir, "allow"),
		})
	}
	return marks
}

// servicePrefix begins names of services that nobody registers.
const servicePrefix = "sandbox-sidecar.session."

// Answer is the kernel's answer about one process and one operation.
type Answer int

const (
	// Yes: the process may do it.
	Yes Answer = iota
	// No: it may not, or there is no such process.
	No
	// Unknown: the question could not be answered.
	Unknown
)

// ErrUnknown means that the kernel did not tell whether a process carries a
// fingerprint.
var ErrUnknown = errors.New("no answer about a process")

// CarriedBy asks about one process, first about the denied place and then about
// the allowed one. For a process that has ended before the second question, the
// second answer is not "yes". So a match is always a living process.
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
