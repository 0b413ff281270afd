package settings

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

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
	// Mode is a shorthand for several keys.
	Mode = document.Mode
	// ApplyTo says which kinds of session are restricted.
	ApplyTo = document.ApplyTo
)

const (
	// KindTerminal is a terminal that the user types into.
	KindTerminal = document.KindTerminal
	// KindTool is a command that the agent runs.
	KindTool = document.KindTool

	// ModeStandard sandboxes as the defaults of the other keys say.
	ModeStandard = document.ModeStandard
	// ModeStrict is the strictest.
	ModeStrict = document.ModeStrict
	// ModeOff sandboxes nothing.
	ModeOff = document.ModeOff

	// ApplyToBoth restricts tools and terminals.
	ApplyToBoth = document.ApplyToBoth
	// ApplyToTool restricts the agent's tools.
	ApplyToTool = document.ApplyToTool
	// ApplyToTerminal restricts the user's own terminals.
	ApplyToTerminal = document.ApplyToTerminal

	// SeverityError: the setting does not count.
	SeverityError = document.SeverityError
	// SeverityWarning: the setting counts, but probably not as meant.
	SeverityWarning = document.SeverityWarning
	// SeverityInfo is worth knowing.
	SeverityInfo = document.SeverityInfo
)

// Platform is the one that this program was built for.
const Platform = source.Platform

// Defaults are the settings that hold if no file says otherwise.
func Defaults() Sandbox { return document.Defaults() }

// ByOrganisation reports whether a settings file is one of whoever administers
// the machine.
func ByOrganisation(file string) bool { return managed.Holds(file) }

// OnlyWhole reports whether a key has no place in the block for one kind of
// session.
func OnlyWhole(key string) bool { return document.OnlyWhole(key) }

// MemoryPattern matches amounts of memory, as a regular expression.
const MemoryPattern = document.MemoryPattern

// Range is the least and the greatest number that a key may have.
func Range(key string) (least, most int) { return document.Range(key) }

// Modes lists every mode.
func Modes() []string { return document.ModeOff.Values() }
