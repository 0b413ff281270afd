package lifecycle

import (
	"context"
	"fmt"
)

// endMarked refuses: nothing carries fingerprints here.
func endMarked(_ context.Context, m marked) error {
	return fmt.Errorf("end session %s: this system has no fingerprints", m.fingerprint.ID)
}
