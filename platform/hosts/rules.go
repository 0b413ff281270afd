package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Rules decide about connections. They do not change once made, and may be used
// by several goroutines. A nil *Rules allows nothing.
type Rules struct {
	allowed []table // what one of them has is allowed
	denied  table
}

// New returns the rules of two lists. What both name is denied.
func New(allowed, denied []Pattern) *Rules {
	return &Rules{allowed: []table{tableOf(allowed)}, denied: tableOf(denied)}
}

// Parse returns the rules of a policy.
func Parse(n policy.Network) (*Rules, error) {
	allowed, failed := parseAll(n.AllowedHosts, ParseAllowed)
	denied, failedToo := parseAll(n.DeniedHosts, ParseDenied)
	if err := errors.Join(failed, failedToo); err != nil {
		return nil, err
	}
	return New(allowed, denied), nil
}

func parseAll(list []policy.Host, parse func(string) (Pattern, error)) ([]Pattern, error) {
	var all []Pattern
	for _, host := range list {
		pattern, err := parse(host.Pattern)
		if err != nil {
			return nil, fmt.Errorf("read host %q: %w", host.Pattern, err)
		}
		all = append(all, pattern)
	}
	return all, nil
}

// With returns rules that allow a pattern, too, unless it is denied.
func (r *Rules) With(p Pattern) *Rules {
	if r == nil {
		return New([]Pattern{p}, nil)
	}
	return &Rules{allowed: append(slices.Clip(r.allowed), tableOf([]Pattern{p})), denied: r.denied}
}

// Name reports whether a session may connect to a name, in the form of
// [Canonical]. The addresses that the name leads to must pass Result, too.
func (r *Rules) Name(name string, port uint16) bool {
	if r == nil {
		return false
	}
	switch name {
	case localName:
		return false // the session's own
	case HostName:
		name = localName
	}
	return port != 0 && r.allows(func(t *table) bool { return t.name(name, port) != 0 }) &&
		r.denied.name(name, port) == 0
}

// OtherName reports whether a session may speak something else than TLS with a
// name: the port does not serve TLS, or an entry says so by tcp://.
func (r *Rules) OtherName(name string, port uint16) bool {
	if !r.Name(name, port) {
		return false
	}
	if name == HostName {
		name = localName
	}
	return r.allows(func(t *table) bool { return t.name(name, port)&others != 0 })
}

// Named reports whether a name is allowed at any port.
func (r *Rules) Named(name string) bool {
	if r == nil {
		return false
	}
	for set := range r.denied.ofName(name) {
		if set[0] != 0 {
			return false
		}
	}
	return r.allows(func(t *table) bool {
		for range t.ofName(name) {
			return true
		}
		return false
	})
}

func (r *Rules) allows(has func(*table) bool) bool {
	for i := range r.allowed {
		if has(&r.allowed[i]) {
			return true
		}
	}
	return false
}

// DeniedName reports whether a list of denied hosts names a host.
func (r *Rules) DeniedName(name string, port uint16) bool {
	return r != nil && r.denied.name(name, port) != 0
}

// Address reports whether a session may connect to an address that it names
// itself.
func (r *Rules) Address(addr netip.Addr, port uint16) bool {
	if r == nil || !addr.IsValid() || addr.Zone() != "" || port == 0 {
		return false
	}
	addr = addr.Unmap()
	return !never(addr) && r.allows(func(t *table) bool { return t.address(addr, port) != 0 }) &&
		r.denied.address(addr, port) == 0
}

// OtherAddress is OtherName for an address that the session names itself.
func (r *Rules) OtherAddress(addr netip.Addr, port uint16) bool {
	return r.Address(addr, port) &&
		r.allows(func(t *table) bool { return t.address(addr.Unmap(), port)&others != 0 })
}

// Result reports whether an address that an allowed name leads to may be
// connected to. Whoever answers for a name could lead it to this machine's own
// network. So such an address needs an entry of its own.
func (r *Rules) Result(addr netip.Addr, port uint16) bool {
	if r == nil || r.denied.address(addr.Unmap(), port) != 0 {
		return false
	}
	return Public(addr) || r.Address(addr, port)
}

