package document

import "slices"

// Defaults are the settings that hold if no file says otherwise. A key is nil
// if its default depends on the platform (system_paths), on the project
// (protected_paths) or on the kind of session (on_unavailable). The caller owns
// the result.
func Defaults() Sandbox {
	return Sandbox{
		Enabled:                   new(false),
		ApplyTo:                   new(ApplyToBoth),
		AdditionalExecutablePaths: []string{},
		AdditionalReadOnlyPaths:   []string{},
		AdditionalReadWritePaths:  []string{},
		AllowNetwork:              new(true),
		AllowedEnvVars:            slices.Clone(DefaultEnvVars),
		AllowedUnixSockets:        []string{},
		Toolchains:                []string{},
		ToolchainCaches:           new(ToolchainCachesPrivate),
		OnDenied:                  new(OnDeniedReport),
		ProcessTracking:           new(ProcessTrackingAuto),
	}
}

// DefaultEnvVars say who and where the user is. They hold no secrets.
// SSH_AUTH_SOCK is only a name: the socket needs a grant of its own.
var DefaultEnvVars = []string{
	"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TERM_PROGRAM", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "EDITOR",
	"VISUAL",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GPG_TTY", "COLORTERM",
}

// DefaultOnUnavailable is what a null on_unavailable means. Tools are refused
// because nobody watches them; a user without a terminal would be stuck.
func DefaultOnUnavailable(kind Kind) OnUnavailable {
	if kind == KindTerminal {
		return OnUnavailableWarn
	}
	return OnUnavailableRefuse
}
