package lifecycle

import (
	"errors"
	"fmt"
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/cgroup"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/subreaper"
)

// containedGroup is a session in a cgroup of its own.
type containedGroup struct {
	*cgroup.Group
	*groupState
	tracking Tracking
}

func (g *containedGroup) Close() error { return errors.Join(g.Group.Close(), g.giveBack()) }

func (g *containedGroup) Tracking() Tracking { return g.warned(g.tracking) }

func (g *containedGroup) Limit(l Limits, changed func()) {
	g.tracking.Limits = limited(g.Group.Limit(cgroup.Limits(l)))
	_ = g.Watch(changed) // without it, the end of the session tells
}

func (g *containedGroup) Reached() Reached { return Reached(g.Group.Reached()) }

// fixLimits puts the sidecar into a cgroup of its own; empty without systemd.
func fixLimits() string {
	if !systemdRuns() {
		return ""
	}
	user := "--user "
	if os.Geteuid() == 0 {
		user = ""
	}
	return "have the editor start: systemd-run " + user + "--scope -p Delegate=yes sandbox-sidecar serve"
}

// fixCgroup makes cgroups possible, with systemd or without, as in a container.
func fixCgroup(systemd bool) string {
	if systemd {
		return "start the editor with: systemd-run --user --scope -p Delegate=yes EDITOR"
	}
	return "give the editor a cgroup (v2) of its own that it may write"
}

// systemdRuns reports whether systemd is the init system, as sd_booted(3) does.
func systemdRuns() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// limited is what a cgroup says about its limits.
func limited(got cgroup.Limited) Limited {
	l := Limited{Processes: got.Processes, Memory: got.Memory, CPU: got.CPU}
	if got.Problem != nil {
		l.Why = got.Problem.Error()
	}
	if got.Shared || got.Undelegated != "" {
		l.Fix = fixLimits()
	}
	if got.Undelegated != "" && l.Fix == "" { // without systemd somebody else marks it
		l.Fix = fmt.Sprintf("if nobody else arranges it: setfattr -n user.delegate -v 1 %q", got.Undelegated)
	}
	return l
}

// subreapedGroup is a session below a subreaper.
type subreapedGroup struct {
	*subreaper.Group
	*groupState
	tracking Tracking
}

// Close keeps the directories if the subreaper does not end: then the session
// is not over.
func (g *subreapedGroup) Close() error {
	if err := g.Group.Close(); err != nil {
		return err
	}
	return g.giveBack()
}

func (g *subreapedGroup) Tracking() Tracking { return g.warned(g.tracking) }
