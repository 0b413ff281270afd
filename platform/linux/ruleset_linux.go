package linux

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"

// ruleset is a stage's ruleset while the sidecar plans it.
type ruleset struct{ stage.Ruleset }
