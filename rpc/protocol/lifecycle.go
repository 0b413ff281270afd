package protocol

// Initialize opens the conversation. Every other request before it is refused
// with CodeNotInitialized.
var Initialize = Request[InitializeParams, InitializeResult]{"initialize", ToSidecar}

// Initialized tells that the editor has taken the answer to initialize.
var Initialized = Notification[Empty]{"initialized", ToSidecar}

// Shutdown kills every session and answers when nothing is left alive.
var Shutdown = Request[Empty, Empty]{"shutdown", ToSidecar}

// Exit ends the sidecar: status 0 after shutdown, 1 without.
var Exit = Notification[Empty]{"exit", ToSidecar}

// DidChangeWorkspaceFolders replaces part of the workspace folders.
var DidChangeWorkspaceFolders = Notification[WorkspaceFoldersChange]{"workspace/didChangeWorkspaceFolders", ToSidecar}

// LogMessage is a line for the editor's log.
var LogMessage = Notification[LogMessageParams]{"window/logMessage", ToEditor}

// InitializeParams describes the editor.
type InitializeParams struct {
	// ProcessID is the editor's process. When it is gone, the sidecar ends.
	// null: only the end of stdin counts.
	ProcessID *int `json:"processId"`
	// ClientInfo names the editor.
	ClientInfo *ClientInfo `json:"clientInfo,omitempty"`
	// WorkspaceFolders are the open projects.
	WorkspaceFolders []WorkspaceFolder `json:"workspaceFolders,omitempty"`
	// Capabilities say what the editor can do.
	Capabilities ClientCapabilities `json:"capabilities"`
	// InitializationOptions carry settings.
	InitializationOptions *InitializationOptions `json:"initializationOptions,omitempty"`
}

// ClientInfo names a program and its version.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// WorkspaceFolder is one project that is open in the editor.
type WorkspaceFolder struct {
	// Path is absolute.
	Path string `json:"path"`
	// Name is for people.
	Name string `json:"name,omitempty"`
}

// ClientCapabilities say what the editor can do.
type ClientCapabilities struct {
	// FlowControl promises terminal/ack for consumed output. Without it output
	// is never held back.
	FlowControl bool `json:"flowControl,omitempty"`
	// Approvals promises to answer sandbox/requestAccess.
	Approvals bool `json:"approvals,omitempty"`
}

// InitializationOptions carry settings that do not come from the standard
// files.
type InitializationOptions struct {
	// UserSettingsPath replaces the user's settings files with this one.
	// Absolute; empty is as absent. initialize succeeds without the file, so
	// that an editor can show settings/diagnostics and create it, but
	// terminal/spawn is refused with CodeSettingsInvalid until it can be read.
	// A file that goes away later keeps its last good content.
	UserSettingsPath string `json:"userSettingsPath,omitempty"`
	// Settings is one more layer, of the shape of a settings file, as trusted
	// as the user's own file.
	Settings RawJSON `json:"settings,omitempty"`
}

// InitializeResult describes the sidecar.
type InitializeResult struct {
	ServerInfo ClientInfo `json:"serverInfo"`
	// ProtocolVersion is Version.
	ProtocolVersion int                `json:"protocolVersion"`
	Capabilities    ServerCapabilities `json:"capabilities"`
}

// ServerCapabilities say what this sidecar can do on this machine.
type ServerCapabilities struct {
	// Platform is the operating system: "linux" or "darwin".
	Platform string `json:"platform"`
	// Kinds are the kinds of session it starts.
	Kinds []Kind `json:"kinds"`
	// Enforcement says for each protection what this machine can enforce,
	// proved by really trying it.
	Enforcement Protections `json:"enforcement"`
}

// Protections holds one entry for each protection: filesystem, execute,
// network, unix_sockets, signals, protected_paths, syscalls, process_tracking,
// denials.
type Protections map[string]Protection

// Protection says how far one protection holds.
type Protection struct {
	Status ProtectionStatus `json:"status"`
	// Mechanism names what enforces it, such as "landlock"; empty where nothing
	// does.
	Mechanism string `json:"mechanism"`
	// Detail says in words what holds and what does not.
	Detail string `json:"detail"`
	// Fix says what the user can do about it.
	Fix string `json:"fix,omitempty"`
}

// ProtectionStatus says how far a protection holds.
type ProtectionStatus string

const (
	// Enforced: the kernel refuses what the policy does not grant.
	Enforced ProtectionStatus = "enforced"
	// Degraded: part of it is refused; the detail names the rest.
	Degraded ProtectionStatus = "degraded"
	// Absent: nothing is refused.
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
