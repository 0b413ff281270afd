package lifecycle

import (
	"errors"

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
