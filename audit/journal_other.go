//go:build unix && !linux

package audit

import "fmt"

// sendToJournal fails: there is no journal of systemd.
func sendToJournal(Event, []byte) error { return fmt.Errorf("%w: this system has none", ErrJournal) }
