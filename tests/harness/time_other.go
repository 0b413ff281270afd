//go:build !linux

package harness

import "time"

var started = time.Now()

// threadTime is the time since the start: no other is portable.
func threadTime() time.Duration { return time.Since(started) }
