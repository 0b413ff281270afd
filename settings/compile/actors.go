package compile

import (
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
)

// actorsAge bounds how old the answer of Actors may be. Nothing reports where
// places lead, and a session can cause many denials a second.
const actorsAge = 2 * time.Second

// actors are the last answer of Actors.
type actors struct {
	mu    sync.Mutex
	of    *sensitive.Paths
	made  time.Time
	paths *sensitive.Paths
}

// at looks up the places, unless that was done just now.
func (a *actors) at(view *resolve.View, of *sensitive.Paths) *sensitive.Paths {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of != of || time.Since(a.made) > actorsAge {
		a.of, a.made, a.paths = of, time.Now(), of.Anew(view)
	}
	return a.paths
}
