package linux

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// grantSockets prepares the grants of sockets. Where sessions may write the
// directory of one it is granted only if it is what it seems to be; see
// sockets.CheckPinned. What has no effect is noted, and taken out of the rules.
func (r *Ruleset) grantSockets(p *policy.Policy) sockets.Grants {
	var granted sockets.Grants
	for _, socket := range p.UnixSockets {
		if socket.Path == "" {
			granted.Abstract = append(granted.Abstract, socket.Abstract)
			continue
		}
		if _, movable := p.Find(policy.Write, filepath.Dir(socket.Path)); !movable {
			granted.Paths = append(granted.Paths, socket.Path)
			continue
		}
		if err := sockets.CheckPinned(socket.Path); err != nil {
			r.Missing = append(r.Missing, platform.Missing{Path: socket.Path, Reason: err.Error()})
			if errors.Is(err, sockets.ErrNotBoundThere) {
				r.Warnings = append(r.Warnings, fmt.Sprintf("a socket that the settings allow cannot be connected to: %v", err))
			}
			r.withhold(socket.Path)
			continue
		}
		granted.Pinned = append(granted.Pinned, socket.Path)
	}
	return granted
}

// withhold takes back the right to connect to a path.
func (r *Ruleset) withhold(path string) {
	for i := range r.Rules {
		if string(r.Rules[i].Path) == path {
			r.Rules[i].Access &^= fsConnect
		}
	}
	r.Rules = slices.DeleteFunc(r.Rules, func(rule Rule) bool { return rule.Access == 0 })
}
