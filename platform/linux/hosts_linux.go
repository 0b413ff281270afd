package linux

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/network"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// planHosts lets the session reach the policy's hosts, if this machine can tell
// them from others. Otherwise the network stays off. If somebody is asked about
// hosts, or learns which a command needs, the policy may have none.
func (r *Ruleset) planHosts(p *policy.Policy, hooks platform.Hooks) {
	asked := hooks.Denied != nil && (hooks.Learn != nil || hooks.Ask != nil && p.OnDenied == policy.Ask)
	if !r.Requested.Hosts && (!r.Requested.Network || !asked) {
		return
	}
	if err := r.hostsAvailable(); err != nil {
		if r.Requested.Hosts {
			r.HostsGap = err.Error()
		}
		return
	}
	r.openHosts()
}

func (r *Ruleset) openHosts() { r.Namespaces.Hosts, r.Filtering.Hosts = true, true }

// hostsAvailable returns nil if this ruleset's session can reach hosts.
func (r *Ruleset) hostsAvailable() error {
	switch {
	case r.Namespaces == nil || !r.Namespaces.Network:
		return errors.New(r.NamespaceGap)
	case observationAvailable() != nil:
		return observationAvailable()
	}
	if _, err := os.Stat(namespace.ResolverConfig); err != nil {
		return fmt.Errorf("programs here do not know a DNS server: %w", err)
	}
	return hostsProved()
}

// hostsProved tries it with a stage that executes nothing.
var hostsProved = sync.OnceValue(func() error {
	if err := namespacesIdentified(); err != nil {
		return err
	}
	abi, err := landlockABI()
	if err != nil {
		return err
	}
	strictest := strictestPolicy()
	ruleset := Translate(strictest, abi)
	if ruleset.Namespaces = ruleset.plan(availableNamespaces(), strictest); ruleset.Namespaces == nil {
		return errors.New(availableNamespaces().Gap)
	}
	ruleset.openHosts()
	confinement, err := confine(ruleset, strictest, platform.Hooks{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	_, err = platform.ProbeStage(ctx, Backend{}, confinement)
	return err
})

// namespacesIdentified returns an error if the kernel does not say which
// network namespace a socket is in.
func namespacesIdentified() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil {
		return fmt.Errorf("the kernel is older than 5.14 and does not identify network namespaces: %w", err)
	}
	return nil
}

// ownAddresses are those that the names of hosts get in the session.
func (r Ruleset) ownAddresses() netip.Prefix {
	if r.Filtering.Hosts {
		return hosts.Own
	}
	return netip.Prefix{}
}

// connectHosts starts to connect the session to its hosts.
func (s *supervision) connectHosts(p *policy.Policy, files platform.HostSockets) (*network.Connector, error) {
	rules, err := hostRules(p)
	if err != nil {
		return nil, err
	}
	if files.ResolverUDP == nil || files.ResolverTCP == nil || files.Relay == nil {
		return nil, errors.New("the stage passed no sockets for the session's network")
	}
	var user network.User
	if o := s.observer; o != nil {
		user.Refused = func(program network.Program, target string) {
			o.ConnectHost(program.PID, program.Name, target)
		}
		if o.Asks() {
			user.Approved = o.HostApproved
			user.Ask = func(ctx context.Context, program network.Program, target string) bool {
				return o.AskHost(ctx, program.PID, program.Name, target)
			}
		}
	}
	return network.New(rules, network.Files{UDP: files.ResolverUDP, TCP: files.ResolverTCP, Relay: files.Relay}, user)
}

// hostRules reads the lists of a policy again.
func hostRules(p *policy.Policy) (*hosts.Rules, error) {
	allowed, err := patterns(p.Network.AllowedHosts, hosts.ParseAllowed)
	if err != nil {
		return nil, err
	}
	denied, err := patterns(p.Network.DeniedHosts, hosts.ParseDenied)
	if err != nil {
		return nil, err
	}
	return hosts.New(allowed, denied), nil
}

func patterns(list []policy.Host, parse func(string) (hosts.Pattern, error)) ([]hosts.Pattern, error) {
	var all []hosts.Pattern
	for _, host := range list {
		pattern, err := parse(host.Pattern)
		if err != nil {
			return nil, fmt.Errorf("read host %q: %w", host.Pattern, err)
		}
		all = append(all, pattern)
	}
	return all, nil
}
