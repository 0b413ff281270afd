package linux

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/localhost"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// planLocalhost lets the sidecar decide which services of this machine the
// session reaches, if the policy asks for that and this machine can.
func (r *ruleset) planLocalhost() {
	if !r.Requested.Localhost {
		return
	}
	if err := localhostAvailable(); err != nil {
		r.LocalhostGap = err.Error()
		return
	}
	r.Filtering.Localhost, r.Filtering.Sockets, r.Network = true, true, stage.NetworkNamespace()
}

// localhostAvailable returns nil if the sidecar can decide about localhost on
// this machine; see listenerAvailable for the error.
var localhostAvailable = sync.OnceValue(func() error {
	if err := mediationAvailable(); err != nil {
		return err
	}
	return localhost.Available()
})

// guardLocalhost starts to decide for the session.
func (s *supervision) guardLocalhost(p *policy.Policy, notes *localhost.Notes) (*localhost.Guard, error) {
	options := localhost.Options{
		Project: cmp.Or(p.Network.LocalhostOf, p.Project),
		None:    p.Network.Localhost == policy.LocalhostNone, Notes: notes,
	}
	for _, host := range p.Network.LocalHosts {
		target, err := hosts.ParseTarget(host.Pattern)
		if err != nil {
			return nil, fmt.Errorf("read host %q: %w", host.Pattern, err)
		}
		options.Ports = append(options.Ports, target.Port)
	}
	if s.observer != nil {
		options.Refused = s.observer.ConnectHost
	}
	return localhost.New(options)
}
