package protocol

// Initialize opens the conversation. Every other request before it is refused
// with CodeNotInitialized.
var Initialize = Request[InitializeParams, InitializeResult]{"initialize", ToSidecar}

// Initialized says that the editor has received the answer to initialize.
var Initialized = Notification[Empty]{"initialized", ToSidecar}

// Shutdown kills every session and answers when no process of any is left.
var Shutdown = Request[Empty, Empty]{"shutdown", ToSidecar}

// Exit ends the sidecar: with status 0 after shutdown, else with 1.
var Exit = Notification[Empty]{"exit", ToSidecar}

// DidChangeWorkspaceFolders adds and removes workspace folders.
var DidChangeWorkspaceFolders = Notification[WorkspaceFoldersChange]{"workspace/didChangeWorkspaceFolders", ToSidecar}

// LogMessage is a line for the editor's log.
var LogMessage = Notification[LogMessageParams]{"window/logMessage", ToEditor}

// CancelRequest says that its sender needs no answer to a request any more, as in
// LSP. From the sidecar: nobody waits for sandbox/requestAccess, so close the
// question. An answer that comes nevertheless has no effect. From the editor: a
// terminal/spawn that has not started starts nothing, and a terminal/wait ends
// without its session. Their answer is CodeRequestCancelled then. Every other
// request is carried out and answered as usual.
var CancelRequest = Notification[CancelParams]{"$/cancelRequest", BothWays}

// CancelParams names a request.
type CancelParams struct {
	// ID is that of the request: a number of the sidecar's, or what the editor has
	// chosen.
	ID RawJSON `json:"id"`
}

// InitializeParams describes the editor.
type InitializeParams struct {
	// ProcessID is the editor's process id, such as 4711. The sidecar ends with
	// that process. If it is null, only the end of stdin counts.
	ProcessID *int `json:"processId"`
	// ProtocolVersion is the newest version that the editor speaks; absent means
	// 1. The answer has the version that counts.
	ProtocolVersion int `json:"protocolVersion,omitempty"`
	// ClientInfo names the editor.
	ClientInfo *ClientInfo `json:"clientInfo,omitempty"`
	// WorkspaceFolders are the open projects.
	WorkspaceFolders []WorkspaceFolder `json:"workspaceFolders,omitempty"`
	// Capabilities say what the editor can do.
	Capabilities ClientCapabilities `json:"capabilities"`
	// InitializationOptions are the editor's own settings.
	InitializationOptions *InitializationOptions `json:"initializationOptions,omitempty"`
}

// ClientInfo names a program and its version.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// WorkspaceFolder is one project that is open in the editor.
type WorkspaceFolder struct {
	// Path is absolute, such as "/home/ada/engine".
	Path string `json:"path"`
	// Name is the name that users see.
	Name string `json:"name,omitempty"`
}

// ClientCapabilities say what the editor can do.
type ClientCapabilities struct {
	// FlowControl promises terminal/ack for consumed output. Without it, output
	// is never held back.
	FlowControl bool `json:"flowControl,omitempty"`
	// Approvals promises to answer sandbox/requestAccess.
	Approvals bool `json:"approvals,omitempty"`
	// Window asks for a socket on which sandboxed shells report that the sidecar
	// did not start; see terminal/started.
	Window bool `json:"window,omitempty"`
	// PromptLines has shells say before their next prompt what was refused.
	PromptLines bool `json:"promptLines,omitempty"`
}

// InitializationOptions are settings from outside the standard files.
type InitializationOptions struct {
	// UserSettingsPath is the absolute path of a file that replaces the user's
	// settings files; empty means absent. initialize succeeds if the file is
	// missing, so that the editor can show settings/diagnostics and create it.
	// terminal/spawn fails with CodeSettingsInvalid until it can be read. If the
	// file disappears later, its last valid content counts.
	UserSettingsPath string `json:"userSettingsPath,omitempty"`
	// Settings is one more layer, in the format of a settings file, and trusted
	// like the user's own file.
	Settings RawJSON `json:"settings,omitempty"`
}

// InitializeResult describes the sidecar.
type InitializeResult struct {
	ServerInfo ClientInfo `json:"serverInfo"`
	// ProtocolVersion is the newest version that both speak, such as 1. An editor
	// that does not speak it ends the sidecar.
	ProtocolVersion int                `json:"protocolVersion"`
	Capabilities    ServerCapabilities `json:"capabilities"`
	// Window is the path of a socket, if the editor asked for one and it could be
	// made. Put it into the variable SANDBOX_WINDOW of what the editor starts.
	// Sessions do not get that variable.
	Window string `json:"window,omitempty"`
}

// ServerCapabilities say what this sidecar can do on this machine.
type ServerCapabilities struct {
	// Platform is the operating system: "linux" or "darwin".
	Platform string `json:"platform"`
	// Kinds are the kinds of session it starts.
	Kinds []Kind `json:"kinds"`
	// Groups is true if sessions can share a sandbox; see terminal/spawn.
	Groups bool `json:"groups,omitempty"`
	// SpawnFields are the fields of terminal/spawn that this version understands.
	// Any other is an error there, as it may be one that restricts.
	SpawnFields []string `json:"spawnFields"`
	// Enforcement says for each protection what this machine can enforce. The
	// sidecar has tried each.
	Enforcement Protections `json:"enforcement"`
}

// Protections holds one entry for each protection: filesystem, file_tree,
// temporary_files, hidden_paths, toolchain_caches, execute, network,
// network_hosts, unix_sockets, signals, protected_paths, syscalls,
// limits, process_tracking, denials.
type Protections map[string]Protection

// Protection says how far one protection holds.
type Protection struct {
	Status ProtectionStatus `json:"status"`
	// Mechanism names what enforces it, such as "landlock"; empty if nothing
	// does.
	Mechanism string `json:"mechanism"`
	// Detail says in words what is enforced and what is not.
	Detail string `json:"detail"`
	// Fix says what the user can do for more protection.
	Fix string `json:"fix,omitempty"`
}

// ProtectionStatus says how far a protection holds.
type ProtectionStatus string

const (
	// Enforced: the kernel refuses what the policy does not grant.
	Enforced ProtectionStatus = "enforced"
	// Degraded: the kernel refuses part of it. The detail names the rest.
	Degraded ProtectionStatus = "degraded"
	// Absent: the kernel refuses nothing.
	Absent ProtectionStatus = "absent"
)

// WorkspaceFoldersChange adds and removes workspace folders.
type WorkspaceFoldersChange struct {
	Added   []WorkspaceFolder `json:"added"`
	Removed []WorkspaceFolder `json:"removed"`
}

// LogMessageParams is one line for the editor's log.
type LogMessageParams struct {
	// Type is 1 error, 2 warning, 3 info, 4 log, as in LSP.
	Type    int    `json:"type"`
	Message string `json:"message"`
}

// The values of LogMessageParams.Type.
const (
	LogError   = 1
	LogWarning = 2
	LogInfo    = 3
	LogDebug   = 4
)
