package managed

// Dir is where the organisation's settings are.
const Dir = "/Library/Application Support/sandbox-sidecar"
