package protocol

// Code is a JSON-RPC error code.
type Code int64

const (
	// CodeParseError: the body is not JSON. The answer's id is null and the
	// connection goes on.
	CodeParseError Code = -32700
	// CodeInvalidRequest: not a request, an id that can be none, a second
	// initialize, or a request after shutdown.
	CodeInvalidRequest Code = -32600
	// CodeMethodNotFound: no such method.
	CodeMethodNotFound Code = -32601
	// CodeInvalidParams: the message names the field and what was expected.
	CodeInvalidParams Code = -32602
	// CodeInternalError: a fault of the sidecar.
	CodeInternalError Code = -32603
	// CodeNotInitialized: a request before initialize.
	CodeNotInitialized Code = -32002
	// CodeSessionNotFound: no session of that id, or it was closed.
	CodeSessionNotFound Code = -32010
	// CodeSpawnFailed: shell missing, working directory missing, PTYs exhausted
	// …
	CodeSpawnFailed Code = -32011
	// CodeSandboxUnavailable: the machine cannot enforce the policy and the
	// settings say refuse.
	CodeSandboxUnavailable Code = -32012
	// CodeSettingsInvalid: a settings file cannot be read, or something in it
	// is wrong, so nobody knows what it asks for. Tools do not start until it
	// is fixed; without the file that userSettingsPath names nothing starts.
	CodeSettingsInvalid Code = -32013
	// CodeProjectNotTrusted: the project's settings need the user's trust.
	CodeProjectNotTrusted Code = -32014
)

// ErrorData goes with the sidecar's own error codes. An error's message, the
// reason and the hint are one line each, fit to be shown as they are.
type ErrorData struct {
	// Reason is the cause in words.
	Reason string `json:"reason"`
	// Path is the file or directory concerned.
	Path string `json:"path,omitempty"`
	// Hint says what the user can do.
	Hint string `json:"hint,omitempty"`
}
