package lifecycle

// roles are none: there are no subreapers here.
var roles = map[string]func() int{}
