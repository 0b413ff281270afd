package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/cgroup"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/subreaper"
)

// Tracker makes groups by the best mechanism of this machine.
type Tracker struct {
	tree             *cgroup.Tree       // nil if no cgroup can be made
	reason           error              // why tree is nil
	subreapers       *subreaper.Factory // nil if there is a tree, or no subreaper can run
	subreaperProblem error              // why subreapers is nil
	recovery         recovery
	temporaries      temporaries
	lingerers

	background sync.WaitGroup // the sweep
	stop       context.CancelFunc
}

// Open finds the best mechanism by trying it, and starts to sweep what dead
// sidecars of this user have left. It never fails: the mechanism of last resort
// needs nothing. With Options.Env it may move this process into a scope of the
// user's systemd, for good. It waits at most two seconds for that.
func Open(options Options) *Tracker {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Tracker{recovery: recovery{options: options}, stop: cancel}
	alone := options.Alone && proc.Alone()
	if t.tree, t.reason = cgroup.Open(options.Env, t.recovery.write); t.tree == nil {
		t.subreapers, t.subreaperProblem = subreaper.Open(options.Subreaper, options.logger())
	}
	if options.Adopt || alone && t.subreapers != nil {
		if done, err := proc.Adopt(ctx); err != nil {
			options.logger().Warn("orphans of sessions cannot be adopted: some may outlive their session", "error", err)
		} else {
			t.background.Go(done)
			if t.subreapers != nil {
				t.subreapers.Adopts = alone
			}
		}
	}
	if options.Adopt || options.Alone {
		t.background.Go(func() { proc.ReapForeign(ctx) })
	}
	if options.StateDir != "" {
		t.background.Go(func() { sweepTwice(ctx, options) })
	}
	if tree := t.tree; tree != nil && options.Alone {
		t.background.Go(func() { tree.SweepEmpty(ctx) })
	}
	return t
}

// secondSweep is the pause before the second sweep.
const secondSweep = 2 * time.Second

// sweepTwice sweeps at once, and again after a pause. A dead sidecar's journal
// may still be locked at the first sweep: by a child that it was starting,
// until that execs, or by a watchdog, which may be killed.
func sweepTwice(ctx context.Context, options Options) {
	for again := range 2 {
		if again == 1 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(secondSweep):
			}
		}
		if err := Sweep(ctx, options.StateDir); err != nil && ctx.Err() == nil {
			options.logger().Warn("cannot end everything that dead sidecars have left", "error", err)
		}
	}
}

// Tracking describes the mechanism that groups get.
func (t *Tracker) Tracking() Tracking {
	if t.tree != nil {
		return Tracking{
			Mechanism: MechanismCgroup, Guarantee: true, Detail: t.tree.Detail(), Limits: limited(t.tree.Limited()),
		}
	}
	fix := fixCgroup(systemdRuns())
	if _, tried := errors.AsType[*cgroup.ScopeError](t.reason); tried {
		fix = fmt.Sprintf(
			"start a systemd user session (log in normally, or: loginctl enable-linger %d); set XDG_RUNTIME_DIR",
			os.Geteuid())
	}
	none := Limited{Why: "no cgroup can be made", Fix: fixLimits()}
	if t.subreapers != nil {
		return Tracking{
			Mechanism: MechanismSubreaper,
			Detail: "a process can escape if it is not sandboxed, if sudo started it, or on a kernel before 6.12; a " +
				"subreaper adopts and kills the orphans of the session, because no cgroup can be made: " +
				fmt.Sprint(t.reason),
			Fix:                fix,
			CanUseSignalDomain: t.subreapers.DomainProblem == nil,
			Limits:             none,
		}
	}
	return Tracking{
		Mechanism: MechanismProcessGroup,
		Detail: "a process that starts a session of its own, such as a daemon, is not found; no cgroup can be made: " +
			fmt.Sprintf("%v; no subreaper runs: %v", t.reason, t.subreaperProblem),
		Fix: fix, Limits: none,
	}
}

// NewGroup makes an empty group. The name must be unique among the tracker's
// groups and be a valid file name.
func (t *Tracker) NewGroup(name string) (Group, error) {
	if err := t.recovery.open(); err != nil {
		return nil, err
	}
	if t.subreapers != nil {
		share := t.recovery.share()
		return &subreapedGroup{t.subreapers.NewGroup(share.note), share, t.Tracking()}, nil
	}
	if t.tree == nil {
		return &sessionGroup{groupState: t.recovery.share(), tracking: t.Tracking()}, nil
	}
	group, err := t.tree.NewGroup(name)
	if err != nil {
		t.recovery.release()
		return nil, err
	}
	return &containedGroup{group, t.recovery.share(), t.Tracking()}, nil
}

// Close kills what is left in any group and releases what the tracker has in
// the kernel and the file system.
func (t *Tracker) Close() error {
	if t.stop != nil { // a tracker that Open did not make has nothing in the background
		t.stop()
	}
	// The sweep ends with its context, unless a file system does not answer.
	hangs := finishes(fileEnd, func() error {
		t.background.Wait()
		return nil
	})
	err := t.lingerers.stop()
	switch { // these two try once more
	case t.tree != nil:
		err = t.tree.Close()
	case t.subreapers != nil:
		err = t.subreapers.Close()
	}
	if err != nil {
		return err // the journal stays, for the next sweep
	}
	if t.tree != nil {
		defer t.tree.StepBack() // once the watchdog has ended, which is there, too
	}
	if t.tree != nil || t.subreapers != nil { // every process has ended
		err = t.recovery.giveBack()
	}
	return errors.Join(hangs, err, t.temporaries.giveBack(), t.recovery.close())
}
