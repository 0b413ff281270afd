package spawn

// runtimeVariables name the session's private directory. Programs of macOS make
// their sockets where TMPDIR says; in the directory that all programs of the
// user share, a session could connect to those of others.
var runtimeVariables = []string{"TMPDIR", "XDG_RUNTIME_DIR"}
