package protocol

import "encoding/json"

// RawJSON is a JSON value of any shape.
type RawJSON = json.RawMessage

// SettingsGet returns the merged settings of a project.
var SettingsGet = Request[SettingsGetParams, SettingsGetResult]{"settings/get", ToSidecar}

// PolicyGet returns the policy that a session would get now.
var PolicyGet = Request[PolicyGetParams, PolicyGetResult]{"policy/get", ToSidecar}

// SettingsDiagnostics says what is wrong in a settings file. Each list replaces
// the previous one of the same file.
var SettingsDiagnostics = Notification[DiagnosticsParams]{"settings/diagnostics", ToEditor}

// SettingsChanged reports that settings files changed, and which sessions now
// run under an older policy.
var SettingsChanged = Notification[SettingsChangedParams]{"settings/changed", ToEditor}

// SettingsGetParams names a project.
type SettingsGetParams struct {
	// ProjectDir is absolute. Without it, only the user's layers count.
	ProjectDir string `json:"projectDir,omitempty"`
	// Kind selects the defaults. It is "terminal" by default.
	Kind Kind `json:"kind,omitempty"`
}

// SettingsGetResult is the merged settings, with the origin of each key.
type SettingsGetResult struct {
	// Settings is the merged "terminal.sandbox" block.
	Settings RawJSON `json:"settings"`
	// Origins maps each key, such as "system_paths.executable" or
	// "tool.allow_network", to the file that sets it.
	Origins map[string]string `json:"origins"`
	// Diagnostics are those of every file that counts.
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
	// Warnings name each key that somebody wrote and that this machine does not
	// enforce, and say why. It was just tried.
	Warnings []string `json:"warnings"`
}

// Policy is what a session may do. Every path in it is real.
type Policy struct {
	// Restricted is false if the settings do not sandbox this kind of session.
	// The other fields then have no effect.
	Restricted bool         `json:"restricted"`
	Project    string       `json:"project"`
	Rules      []PolicyRule `json:"rules"`
	// PrivateRuntimeDir: the session gets an XDG_RUNTIME_DIR of its own.
	PrivateRuntimeDir bool `json:"privateRuntimeDir"`
	// PrivateTerminals: the session gets a /dev/pts of its own.
	PrivateTerminals bool `json:"privateTerminals"`
	// TemporaryDirs are directories of temporary files that the project has for
	// itself, if the machine has namespaces.
	TemporaryDirs []string `json:"temporaryDirs"`
	// HiddenPaths are paths within the rules that the session does not see, if
	// the machine has namespaces.
	HiddenPaths []string `json:"hiddenPaths"`
	// PrivateCaches are caches of toolchains: only the user's sandboxed sessions
	// see what sessions write there, if the machine has overlays.
	PrivateCaches []string `json:"privateCaches"`
	AllowNetwork  bool     `json:"allowNetwork"`
	// AllowedHosts can be reached while allowNetwork is false, except
	// deniedHosts.
	AllowedHosts []string `json:"allowedHosts"`
	// DeniedHosts are exceptions from allowedHosts.
	DeniedHosts []string `json:"deniedHosts"`
	UnixSockets []string `json:"unixSockets"`
	// SigningKeys are the keys of agents that sessions may use, as signing_keys
	// has them, where they have a part of an agent.
	SigningKeys    []string `json:"signingKeys"`
	AllowedEnvVars []string `json:"allowedEnvVars"`
	ProtectedPaths []string `json:"protectedPaths"`
	// RequireProtected: no session starts if changes of protectedPaths cannot be
	// prevented.
	RequireProtected bool             `json:"requireProtected"`
	OnUnavailable    string           `json:"onUnavailable"`
	OnDenied         string           `json:"onDenied"`
	Diagnostics      []FileDiagnostic `json:"diagnostics"`
	// Origins say where each switch, variable, socket and protected path comes
	// from. The rules have their own origins.
	Origins []PolicyOrigin `json:"origins"`
}

// PolicyOrigin says where one value of a policy comes from.
type PolicyOrigin struct {
	// Key is the settings key.
	Key string `json:"key"`
	// Value is the entry of a list, or the key's value as JSON.
	Value string `json:"value"`
	// File is the settings file that sets it, or "built-in defaults".
	File string `json:"file"`
	// Line is 1-based; absent if the origin is not a file.
	Line int `json:"line,omitempty"`
	// Written is the key as it stands in the file, if that is another, such as
	// "tool.allow_network".
	Written string `json:"written,omitempty"`
	// Entry is the toolchain that needs it, or the mode that sets it.
	Entry string `json:"entry,omitempty"`
	// Reason says what it is for, if the user has not written it.
	Reason string `json:"reason,omitempty"`
}

// PolicyRule grants or protects a path.
type PolicyRule struct {
	// Path is empty in an explanation if the rule is not about a path.
	Path string `json:"path"`
	// Access holds "read", "write", "execute", "device".
	Access []string `json:"access"`
	// Guarded is the part of access that is granted only if the machine can
	// prevent changes of protectedPaths; absent if there is none.
	Guarded []string `json:"guarded,omitempty"`
	// Setting is the key that grants it.
	Setting string `json:"setting"`
	// File is the settings file with that key.
	File string `json:"file"`
	// Line is 1-based; absent if the origin is not a file.
	Line int `json:"line,omitempty"`
	// Written is the key as it stands in the file, if that is another, such as
	// "tool.additional_read_only_paths".
	Written string `json:"written,omitempty"`
	// Entry is the toolchain that needs it, or the mode that sets it.
	Entry string `json:"entry,omitempty"`
	// Reason says what is at the path, if the user has not written it.
	Reason string `json:"reason,omitempty"`
}

// Access is a kind of operation.
type Access string

