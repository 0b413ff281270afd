//go:build unix && !linux

package platform

import "context"

// LaunchDirect returns ErrNeedsStage.
func LaunchDirect(context.Context, Target) (Launched, error) { return Launched{}, ErrNeedsStage }
