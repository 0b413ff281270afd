package spawn

// runtimeVariables name the session's private directory.
var runtimeVariables = []string{"XDG_RUNTIME_DIR"}
