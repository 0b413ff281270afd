package audit

import (
	"fmt"

	"github.com/coreos/go-systemd/v22/journal"
)

// sendToJournal sends a line to the journal of systemd: as the message, which
// collectors parse as they parse the file, with fields to search by.
func sendToJournal(event Event, text []byte) error {
	fields := map[string]string{"SYSLOG_IDENTIFIER": Identifier, "SANDBOX_SIDECAR_EVENT": event.Event}
	if event.Session != "" {
		fields["SANDBOX_SIDECAR_SESSION"] = event.Session
	}
	if event.Project != "" {
		fields["SANDBOX_SIDECAR_PROJECT"] = event.Project
	}
	if err := journal.Send(string(text), journal.PriInfo, fields); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}
