package lifecycle

// roles are none: macOS has no subreapers.
var roles = map[string]func() int{}
