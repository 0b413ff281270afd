// Package audit keeps the audit trail: one line of JSON for each thing that a
// sidecar did, in a file of the user's or in the journal of systemd.
//
// [Trail] writes it, [Read] reads it, and docs/audit.md describes the lines. The
// trail never has output of programs or values of variables. What looks like a
// secret in arguments is replaced; see [Redact].
package audit

import (
	_ "embed"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Version is the version of the schema. A change that a reader of older lines
// would misunderstand raises it; another field does not.
const Version = 1

//go:embed schema.json
var schema string

// Schema is the JSON Schema (draft 7) of a line. Each call answers a copy.
func Schema() []byte { return []byte(schema) }

// Recorder takes events for an audit trail.
type Recorder interface {
	// Record notes an event where the policy says. If the policy requires that
	// and the event is a Spawn, it returns once the line is written, with the
	// error if it is not. It does not wait otherwise. The error is ErrShare if the
	// event can be held and its session has a share of the lines that wait.
	Record(to policy.Audit, event Event) error
}

// The kinds of event.
const (
	// Spawn: a program is about to be started. Nothing of it runs yet.
	Spawn = "spawn"
	// Started: it runs, with these protections.
	Started = "started"
	// NotStarted: it could not be started.
	NotStarted = "not_started"
	// Refused: accesses that a session was refused.
	Refused = "refused"
	// Asked: a question and its answer.
	Asked = "asked"
	// Connected: connections to a host that the sidecar made for a session.
	Connected = "connected"
	// Review: files that changed and that programs outside act on.
	Review = "review"
	// Ended: a session is over.
	Ended = "ended"
	// Trusted and Untrusted: a project's settings count as written, or not.
	Trusted   = "trusted"
	Untrusted = "untrusted"
	// Allowed: the user let the sidecar write an entry into settings.
	Allowed = "allowed"
	// SettingsChanged: files of settings have other content.
	SettingsChanged = "settings_changed"
)

// Event is one line. Fields that do not apply to its kind are empty.
type Event struct {
	Version int       `json:"v"`
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	// UID and User are who runs the sidecar; Sidecar is its process id, and Via
	// its command, such as "serve" or "exec".
	UID     int    `json:"uid"`
	User    string `json:"user,omitempty"`
	Sidecar int    `json:"sidecar"`
	Via     string `json:"via,omitempty"`
	// Lost is how many lines could not be written before this one.
	Lost int `json:"lost,omitempty"`
	// Managed is true if the organisation's settings ask for the trail.
	Managed bool `json:"managed,omitempty"`

	Session string `json:"session,omitempty"`
	// Kind is "terminal" or "tool".
	Kind    string   `json:"kind,omitempty"`
	Project string   `json:"project,omitempty"`
	Dir     string   `json:"cwd,omitempty"`
	Program string   `json:"program,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	// Policy identifies the compiled policy; Restricted is what it asks for.
	Policy     string `json:"policy,omitempty"`
	Restricted *bool  `json:"restricted,omitempty"`

	PID int `json:"pid,omitempty"`
	// Confined says whether the kernel confines the session, and Protections how
	// far, by name.
	Confined    *bool             `json:"confined,omitempty"`
	Protections map[string]string `json:"protections,omitempty"`
	Error       string            `json:"error,omitempty"`

	// Access and Target are what a session attempted, and Process the name that
	// its program has given itself.
	Access  string `json:"access,omitempty"`
	Target  string `json:"target,omitempty"`
	Process string `json:"process,omitempty"`
	// Targets are targets of accesses that came too fast for lines of their own.
	Targets []string `json:"targets,omitempty"`
	// Detail says what of the first bytes to an allowed host was refused, or which
	// directory an answer has opened.
	Detail string `json:"detail,omitempty"`
	// Count says how often, between First and Last.
	Count int        `json:"count,omitempty"`
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// Answer is "deny", "once", "session" or "directory".
	Answer string `json:"answer,omitempty"`

	// Changed are the files of a review.
	Changed []Change `json:"changed,omitempty"`
	// More counts what did not fit into the line: files, or refusals.
	More int `json:"more,omitempty"`

	ExitCode *int   `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// Survivors is true if processes of the session could not be killed yet.
	Survivors bool `json:"survivors,omitempty"`

	// Files are settings files, Digest is the content that was trusted, and Key
	// and Value are an entry that was written.
	Files  []string `json:"files,omitempty"`
	Digest string   `json:"digest,omitempty"`
	Key    string   `json:"key,omitempty"`
	Value  string   `json:"value,omitempty"`
}

// Held reports whether its session can hold the event for a while: one access
// out of many.
func (e *Event) Held() bool {
	return (e.Event == Refused || e.Event == Connected || e.Event == Asked) && e.Targets == nil && e.More == 0
}

// Change is a file that changed during a session.
type Change struct {
	Path string `json:"path"`
	How  string `json:"how"`
	// Others are further files with the same change, if any.
	Others int `json:"others,omitempty"`
}

// Identifier is the trail's SYSLOG_IDENTIFIER in the journal of systemd.
const Identifier = "sandbox-sidecar-audit"
