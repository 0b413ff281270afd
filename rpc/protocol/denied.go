package protocol

// Denied tells that something was refused in a session, or that something
// happened to a protected path, which may have succeeded.
var Denied = Notification[DeniedParams]{"sandbox/denied", ToEditor}

// DeniedParams is what was refused or has happened.
type DeniedParams struct {
	SessionID string `json:"sessionId"`
	// Message is one line that is fit to be shown as it is, as plain text: what
	// was refused or has happened, by which program, how often, and, if that is
	// short, the setting that would allow it. Names that others chose are
	// quoted, escaped and shortened in it. The fields below are raw.
	Message string `json:"message"`
	// Access is "read", "write" (a file that exists), "create" or "remove" (a
	// name in a directory; renaming is both), "execute", "connect_unix",
	// "connect", "bind" or "signal" where that was refused; "protected_created"
	// where a protected path that did not exist has come to be, which nothing
	// can prevent; "protected_replaced" where one was replaced, moved or
	// removed, most likely by a program outside of the sandbox, so that the
	// session may write what stands there now; "protected_written" where one
	// was written on a machine that cannot prevent it; "protected_write" where
	// a change was tried and refused.
	Access string `json:"access"`
	// Target is what it was about: the real path; "abstract:" and a name; an
	// address and port, or, where not even a socket could be made, the socket's
	// family, such as "inet"; the number of a process.
	Target string `json:"target"`
	// Process is who it was; absent where nobody can tell, as for protected
	// paths.
	Process *Process `json:"process,omitempty"`
	// Count is how often it has happened since it was told of last. The same is
	// told again after a second, then after two, and so on up to a minute, and
	// once more in the end.
	Count int `json:"count"`
	// Suggestion is the setting that would allow exactly this, for sessions
	// that start from then on; absent where none would, and where what it would
	// open holds credentials.
	Suggestion *Suggestion `json:"suggestion,omitempty"`
	// Hint is a sentence for the user, fit to be shown as it is.
	Hint string `json:"hint,omitempty"`
	// Missed counts others that are not told: of one session 20 are told at
	// once, and then 20 a second.
	Missed int `json:"missed,omitempty"`
}

// Suggestion is a setting that would allow something.
type Suggestion struct {
	// Setting is a key of "terminal.sandbox".
	Setting string `json:"setting"`
	// Value is an entry to be added where the key is a list, else the key's
	// whole value; for protected_paths it is the whole list. It is JSON in any
	// case.
	Value RawJSON `json:"value"`
	// Message says what to write where, in one line that is fit to be shown as
	// it is. It is for reading, not for copying: an unusual value is escaped in
	// it.
	Message string `json:"message"`
}

// Process names a process of a session.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// RequestAccess asks the user about an access that is about to be refused,
// where on_denied is "ask" and the editor announced approvals. Only openings of
// files are asked about, and only those that a setting would allow: never what
// holds credentials, never protected paths. The program waits for a minute;
// without an answer the access is refused. After "deny" and "session" the same
// is not asked again in the session.
var RequestAccess = Request[RequestAccessParams, RequestAccessResult]{"sandbox/requestAccess", ToEditor}

// RequestAccessParams is what a program wants.
type RequestAccessParams struct {
	SessionID string `json:"sessionId"`
	// Message is the question in one line that is fit to be shown as it is, as
	// plain text: which program wants what. Names that others chose are quoted,
	// escaped and shortened in it. Target and process are raw.
	Message string `json:"message"`
	// Access is "read", "write" or "create".
	Access string `json:"access"`
	// Target is the real path. Whatever becomes of its names, what is opened is
	// what lies there when the question is put.
	Target string `json:"target"`
	// Process is who it is; absent where nobody can tell.
	Process *Process `json:"process,omitempty"`
	// Choices are the decisions that can be carried out.
	Choices []Decision `json:"choices"`
	// Suggestion is what "project" and "user" would write.
	Suggestion *Suggestion `json:"suggestion,omitempty"`
	// Hint is a sentence for the user, fit to be shown as it is.
	Hint string `json:"hint,omitempty"`
}

// RequestAccessResult is what the user says.
type RequestAccessResult struct {
	// Decision is one of the choices; anything else is "deny".
	Decision Decision `json:"decision"`
}

// Decision is an answer to sandbox/requestAccess.
type Decision string

const (
	// DecisionDeny refuses it.
	DecisionDeny Decision = "deny"
	// DecisionOnce allows it this time.
	DecisionOnce Decision = "once"
	// DecisionSession allows it until the session ends.
	DecisionSession Decision = "session"
	// DecisionProject allows it until the session ends, and writes the
	// suggestion into the project's settings, for sessions that start later.
	DecisionProject Decision = "project"
	// DecisionUser likewise writes it into the user's own settings.
	DecisionUser Decision = "user"
)

// Finding is a file that changed while a session ran and that programs outside
// of the sandbox act upon without asking.
type Finding struct {
	// Path is absolute.
	Path string `json:"path"`
	// Change is "created", "changed" or "removed".
	Change string `json:"change"`
	// Why says what acts upon it.
	Why string `json:"why"`
	// Message says all of this in one line that is fit to be shown as it is.
	Message string `json:"message"`
}
