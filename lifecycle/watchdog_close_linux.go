package lifecycle

import (
	"encoding/json"
	"os"

	"golang.org/x/sys/unix"
)

// CloseInWatchdog closes a file. If a watchdog runs, the kernel's work of closing
// it is done when that ends, and nobody waits for it.
func (t *Tracker) CloseInWatchdog(file *os.File) {
	if w := t.recovery.runningWatchdog(); w != nil {
		w.closeThere(file)
		return
	}
	_ = file.Close()
}

// runningWatchdog returns the watchdog; nil before the first group.
func (e *recovery) runningWatchdog() *watchdog {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.watchdog
}

// closeThere closes a file, if a watchdog runs so that the watchdog's copy is
// the last. Nobody waits for the watchdog's end then.
func (w *watchdog) closeThere(file *os.File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil && sendToHold(w.pipe, file) == nil {
		w.holds = true
	}
	_ = file.Close()
}

// sendToHold sends a file that the watchdog holds open until it ends.
func sendToHold(socket, file *os.File) error {
	line, err := json.Marshal(watchdogOrder{Hold: true})
	if err != nil {
		return err
	}
	return sendNow(socket, append(line, '\n'), unix.UnixRights(int(file.Fd())))
}
