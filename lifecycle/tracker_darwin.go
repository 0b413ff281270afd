package lifecycle

import "context"

// Tracker makes groups by the best mechanism this machine has.
type Tracker struct {
	estate estate
	lingerers
}

// Open finds the best mechanism by trying it, and sweeps up what dead sidecars of this user have left. It never fails: the mechanism of
// last resort needs nothing.
func Open(options Options) *Tracker {
	if options.StateDir != "" {
		if err := Sweep(context.Background(), options.StateDir); err != nil {
			options.logger().Warn("sweep of what dead sidecars left", "error", err)
		}
	}
	return &Tracker{estate: estate{options: options}}
}

// Tracking describes the mechanism that groups get.
func (t *Tracker) Tracking() Tracking {
	return Tracking{
		Mechanism: MechanismProcessGroup,
		Detail:    "a process that starts a session of its own (setsid, daemons) is not found again",
	}
}

// NewGroup makes an empty group. The name must be unique among the tracker's groups and fit for a file name.
func (t *Tracker) NewGroup(string) (Group, error) {
	if err := t.estate.open(); err != nil {
		return nil, err
	}
	return &sessionGroup{belongings: &belongings{estate: &t.estate}, tracking: t.Tracking()}, nil
}

// Close gives back what the tracker holds in the file system.
func (t *Tracker) Close() error {
	t.lingerers.stop()
	return t.estate.close()
}
