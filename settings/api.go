package settings

import "github.com/sandbox-sidecar/sandbox-sidecar/settings/document"

// Types of document that appear in this package's API.
type (
	// Sandbox is the "terminal.sandbox" block of a settings file.
	Sandbox = document.Sandbox
	// Kind is a kind of session.
	Kind = document.Kind
	// Diagnostic says what is wrong in a settings file, or has no effect.
	Diagnostic = document.Diagnostic
	// FileDiagnostic is a diagnostic with its file.
	FileDiagnostic = document.FileDiagnostic
	// Severity ranks a diagnostic.
	Severity = document.Severity
)

const (
	// KindTerminal is a terminal that the user types into.
	KindTerminal = document.KindTerminal
	// KindTool is a command that the agent runs.
	KindTool = document.KindTool

	// SeverityError: the setting does not count.
	SeverityError = document.SeverityError
	// SeverityWarning: the setting counts, but probably not as meant.
	SeverityWarning = document.SeverityWarning
	// SeverityInfo is worth knowing.
	SeverityInfo = document.SeverityInfo
)

// Defaults are the settings that hold if no file says otherwise.
func Defaults() Sandbox { return document.Defaults() }

// OnlyWhole reports whether a key has no place in the block for one kind of
// session.
func OnlyWhole(key string) bool { return document.OnlyWhole(key) }
