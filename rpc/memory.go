package rpc

import (
	"runtime/debug"
	"time"
)

// memoryRelease gives memory back to the system after large messages. Otherwise
// the garbage collector keeps several times the size of a 32 MiB body, and an
// idle sidecar does not collect for minutes.
type memoryRelease struct{ timer *time.Timer }

const (
	// largeMessage is the size in bytes from which on a message causes a
	// collection.
	largeMessage = 1 << 20
	// releaseDelay lets several large messages share one collection.
	releaseDelay = time.Second
)

func newMemoryRelease() *memoryRelease {
	timer := time.AfterFunc(time.Hour, debug.FreeOSMemory)
	timer.Stop()
	return &memoryRelease{timer}
}

// after schedules a release if a message of this many bytes was large.
func (t *memoryRelease) after(bytes int) {
	if bytes >= largeMessage {
		t.timer.Reset(releaseDelay)
	}
}

func (t *memoryRelease) stop() { t.timer.Stop() }
