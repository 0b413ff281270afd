package roles

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/darwin"

var hidden = map[string]func() int{"stage": darwin.RunStage}
