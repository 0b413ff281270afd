package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Tracker makes groups by the best mechanism of this machine.
type Tracker struct {
	recovery    recovery
	temporaries temporaries
	lingerers
}

// Open first sweeps what dead sidecars of this user have left. It never fails:
// the mechanism of last resort needs nothing.
func Open(options Options) *Tracker {
	if options.StateDir != "" {
		if err := Sweep(context.Background(), options.StateDir); err != nil {
			options.logger().Warn("cannot end everything that dead sidecars have left", "error", err)
		}
	}
	return &Tracker{recovery: recovery{options: options}}
}

// Tracking describes the mechanism of groups before anything is known about
// their sandbox.
func (t *Tracker) Tracking() Tracking {
	return Tracking{
		Mechanism: MechanismDescent,
		Detail: "a process whose parent was born and ended between two scans is not found; " +
			"processes are found by the parents that the kernel remembers; a sandboxed session is found by " +
			"its sandbox, which is proved at its start",
		Fix: `set process_tracking to "seatbelt"; then sudo, ps and sandboxes fail in unsandboxed sessions`,
	}
}

// NewGroup makes an empty group. The name must be unique among the tracker's
// groups and be a valid file name.
func (t *Tracker) NewGroup(string) (Group, error) {
	if err := t.recovery.open(); err != nil {
		return nil, err
	}
	share := t.recovery.share()
	group, err := t.marked(share)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make group of processes: %w", err), share.giveBack())
	}
	return group, nil
}

func (t *Tracker) marked(share *groupState) (*markedGroup, error) {
	id := uuid.NewString()
	dir := ""
	if t.recovery.options.StateDir != "" {
		var err error
		if dir, err = share.MakeDir(); err != nil {
			dir = "" // marked by names alone
		}
	}
	fingerprint, err := NewSessionFingerprint(id, dir)
	if err != nil {
		return nil, err
	}
	if err := share.note(journal.NewRecord(kindFingerprint, id, fingerprintData{Dir: dir})); err != nil {
		return nil, err
	}
	if err := makeMark(fingerprint); err != nil {
		return nil, err
	}
	boot, err := proc.BootID()
	if err != nil {
		return nil, err
	}
	ancestry := newAncestry(identify)
	ancestry.note = func(ids []uint64) error {
		for _, member := range ids {
			part := strconv.FormatUint(member, 10)
			if err := share.note(journal.NewPart(kindFingerprint, id, part, fingerprintData{Boot: boot})); err != nil {
				return err
			}
		}
		return nil
	}
	ancestry.lost = func(ids []uint64) error {
		for _, member := range ids {
			if err := share.note(journal.EndedPart(kindFingerprint, id, strconv.FormatUint(member, 10))); err != nil {
				return err
			}
		}
		return nil
	}
	if err := watchForks(ancestry, t.recovery.options.logger()); err != nil {
		return nil, err
	}
	return &markedGroup{
		sessionGroup: sessionGroup{groupState: share, tracking: t.Tracking()},
		fingerprint:  fingerprint, carries: carriesFingerprint, table: proc.OwnProcesses, ancestry: ancestry,
	}, nil
}

// Close releases what the tracker has in the file system.
func (t *Tracker) Close() error {
	if err := t.lingerers.stop(); err != nil {
		return err // the journal stays, for the next sweep
	}
	return errors.Join(t.temporaries.giveBack(), t.recovery.close())
}
