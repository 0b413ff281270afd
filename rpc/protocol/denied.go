package protocol

// Denied reports that the sandbox refused an operation, or that something
// happened to a protected path, which may have succeeded.
var Denied = Notification[DeniedParams]{"sandbox/denied", ToEditor}

// DeniedParams describes a denial, or what happened to a protected path.
type DeniedParams struct {
	SessionID string `json:"sessionId"`
	// Message says in one line what was refused or has happened, by which
	// program and how often. If it stays short, it names the setting that would
	// allow it. Show it as plain text: names that others chose are quoted,
	// escaped and shortened. The other fields are raw.
	Message string `json:"message"`
	// Line says the same shorter, for a list, without the count and the setting.
	// It is absent for what happened to a protected path.
	Line string `json:"line,omitempty"`
	// Access is the kind of operation.
	//
	// Refused operations: "read"; "write" (a file that exists); "create" and
	// "remove" (a name in a directory; renaming is both); "execute";
	// "connect_unix"; "connect"; "bind"; "signal". Of agents of keys: "agent"
	// (the target says in words what one was to do); "sign" (the target is a
	// key, as signing_keys has it).
	//
	// Protected paths: "protected_write": a change was refused, and the process
	// and the detail are known if it was one of git's configuration.
	// "protected_created": a path that did not exist was created, which cannot
	// be prevented. "protected_replaced": a path was replaced, moved or removed,
	// probably from outside the sandbox; the session may write the new one.
	// "protected_written": a path was written, on a machine that cannot prevent
	// it. "protected_stored": git has new content for a path since a session began.
	// A git outside puts that in place when it checks out, merges or restores.
	Access string `json:"access"`
	// Target is a real path, "abstract:" and a socket's name, an address with a
	// port, or a process id. If not even a socket could be created, it is the
	// socket's family, such as "inet".
	Target string `json:"target"`
	// Detail says in one line which part of a change was refused and why, such as
	// a setting of git and what git would do, or what of the first bytes to an
	// allowed host. It can be shown as it is. Denials with different details are
	// different.
	Detail string `json:"detail,omitempty"`
	// Process is the process that was refused; absent if it is unknown, as for
	// protected paths.
	Process *Process `json:"process,omitempty"`
	// Count is how often this has happened since its last report. It is
	// reported again after one second, then two, and so on up to a minute, and
	// at the end of the session.
	Count int `json:"count"`
	// Source is "output" if the session's own output told of the denial, and the
	// policy refuses exactly that. It is absent if the sandbox noticed it.
	Source DenialSource `json:"source,omitempty"`
	// Suggestion is the setting that would allow this in later sessions; absent
	// if no setting would, or if it would expose credentials or let sessions write
	// what programs outside act on. The hint says so.
	Suggestion *Suggestion `json:"suggestion,omitempty"`
	// Hint is one sentence for the user, to be shown as plain text.
	Hint string `json:"hint,omitempty"`
	// Missed counts other denials without a report: a session has at most 20
	// reports at once, and then 20 a second.
	Missed int `json:"missed,omitempty"`
}

// DenialSource is how a denial became known.
type DenialSource string

// DenialFromOutput means that a program printed that it was refused. Such a
// report names no process.
const DenialFromOutput DenialSource = "output"

// Suggestion is a setting that would allow an operation.
type Suggestion struct {
	// Setting is a key of "terminal.sandbox".
	Setting string `json:"setting"`
	// Value is JSON: the entry to add if the key is a list, else the key's whole
	// value. For protected_paths it is the whole list.
	Value RawJSON `json:"value"`
	// Message says in one line what to write where. Show it as plain text, and
	// do not copy from it: unusual values are escaped.
	Message string `json:"message"`
	// Instruction is the message with a value that is not shortened.
	Instruction string `json:"instruction,omitempty"`
}

