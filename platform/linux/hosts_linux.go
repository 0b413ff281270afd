package linux

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts/loopback"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/network"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// planHosts lets the session reach the policy's hosts, if this machine can tell
// them from others. Otherwise the network stays off. If somebody is asked about
// hosts, or learns which a command needs, the policy may have none.
func (r *ruleset) planHosts(p *policy.Policy, hooks platform.Hooks) {
	asked := hooks.Denied != nil && (hooks.Learn != nil || hooks.Ask != nil && p.OnDenied == policy.Ask)
	if !r.Requested.Hosts && (!r.Requested.Network || !asked) {
		return
	}
	if err := r.hostsAvailable(); err != nil {
		if r.Requested.Hosts {
			r.HostsGap = err.Error()
			r.Warnings = append(r.Warnings,
				"allowed_hosts has no effect on this machine, and the network is off: "+r.HostsGap)
		}
		return
	}
	r.openHosts()
}

// openHosts lets the session reach hosts: in its own network namespace, or, if
// it has none, in that of the machine.
func (r *ruleset) openHosts() {
	r.Filtering.Hosts = true
	if r.ownNetwork() {
		r.Namespaces.Hosts = true
		return
	}
	r.Filtering.Shared, r.Filtering.Sockets, r.Network = true, true, stage.NetworkNamespace()
}

func (r *ruleset) ownNetwork() bool { return r.Namespaces != nil && r.Namespaces.Network }

// hostsAvailable returns nil if this ruleset's session can reach hosts.
func (r *ruleset) hostsAvailable() error {
	if err := answeringAvailable(); err != nil {
		return err
	}
	if _, err := os.Stat(namespace.ResolverConfig); err != nil {
		return fmt.Errorf("programs here do not know a DNS server: %w", err)
	}
	if r.ownNetwork() {
		return hostsProved()
	}
	return sharedHostsProved()
}

// HostsGap says why this machine cannot tell hosts apart; "" if it can, or if it
// cannot sandbox at all. The first call takes some 10 ms, if no session has
// needed hosts before.
func HostsGap() string {
	abi, err := stage.LandlockABI()
	if err != nil {
		return ""
	}
	strictest := strictestPolicy()
	r := ruleset{stage.Translate(strictest, abi)}
	r.Namespaces = r.plan(availableNamespaces(), strictest)
	if err := r.hostsAvailable(); err != nil {
		return err.Error()
	}
	return ""
}

var (
	hostsProved = sync.OnceValue(func() error {
		strictest := strictestPolicy()
		return proveHosts(strictest, func(r *ruleset) { r.Namespaces = r.plan(availableNamespaces(), strictest) })
	})
	sharedHostsProved = sync.OnceValue(func() error {
		if err := mediationAvailable(); err != nil {
			return err
		}
		return proveHosts(sharedPolicy(strictestPolicy()), func(*ruleset) {})
	})
)

// tcpABI is the first version of Landlock that governs TCP (Linux 6.7).
const tcpABI = 4

// proveHosts tries it with a stage that executes nothing.
func proveHosts(strictest *policy.Policy, plan func(*ruleset)) error {
	if err := namespacesIdentified(); err != nil {
		return err
	}
	abi, err := stage.LandlockABI()
	if err != nil {
		return err
	}
	ruleset := ruleset{stage.Translate(strictest, abi)}
	plan(&ruleset)
	if !ruleset.ownNetwork() && abi < tcpABI {
		return errors.New("there are no namespaces, and Landlock governs TCP only since Linux 6.7")
	}
	ruleset.openHosts()
	confinement, err := confine(ruleset, strictest, nil, platform.Hooks{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	_, err = platform.ProbeStage(ctx, Backend{}, confinement)
	return err
}

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
func (r ruleset) ownAddresses() netip.Prefix {
	if r.Filtering.Hosts {
		return loopback.Own
	}
	return netip.Prefix{}
}

// connectHosts starts to connect the session to its hosts.
func (s *supervision) connectHosts(
	p *policy.Policy, handover platform.Handover, shared bool, hooks platform.Hooks,
) (*network.Connector, error) {
	rules, err := hosts.Parse(p.Network)
	if err != nil {
		return nil, err
	}
	user, most := network.User{
		Connected: hooks.Connected, Crowded: hooks.Crowded, Opener: hooks.Opener,
	}, p.Limits.Connections
	if o := s.observer; o != nil {
		user.Refused = o.ConnectHost
		if o.Asks() {
			user.Approved, user.Ask = o.HostApproved, o.AskHost
		}
	}
	if shared {
		return network.NewShared(rules, user, most)
	}
	return network.New(rules, network.Files{
		UDP: handover.Take(canary.PassedResolverUDP), TCP: handover.Take(canary.PassedResolverTCP),
		Relay: handover.Take(canary.PassedRelay),
	}, user, most)
}

// handleShared adds what only a session needs that reaches hosts in the
// machine's network.
func (s *supervision) handleShared(handlers map[string]notify.Handler) {
	others := handlers["socket"].Handle // nil if nobody reports them; the filter refuses them then
	handlers["socket"] = notify.Handler{Handle: func(call *notify.Call) {
		const typeMask = 0xf // SOCK_TYPE_MASK (include/linux/net.h)
		family, kind := int32(call.Args[0]), int32(call.Args[1])&typeMask
		protocol := int32(call.Args[2])
		switch {
		case (family == unix.AF_INET || family == unix.AF_INET6) && kind == unix.SOCK_DGRAM &&
			(protocol == 0 || protocol == unix.IPPROTO_UDP):
			s.network.Datagrams(call)
		case others != nil:
			others(call)
		default:
			call.Fail(unix.EACCES)
		}
	}}
	handlers["listen"] = notify.Handler{Handle: s.mediator.Listen}
	maps.Copy(handlers, s.mediator.DatagramHandlers())
}