const (
	// AccessRead opens a file for reading, or lists a directory.
	AccessRead Access = "read"
	// AccessWrite opens a file for writing, creates it, or changes the entries of
	// a directory.
	AccessWrite Access = "write"
	// AccessExecute runs a program.
	AccessExecute Access = "execute"
	// AccessConnectUnix connects to the Unix socket of a process outside the
	// session.
	AccessConnectUnix Access = "connect_unix"
	// AccessConnect connects to a network address.
	AccessConnect Access = "connect"
	// AccessBind waits for connections at an address of this machine.
	AccessBind Access = "bind"
	// AccessSign uses a key of an ssh-agent or a gpg-agent, to sign or to log in.
	AccessSign Access = "sign"
)

// PolicyExplain returns whether a session that starts now could do something,
// by which rule, and which setting would change that. It is about the sandbox:
// the file's permissions may still refuse what the sandbox allows.
var PolicyExplain = Request[PolicyExplainParams, PolicyExplainResult]{"policy/explain", ToSidecar}

// SettingsAllow adds an entry to a list of the settings, because the user chose
// to allow what was refused. It keeps the file's comments and lines. An editor
// may send it only for such a choice.
var SettingsAllow = Request[SettingsAllowParams, SettingsAllowResult]{"settings/allow", ToSidecar}

// SettingsAllowParams are an entry and the file for it.
type SettingsAllowParams struct {
	// ProjectDir is absolute.
	ProjectDir string `json:"projectDir"`
	// Scope is "user", or "project" for the project's own file. That file is
	// trusted afterwards, so what is in it must be trusted already. With "window"
	// nothing is written: new sessions of the project get the entry until the
	// sidecar ends. settings/changed then names the sessions without it.
	Scope Decision `json:"scope"`
	// Suggestion is that of a denial. Only additional paths, hosts and toolchains
	// can be added; the user has to write everything else.
	Suggestion Suggestion `json:"suggestion"`
}

// SettingsAllowResult says where the entry is.
type SettingsAllowResult struct {
	// File is the path of the file; empty if none was written.
	File string `json:"file"`
}

// PolicyExplainParams name an access.
type PolicyExplainParams struct {
	// ProjectDir is absolute.
	ProjectDir string `json:"projectDir"`
	// Kind is "terminal" by default.
	Kind Kind `json:"kind,omitempty"`
	// Access is the kind of operation.
	Access Access `json:"access"`
	// Target is a path that is absolute or starts with "~/". For connect_unix it
	// may be "abstract:" and a name. For connect and bind it is an address. For
	// sign it is the fingerprint or the keygrip of a key.
	Target string `json:"target"`
}

// PolicyExplainResult says whether the operation is allowed, and why.
type PolicyExplainResult struct {
	// Allowed is true if the policy allows it.
	Allowed bool `json:"allowed"`
	// Target is the real target, with every symlink followed.
	Target string `json:"target"`
	// Reason is one sentence, to be shown as plain text.
	Reason string `json:"reason"`
	// Message is the answer with its reason in one line, to be shown as plain
	// text.
	Message string `json:"message"`
	// Rule is the rule that decides; absent if it is refused because no rule
	// grants it.
	Rule *PolicyRule `json:"rule,omitempty"`
	// Setting is the key that allows it, or that would; absent if none would.
	Setting string `json:"setting,omitempty"`
	// Value is what would allow it, if it is refused: an entry for the list, or
	// the key's whole value as JSON.
	Value string `json:"value,omitempty"`
	// Instruction says in one line what to write where, if it is refused and a
	// setting would allow it. Show it as plain text.
	Instruction string `json:"instruction,omitempty"`
	// Hint says what to do or to be careful about, to be shown as plain text.
	Hint string `json:"hint,omitempty"`
	// Careful: the setting would open keys, passwords or what programs outside act
	// on, or give up a protection. Show it only to somebody who asked for just
	// that, and to no model.
	Careful bool `json:"careful,omitempty"`
}

// Severity of a diagnostic.
type Severity string

const (
	// SeverityError: the setting has no effect.
	SeverityError Severity = "error"
	// SeverityWarning: the setting has an effect, but probably not the intended
	// one.
	SeverityWarning Severity = "warning"
	// SeverityInfo: there is something to know about the setting.
	SeverityInfo Severity = "info"
)

// Diagnostic says what is wrong in a settings file, or has no effect.
type Diagnostic struct {
	// Line is 1-based.
	Line int `json:"line"`
	// Column is 1-based, in bytes.
	Column   int      `json:"column"`
	Severity Severity `json:"severity"`
	// Key is the settings key, if there is one.
	Key string `json:"key,omitempty"`
	// Message is one line, to be shown as plain text.
	Message string `json:"message"`
	// ProjectDir is the only project that the diagnostic is about; absent if it
	// is about every project.
	ProjectDir string `json:"projectDir,omitempty"`
}

// FileDiagnostic is a diagnostic with its file.
type FileDiagnostic struct {
	File string `json:"file"`
	Diagnostic
}

// DiagnosticsParams are all diagnostics of one file.
type DiagnosticsParams struct {
	File        string       `json:"file"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// SettingsChangedParams are the effects of a change of settings.
type SettingsChangedParams struct {
	Files         []string         `json:"files"`
	Diagnostics   []FileDiagnostic `json:"diagnostics"`
	StaleSessions []StaleSession   `json:"staleSessions"`
	// Projects are the open projects that have a settings file.
	Projects []Project `json:"projects"`
}

// StaleSession is a session under another policy than a new session would get.
type StaleSession struct {
	SessionID       string `json:"sessionId"`
	PolicyID        string `json:"policyId"`
	CurrentPolicyID string `json:"currentPolicyId"`
}
