package protocol

import "encoding/json"

// RawJSON is a JSON value of any shape.
type RawJSON = json.RawMessage

// SettingsGet answers the merged settings of a project.
var SettingsGet = Request[SettingsGetParams, SettingsGetResult]{"settings/get", ToSidecar}

// PolicyGet answers the policy that a session would get now.
var PolicyGet = Request[PolicyGetParams, PolicyGetResult]{"policy/get", ToSidecar}

// SettingsDiagnostics tells what is wrong in a settings file. An empty list
// clears what was told before.
var SettingsDiagnostics = Notification[DiagnosticsParams]{"settings/diagnostics", ToEditor}

// SettingsChanged tells that settings files changed and which sessions now run
// under an older policy.
var SettingsChanged = Notification[SettingsChangedParams]{"settings/changed", ToEditor}

// SettingsGetParams names a project.
type SettingsGetParams struct {
	// ProjectDir is absolute; without it only the user's layers count.
	ProjectDir string `json:"projectDir,omitempty"`
	// Kind picks the defaults that depend on it. "terminal" by default.
	Kind Kind `json:"kind,omitempty"`
}

// SettingsGetResult is the merged block with where each key comes from.
type SettingsGetResult struct {
	// Settings is the merged "terminal.sandbox" block.
	Settings RawJSON `json:"settings"`
	// Origins maps each key, such as "system_paths.executable", to the file it
	// came from.
	Origins map[string]string `json:"origins"`
	// Diagnostics of every file that counts.
	Diagnostics []FileDiagnostic `json:"diagnostics"`
}

// PolicyGetParams names a project and a kind.
type PolicyGetParams struct {
	// ProjectDir is absolute.
	ProjectDir string `json:"projectDir"`
	// Kind is "terminal" by default.
	Kind Kind `json:"kind,omitempty"`
}

// PolicyGetResult is a compiled policy.
type PolicyGetResult struct {
	PolicyID string `json:"policyId"`
	Policy   Policy `json:"policy"`
}

// Policy is what a session may do, every path resolved.
type Policy struct {
	// Restricted is false where the settings do not sandbox this kind; the
	// other fields then only say what would hold.
	Restricted bool         `json:"restricted"`
	Project    string       `json:"project"`
	Rules      []PolicyRule `json:"rules"`
	// PrivateRuntimeDir: the session gets an XDG_RUNTIME_DIR of its own.
	PrivateRuntimeDir bool `json:"privateRuntimeDir"`
	// PrivateTerminals: the session gets a /dev/pts of its own.
	PrivateTerminals bool     `json:"privateTerminals"`
	AllowNetwork     bool     `json:"allowNetwork"`
	UnixSockets      []string `json:"unixSockets"`
	AllowedEnvVars   []string `json:"allowedEnvVars"`
	ProtectedPaths   []string `json:"protectedPaths"`
	// RequireProtected: nothing is started where protectedPaths cannot be kept
	// as they are.
	RequireProtected bool             `json:"requireProtected"`
	OnUnavailable    string           `json:"onUnavailable"`
	OnDenied         string           `json:"onDenied"`
	Diagnostics      []FileDiagnostic `json:"diagnostics"`
	// Origins say for everything but the rules, which carry their own, where it
	// comes from: each switch, variable, socket and protected path.
	Origins []PolicyOrigin `json:"origins"`
}

// PolicyOrigin says where one value of a policy comes from.
type PolicyOrigin struct {
	// Key is the settings key.
	Key string `json:"key"`
	// Value is the entry of a list, or the key's value as JSON.
	Value string `json:"value"`
	// File is where it stands.
	File string `json:"file"`
	// Line is 1-based; absent where the origin is not a file.
	Line int `json:"line,omitempty"`
	// Entry is the toolchain that asks for it.
	Entry string `json:"entry,omitempty"`
	// Reason says what it is for, where the user has not written it.
	Reason string `json:"reason,omitempty"`
}

// PolicyRule grants or protects a path.
type PolicyRule struct {
	// Path is empty in an explanation where the rule is not about a path.
	Path string `json:"path"`
	// Access holds "read", "write", "execute", "device".
	Access []string `json:"access"`
	// Guarded is the part of access that holds only where the machine can keep
	// protectedPaths as they are; absent where there is none.
	Guarded []string `json:"guarded,omitempty"`
	// Setting is the key that grants it.
	Setting string `json:"setting"`
	// File is where that key stands.
	File string `json:"file"`
	// Line is 1-based; absent where the origin is not a file.
	Line int `json:"line,omitempty"`
	// Entry is the toolchain that asks for it.
	Entry string `json:"entry,omitempty"`
	// Reason says what is there, where the user has not written it.
	Reason string `json:"reason,omitempty"`
}

