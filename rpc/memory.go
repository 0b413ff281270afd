package rpc

import (
	"runtime/debug"
	"time"
)

// memoryRelease gives memory back to the system after large messages. The collector
// would keep what a body of 32 MiB took, several times over, for the next one,
// and an idle sidecar does not collect for minutes.
type memoryRelease struct{ timer *time.Timer }

const (
	// largeMessage is the size from which on a message is worth a collection.
	largeMessage = 1 << 20
	// releaseDelay keeps several large messages from a collection each.
	releaseDelay = time.Second
)

func newMemoryRelease() *memoryRelease {
	timer := time.AfterFunc(time.Hour, debug.FreeOSMemory)
	timer.Stop()
	return &memoryRelease{timer}
}

// after notes that a message of this many bytes is no longer needed.
func (t *memoryRelease) after(bytes int) {
	if bytes >= largeMessage {
		t.timer.Reset(releaseDelay)
	}
}

func (t *memoryRelease) stop() { t.timer.Stop() }
