package spawn

// runtimeVariables name the session's private directory. macOS programs create
// their sockets in TMPDIR. In the directory that all programs of the user
// share, a session could connect to the sockets of others.
var runtimeVariables = []string{"TMPDIR", "XDG_RUNTIME_DIR"}
