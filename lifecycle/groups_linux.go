package lifecycle

import (
	"errors"
)

// containedGroup is a session in a cgroup of its own.
type containedGroup struct {
	*cgroupGroup
	*groupState
	tracking Tracking
}

func (g *containedGroup) Close() error { return errors.Join(g.cgroupGroup.Close(), g.giveBack()) }

func (g *containedGroup) Tracking() Tracking { return g.warned(g.tracking) }

// subreapedGroup is a session below a subreaper.
type subreapedGroup struct {
	*subreaperGroup
	*groupState
	tracking Tracking
}

// Close keeps the directories if the subreaper cannot be let go: then the
// session is not over.
func (g *subreapedGroup) Close() error {
	if err := g.subreaperGroup.Close(); err != nil {
		return err
	}
	return g.giveBack()
}

func (g *subreapedGroup) Tracking() Tracking { return g.warned(g.tracking) }