// Process names a process of a session.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// RequestAccess asks the user about an access before it is refused, if
// on_denied is "ask" and the editor announced approvals. It is about opening
// files that a setting would allow, about making, removing and renaming names in a
// directory, and about connecting to hosts while the network is off. It is also
// about one setting of git in a repository's configuration, which the message names.
// It is never about credentials, other protected paths or denied_hosts. The program
// waits for up to a minute, and is refused without an answer. If nobody waits any
// more, $/cancelRequest follows. After "deny", "session" and "directory" the
// session, or its group, does not ask about the same access again.
var RequestAccess = Request[RequestAccessParams, RequestAccessResult]{"sandbox/requestAccess", ToEditor}

// RequestAccessParams describes an access that a program waits for.
type RequestAccessParams struct {
	SessionID string `json:"sessionId"`
	// Message says in one line which program wants what. Show it as plain text:
	// names that others chose are quoted and escaped, and long ones shortened, but
	// never in a setting of git. Target and process are raw.
	Message string `json:"message"`
	// Access is "read", "write", "create", "remove", "connect" or, for a setting of
	// git, "protected_write".
	Access string `json:"access"`
	// Target is the real path. If the file is allowed, the program gets the file
	// that was there when the question was sent. To connect, it is "host:port",
	// where the host is a name or an address.
	Target string `json:"target"`
	// Process is the process that waits; absent if it is unknown.
	Process *Process `json:"process,omitempty"`
	// Choices are the decisions that the sidecar can carry out.
	Choices []Decision `json:"choices"`
	// Directory is what "directory" opens, with everything below it.
	Directory string `json:"directory,omitempty"`
	// Suggestion is what "project" and "user" would write.
	Suggestion *Suggestion `json:"suggestion,omitempty"`
	// Hint is one sentence for the user, to be shown as plain text.
	Hint string `json:"hint,omitempty"`
}

// RequestAccessResult is the user's decision.
type RequestAccessResult struct {
	// Decision is one of the choices; anything else is "deny".
	Decision Decision `json:"decision"`
}

// Decision is an answer to sandbox/requestAccess.
type Decision string

const (
	// DecisionDeny refuses the access.
	DecisionDeny Decision = "deny"
	// DecisionOnce allows the access this time.
	DecisionOnce Decision = "once"
	// DecisionSession allows the access until the session ends, or its group.
	DecisionSession Decision = "session"
	// DecisionDirectory allows the access, and everything like it in the directory
	// that the question names, until the session ends, or its group. Whoever may
	// write there may also read there, and make, remove and rename files. Known
	// secrets, and what programs outside act on, are not part of it.
	DecisionDirectory Decision = "directory"
	// DecisionProject allows the access until the session ends, and writes the
	// suggestion into the project's settings for later sessions.
	DecisionProject Decision = "project"
	// DecisionUser allows the access until the session ends, and writes the
	// suggestion into the user's own settings for later sessions.
	DecisionUser Decision = "user"
	// DecisionWindow, of settings/allow alone, allows the access in new sessions
	// of the project until the sidecar ends. It writes nothing.
	DecisionWindow Decision = "window"
)

// LimitReached reports that a session has reached one of its limits, once for
// each limit.
var LimitReached = Notification[LimitParams]{"sandbox/limit", ToEditor}

// LimitParams describes a limit that was reached.
type LimitParams struct {
	SessionID string `json:"sessionId"`
	// Setting is the key of the limit in "terminal.sandbox": "limits.processes",
	// "limits.memory" or "limits.connections".
	Setting string `json:"setting"`
	// Message says in one line what happened, and which setting decides. Show it
	// as plain text.
	Message string `json:"message"`
	// Source is "output" if only the session's own output told of it. It is
	// absent if the kernel did.
	Source DenialSource `json:"source,omitempty"`
}

// Finding is a file that changed while a session ran, and that programs outside
// the sandbox act on without asking. It is several files if they are of one
// group, such as build files.
type Finding struct {
	// Path is absolute. Of several it is the one nearest to the project.
	Path string `json:"path"`
	// Others are more paths of the group, at most 100.
	Others []string `json:"others,omitempty"`
	// Change is "created", "changed", "removed", or "stored in git" for what a
	// commit or an index of git holds instead of the working tree.
	Change string `json:"change"`
	// Why says which program acts on it.
	Why string `json:"why"`
	// Message says all of this in one line, to be shown as plain text.
	Message string `json:"message"`
}
