//go:build !darwin

package managed

// Dir is where the organisation's settings are.
const Dir = "/etc/sandbox-sidecar"
