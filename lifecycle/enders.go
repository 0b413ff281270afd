//go:build unix

package lifecycle

import (
	"context"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// Sweep ends and removes whatever dead sidecars of this user have left in a
// state directory. It touches nothing of a living sidecar, and nothing that a
// journal names by a number which may be another process's by now. The error
// holds what could not be done and what was wrong.
func Sweep(ctx context.Context, stateDir string) error {
	if err := fsguard.Answers(stateDir); err != nil {
		return fmt.Errorf("sweep state directory: %w", err)
	}
	return journal.Sweep(ctx, stateDir, enders)
}

// refuse is the ender of a kind that only other systems have. The journal
// stays, because machines may share the state directory's file system.
func refuse(kind string) journal.Ender {
	end := func(_ context.Context, records []journal.Record, _ journal.Place) (int, error) {
		return 0, fmt.Errorf("end %s %q: this system has none", kind, records[0].Key)
	}
	return journal.Ender{Kind: kind, End: end}
}
