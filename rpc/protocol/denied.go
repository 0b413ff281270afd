package protocol

// Denied tells that something was refused in a session, or that something happened to a protected path, which may have succeeded.
var Denied = Notification[DeniedParams]{"sandbox/denied", ToEditor}

// DeniedParams is what was refused or has happened.
type DeniedParams struct {
	SessionID string `json:"sessionId"`
	// Access is "protected_created" where a protected path that did not exist has come to be, which nothing can prevent;
	// "protected_replaced" where one was replaced, moved or removed, most likely by a program outside of the sandbox, so that the session may
	// write what stands there now; "protected_written" where one was written on a machine that cannot prevent it; "protected_write"
	// where a change was tried and refused.
	Access string `json:"access"`
	// Target is the path.
	Target string `json:"target"`
	// Process is who it was; absent where nobody can tell, as for protected paths.
	Process *Process `json:"process,omitempty"`
	// Count is how often it has happened since it was told of last.
	Count int `json:"count"`
}

// Process names a process of a session.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Finding is a file that changed while a session ran and that programs outside of the sandbox act upon without asking.
type Finding struct {
	// Path is absolute.
	Path string `json:"path"`
	// Change is "created", "changed" or "removed".
	Change string `json:"change"`
	// Why says what acts upon it.
	Why string `json:"why"`
}
