package protocol

// Code is a JSON-RPC error code.
type Code int64

const (
	// CodeParseError: the body is not JSON. The answer's id is null and the
	// connection goes on.
	CodeParseError Code = -32700
	// CodeInvalidRequest: not a request, an invalid id, a second initialize, or
	// a request after shutdown.
	CodeInvalidRequest Code = -32600
	// CodeMethodNotFound: no such method.
	CodeMethodNotFound Code = -32601
	// CodeInvalidParams: the message names the field and what was expected.
	CodeInvalidParams Code = -32602
	// CodeInternalError: a bug of the sidecar, or too many requests at once.
	CodeInternalError Code = -32603
	// CodeRequestCancelled: the editor has cancelled the request.
	CodeRequestCancelled Code = -32800
	// CodeNotInitialized: a request before initialize.
	CodeNotInitialized Code = -32002
	// CodeSessionNotFound: no session has that id, or it was closed.
	CodeSessionNotFound Code = -32010
	// CodeSpawnFailed: the session could not be started, for example because the
	// shell or the working directory is missing.
	CodeSpawnFailed Code = -32011
	// CodeSandboxUnavailable: the machine cannot enforce the policy, and
	// on_unavailable is "refuse".
	CodeSandboxUnavailable Code = -32012
	// CodeSettingsInvalid: a settings file cannot be read or is wrong, so that
	// it is unclear what it asks for. Tools do not start until it is fixed.
	// Without the file that userSettingsPath names no session starts.
	CodeSettingsInvalid Code = -32013
	// CodeProjectNotTrusted: the project's settings file cannot be trusted.
	CodeProjectNotTrusted Code = -32014
	// CodePortNotForwarded: the port cannot be opened, for example because
	// another program uses it.
	CodePortNotForwarded Code = -32015
	// CodePolicyChanged: the session would not start under the policy that
	// policyId names.
	CodePolicyChanged Code = -32016
)

// ErrorData belongs to the sidecar's own error codes. The error's message, the
// reason and the hint are one line each, to be shown as plain text.
type ErrorData struct {
	// Reason is the cause in words, such as "no such file or directory".
	Reason string `json:"reason"`
	// Path is the file or directory concerned.
	Path string `json:"path,omitempty"`
	// Hint says what the user can do.
	Hint string `json:"hint,omitempty"`
}
