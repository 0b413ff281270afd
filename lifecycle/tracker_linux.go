package lifecycle

import "fmt"

// Tracker makes groups by the best mechanism this machine has.
type Tracker struct {
	tree   *cgroupTree // nil where no cgroup can be made
	reason error       // why tree is nil
}

// Open finds the best mechanism by trying it. It never fails: the mechanism of last resort needs nothing.
func Open() *Tracker {
	tree, err := openCgroupTree()
	if err != nil {
		return &Tracker{reason: err}
	}
	return &Tracker{tree: tree}
}

// Tracking describes the mechanism that groups get.
func (t *Tracker) Tracking() Tracking {
	if t.tree != nil {
		return t.tree.tracking()
	}
	return Tracking{
		Mechanism: MechanismProcessGroup,
		Detail:    fmt.Sprintf("no cgroup can be made (%v): a process that starts a session of its own (setsid, daemons) is not found again", t.reason),
		Fix:       "start the editor in a cgroup that is delegated to you, for example with: systemd-run --user --scope -p Delegate=yes EDITOR",
	}
}

// NewGroup makes an empty group. The name must be unique among the tracker's groups and fit for a file name.
func (t *Tracker) NewGroup(name string) (Group, error) {
	if t.tree == nil {
		return &sessionGroup{tracking: t.Tracking()}, nil
	}
	return t.tree.newGroup(name)
}

// Close kills whatever is left in any group and gives back what the tracker holds in the kernel.
func (t *Tracker) Close() error {
	if t.tree == nil {
		return nil
	}
	return t.tree.close()
}
