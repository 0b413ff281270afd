// Package explain answers why a session may do something or may not, and which
// setting would change that.
//
// It asks the evaluation that a [compile.Snapshot] keeps. Nothing here decides
// what a session may do.
package explain

// Keys of settings that answers and suggestions name.
const (
	allowedHostsKey = "allowed_hosts"
	applyToKey      = "apply_to"
	enabledKey      = "enabled"
	keysKey         = "signing_keys"
	localhostKey    = "localhost"
	networkKey      = "allow_network"
	protectedKey    = "protected_paths"
	socketsKey      = "allowed_unix_sockets"
	temporaryKey    = "temporary_files"
	toolchainsKey   = "toolchains"
)
