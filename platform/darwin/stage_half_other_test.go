//go:build unix && !darwin

package darwin

import "github.com/sandbox-sidecar/sandbox-sidecar/platform"

// stageHalf refuses: there is no Seatbelt here.
var stageHalf = platform.RefuseToConfine
