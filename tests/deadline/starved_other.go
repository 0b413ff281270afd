//go:build !linux

package deadline

import "time"

// delays adds nothing: no other system reports them.
func delays(int, map[int]time.Duration) {}

func ownDelays(int, map[int]time.Duration) {}
