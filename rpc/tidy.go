package rpc

import (
	"runtime/debug"
	"time"
)

// tidy gives memory back to the system after large messages. The collector
// would keep what a body of 32 MiB took, several times over, for the next one,
// and an idle sidecar does not collect for minutes.
type tidy struct{ timer *time.Timer }

const (
	// largeMessage is the size from which on a message is worth a collection.
	largeMessage = 1 << 20
	// tidyPause keeps several large messages from a collection each.
	tidyPause = time.Second
)

func newTidy() *tidy {
	timer := time.AfterFunc(time.Hour, debug.FreeOSMemory)
	timer.Stop()
	return &tidy{timer}
}

// after notes that a message of this many bytes is no longer needed.
func (t *tidy) after(bytes int) {
	if bytes >= largeMessage {
		t.timer.Reset(tidyPause)
	}
}

func (t *tidy) stop() { t.timer.Stop() }