// Empty reports whether the rules allow nothing.
func (r *Rules) Empty() bool {
	return r == nil || !r.allows(func(t *table) bool { return len(t.exact)+len(t.below)+len(t.addresses) > 0 })
}

// Find returns the first pattern of a list that holds a target. It is for
// explanations.
func Find(list []Pattern, to Target) (index int, found bool) {
	index = slices.IndexFunc(list, func(p Pattern) bool {
		one := tableOf([]Pattern{p})
		speaks := protocols(0)
		switch addr, err := netip.ParseAddr(to.Host); {
		case err == nil:
			speaks = one.address(addr.Unmap(), to.Port)
		case to.Host == HostName:
			speaks = one.name(localName, to.Port)
		default:
			speaks = one.name(to.Host, to.Port)
		}
		return speaks&tls != 0 && (!to.Other || speaks&others != 0)
	})
	return index, index >= 0
}

// ports is a set of ports, with what may be spoken there. The key 0 stands for
// all, with what is usual at each.
type ports map[uint16]protocols

// at is what may be spoken at a port; 0 if the port is not in the set.
func (p ports) at(port uint16) protocols {
	if p[0] != 0 {
		return p[port] | usual(port)
	}
	return p[port]
}

// table finds the ports of a host without a look at each pattern: by the name,
// by each name above it, and by each length that a prefix has.
type table struct {
	exact, below map[string]ports
	addresses    map[netip.Prefix]ports
	lengths4     []int
	lengths6     []int
}

func tableOf(list []Pattern) table {
	t := table{exact: map[string]ports{}, below: map[string]ports{}, addresses: map[netip.Prefix]ports{}}
	for _, p := range list {
		switch {
		case p.addresses.IsValid():
			put(t.addresses, p.addresses, p)
			lengths := &t.lengths6
			if p.addresses.Addr().Is4() {
				lengths = &t.lengths4
			}
			if !slices.Contains(*lengths, p.addresses.Bits()) {
				*lengths = append(*lengths, p.addresses.Bits())
			}
		case p.below:
			put(t.below, p.name, p)
		case p.name != "":
			put(t.exact, p.name, p)
		}
	}
	return t
}

func put[K comparable](m map[K]ports, key K, p Pattern) {
	if m[key] == nil {
		m[key] = ports{}
	}
	m[key][p.port] |= p.protocols()
}

// name is what may be spoken at a port of a name; 0 if the table lacks it.
func (t *table) name(name string, port uint16) protocols {
	speaks := protocols(0)
	for set := range t.ofName(name) {
		speaks |= set.at(port)
	}
	return speaks
}

// ofName yields the sets of ports for a name.
func (t *table) ofName(name string) func(func(ports) bool) {
	return func(yield func(ports) bool) {
		if set := t.exact[name]; set != nil && !yield(set) {
			return
		}
		for _, above, found := strings.Cut(name, "."); found; _, above, found = strings.Cut(above, ".") {
			if set := t.below[above]; set != nil && !yield(set) {
				return
			}
		}
	}
}

// address is the same for an address.
func (t *table) address(addr netip.Addr, port uint16) protocols {
	speaks := protocols(0)
	for set := range t.ofPrefix(netip.PrefixFrom(addr, addr.BitLen())) {
		speaks |= set.at(port)
	}
	return speaks
}

// ofPrefix yields the sets of ports for all addresses of a prefix. Of link-local
// addresses, such as those of a cloud's metadata, only a prefix that means them
// counts.
func (t *table) ofPrefix(prefix netip.Prefix) func(func(ports) bool) {
	return func(yield func(ports) bool) {
		lengths := t.lengths6
		if prefix.Addr().Is4() {
			lengths = t.lengths4
		}
		for _, length := range lengths {
			if length > prefix.Bits() {
				continue
			}
			wider, err := prefix.Addr().Prefix(length)
			if err != nil || within(linkLocal, prefix.Addr()) && !within(linkLocal, wider.Addr()) {
				continue
			}
			if set := t.addresses[wider]; set != nil && !yield(set) {
				return
			}
		}
	}
}
