//go:build unix && !darwin

package darwin

import "github.com/sandbox-sidecar/sandbox-sidecar/platform"

// stageHalf fails: there is no Seatbelt on this system.
var stageHalf = platform.RefuseToConfine
