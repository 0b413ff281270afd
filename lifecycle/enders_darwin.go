package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/session"
)

// enders end what journals list, in this order. The directories come last, when
// nobody uses them any more.
var enders = []journal.Ender{
	unlessRestarted(refuse("cgroup")), unlessRestarted(refuse("subreaper")), fingerprintEnder, session.Ender,
	directoryEnder, temporaryEnder,
}

// unlessRestarted is an ender that has nothing to do after a restart of the
// machine.
func unlessRestarted(ender journal.Ender) journal.Ender {
	end := ender.End
	ender.End = func(ctx context.Context, records []journal.Record, where journal.Place) (int, error) {
		if where.OtherBoot {
			return 0, nil
		}
		return end(ctx, records, where)
	}
	return ender
}

// fingerprintEnder ends the sessions of a dead sidecar that have fingerprints.
var fingerprintEnder = journal.Ender{Kind: kindFingerprint, End: endFingerprints}

func endFingerprints(ctx context.Context, records []journal.Record, where journal.Place) (int, error) {
	found, senseless := gatherMarked(records)
	var failures []error
	if senseless > 0 && !where.OtherBoot {
		failures = append(failures,
			fmt.Errorf("read fingerprints in journal, perhaps of another version: %d", senseless))
	}
	for _, m := range found {
		failures = append(failures, endMarked(ctx, m))
	}
	return senseless, errors.Join(failures...)
}

// endMarked kills the processes that carry a dead sidecar's fingerprint, and the
// descendants of those that it knew.
func endMarked(ctx context.Context, m marked) error {
	group := markedGroup{fingerprint: m.fingerprint, carries: carriesFingerprint, table: proc.OwnProcesses}
	boot, err := proc.BootID()
	if err == nil && boot == m.boot { // otherwise the ids belong to other processes
		group.ancestry = newAncestry(identify, m.relatives...)
	}
	if _, err := group.killLoop(0).Run(ctx); err != nil {
		return fmt.Errorf("end session %s: %w", m.fingerprint.ID, err)
	}
	return nil
}