// Access is something a session may try.
type Access string

const (
	// AccessRead opens a file for reading, or lists a directory.
	AccessRead Access = "read"
	// AccessWrite opens a file for writing, creates it, or changes what a
	// directory holds.
	AccessWrite Access = "write"
	// AccessExecute runs a program.
	AccessExecute Access = "execute"
	// AccessConnectUnix connects to the Unix socket of a process outside of the
	// session.
	AccessConnectUnix Access = "connect_unix"
	// AccessConnect connects to an address in the network.
	AccessConnect Access = "connect"
	// AccessBind waits for connections at an address of this machine.
	AccessBind Access = "bind"
)

// PolicyExplain answers whether a session that starts now could do something,
// by which rule, and which setting would change that. The answer is the
// sandbox's: the permissions of a file may refuse what it allows.
var PolicyExplain = Request[PolicyExplainParams, PolicyExplainResult]{"policy/explain", ToSidecar}

// PolicyExplainParams name an access.
type PolicyExplainParams struct {
	// ProjectDir is absolute.
	ProjectDir string `json:"projectDir"`
	// Kind is "terminal" by default.
	Kind Kind `json:"kind,omitempty"`
	// Access is what is tried.
	Access Access `json:"access"`
	// Target is an absolute path, or one that starts with ~/; for connect_unix
	// also a name after "abstract:"; for connect and bind an address.
	Target string `json:"target"`
}

// PolicyExplainResult says whether, and why.
type PolicyExplainResult struct {
	// Allowed is what the policy says.
	Allowed bool `json:"allowed"`
	// Target is what the target really is, every symlink followed.
	Target string `json:"target"`
	// Reason is one sentence, fit to be shown as it is.
	Reason string `json:"reason"`
	// Message is the answer with its reason in one line that is fit to be shown
	// as it is, as plain text.
	Message string `json:"message"`
	// Rule is what decides; absent where it is that no rule grants it.
	Rule *PolicyRule `json:"rule,omitempty"`
	// Setting is the key that allows it, or that would; absent where none
	// would.
	Setting string `json:"setting,omitempty"`
	// Value would allow it, where it is not: an entry for the list, or the
	// key's whole value as JSON.
	Value string `json:"value,omitempty"`
	// Hint says what to do or to look out for, fit to be shown as it is.
	Hint string `json:"hint,omitempty"`
}

// Severity of a diagnostic.
type Severity string

const (
	// SeverityError: the setting does not count.
	SeverityError Severity = "error"
	// SeverityWarning: it counts, but probably not as meant.
	SeverityWarning Severity = "warning"
	// SeverityInfo is worth knowing.
	SeverityInfo Severity = "info"
)

// Diagnostic is one remark about a settings file.
type Diagnostic struct {
	// Line is 1-based.
	Line int `json:"line"`
	// Column is 1-based, in bytes.
	Column   int      `json:"column"`
	Severity Severity `json:"severity"`
	// Key is the settings key, where there is one.
	Key string `json:"key,omitempty"`
	// Message is one line that is fit to be shown as it is, as plain text.
	Message string `json:"message"`
	// ProjectDir is the only project that the remark holds for; absent where it
	// holds for every one.
	ProjectDir string `json:"projectDir,omitempty"`
}

// FileDiagnostic is a diagnostic with its file.
type FileDiagnostic struct {
	File string `json:"file"`
	Diagnostic
}

// DiagnosticsParams holds everything there is to say about one file.
type DiagnosticsParams struct {
	File        string       `json:"file"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// SettingsChangedParams tells what a change of settings means.
type SettingsChangedParams struct {
	Files         []string         `json:"files"`
	Diagnostics   []FileDiagnostic `json:"diagnostics"`
	StaleSessions []StaleSession   `json:"staleSessions"`
	// Projects are the open projects that have a settings file, with what each
	// asks for and whether it is trusted now.
	Projects []Project `json:"projects"`
}

// StaleSession runs under another policy than a new session would.
type StaleSession struct {
	SessionID       string `json:"sessionId"`
	PolicyID        string `json:"policyId"`
	CurrentPolicyID string `json:"currentPolicyId"`
}
