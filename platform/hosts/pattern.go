package hosts

import (
	"cmp"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// Pattern is an entry of a list of hosts. It is comparable.
type Pattern struct {
	// name is canonical; empty if the pattern is about addresses.
	name string
	// below says that the pattern means the names below name, not name itself.
	below bool
	// addresses is masked, and no IPv4 address in IPv6's form.
	addresses netip.Prefix
	// port is 0 for all ports.
	port   uint16
	spoken spoken
}

// Errors of ParseAllowed and ParseDenied, in words for the user.
var (
	errEmpty    = errors.New("expected a host, such as example.org or *.example.org:443")
	errAll      = errors.New("* would be every host: write the hosts, or set allow_network to true")
	errAllDeny  = errors.New("* would be every host: set allowed_hosts to [] instead")
	errWild     = errors.New("a * must be the whole of the first labels, as in *.example.org")
	errAnybodys = errors.New("anybody can register names below it: write the names, such as *.example.com")
	errName     = errors.New("not the name of a host")
	errScheme   = errors.New("expected a host alone, without a scheme (but for tcp:// and tls://) or a path")
	errNoPort   = errors.New("with tcp:// or tls:// it needs a port, as in tcp://ssh.example.org:443")
	errDenied   = errors.New("a denied host is denied whatever is spoken: write it without tcp:// or tls://")
	errPort     = errors.New("expected a port from 1 to 65535")
	errLocal    = errors.New("localhost needs a port, as in localhost:5432")
	errCIDR     = errors.New("not an address with a prefix length, as in 10.1.0.0/16")
	errHostBits = errors.New("the address has bits behind its prefix")
	errEvery    = errors.New("it holds every address: set allow_network to true instead")
	errLoopback = errors.New("for a service of this machine write localhost and its port")
	errNoHost   = errors.New("no other host has such an address")
)

// ParseAllowed reads an entry of allowed_hosts. The error says in words what is
// wrong with it.
func ParseAllowed(text string) (Pattern, error) {
	rest, speaks, schemed := cutScheme(text)
	p, err := parse(rest)
	if schemed {
		p.spoken = speaks.spokenAt(p.port)
	}
	switch {
	case err != nil:
		return Pattern{}, err
	case schemed && p.port == 0:
		return Pattern{}, errNoPort
	case p.below && anybodys(p.name):
		return Pattern{}, errAnybodys
	case p.name == localName && p.port == 0:
		return Pattern{}, errLocal
	case !p.addresses.IsValid():
		return p, nil
	case p.addresses.Bits() == 0:
		return Pattern{}, errEvery
	case !never(p.addresses.Addr()) || !never(last(p.addresses)):
		return p, nil
	case p.addresses.Addr().IsLoopback() || p.addresses.Addr().IsUnspecified():
		return Pattern{}, errLoopback
	}
	return Pattern{}, errNoHost
}

// ParseDenied reads an entry of denied_hosts. It may be wider than one of
// allowed_hosts.
func ParseDenied(text string) (Pattern, error) {
	if _, _, schemed := cutScheme(text); schemed {
		return Pattern{}, errDenied
	}
	p, err := parse(text)
	if errors.Is(err, errAll) {
		err = errAllDeny
	}
	return p, err
}

func parse(text string) (Pattern, error) {
	host, port, err := cutPort(text)
	if err != nil {
		return Pattern{}, err
	}
	switch {
	case host == "":
		return Pattern{}, errEmpty
	case strings.Contains(host, "://") || strings.HasPrefix(host, "//"):
		return Pattern{}, errScheme
	}
	if p, is, err := parseAddresses(host); is {
		p.port = port
		return p, err
	}
	if strings.Contains(host, "/") {
		return Pattern{}, errScheme
	}
	name, below := strings.CutPrefix(host, "*.")
	switch {
	case host == "*":
		return Pattern{}, errAll
	case strings.Contains(name, "*"):
		return Pattern{}, errWild
	}
	name, valid := written(name)
	if !valid {
		return Pattern{}, errName
	}
	if name == HostName {
		name = localName
	}
	if below && (name == localName || strings.HasSuffix(name, "."+localName)) {
		return Pattern{}, errLocal
	}
	return Pattern{name: name, below: below, port: port}, nil
}

// cutPort cuts ":port" from an entry. An IPv6 address with a port is in
// brackets.
func cutPort(text string) (host string, port uint16, err error) {
	if strings.Contains(text, "://") {
		return "", 0, errScheme
	}
	host, digits := text, ""
	if inner, is := strings.CutPrefix(text, "["); is {
		end := strings.IndexByte(inner, ']')
		if end < 0 {
			return "", 0, errName
		}
		rest := inner[end+1:]
		host = inner[:end]
		if rest == "" {
			return host, 0, nil
		}
		if rest[0] != ':' {
			return "", 0, errPort
		}
		digits = rest[1:]
	} else {
		before, after, found := strings.Cut(text, ":")
		if !found || strings.Contains(after, ":") {
			return host, 0, nil // no port, or an IPv6 address
		}
		host, digits = before, after
	}
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || number == 0 || digits[0] == '+' || digits[0] == '0' {
		return "", 0, errPort
	}
	return host, uint16(number), nil
}

// parseAddresses reads an address, or a prefix. is says that the text is meant
// as one.
func parseAddresses(host string) (p Pattern, is bool, err error) {
	address, bits, hasBits := strings.Cut(host, "/")
	addr, err := netip.ParseAddr(address)
	if err != nil {
		looks := hasBits && strings.Trim(address, "0123456789.:") == "" || strings.Contains(address, ":")
		return Pattern{}, looks, errCIDR
	}
	if addr.Zone() != "" {
		return Pattern{}, true, errCIDR
	}
	length := addr.BitLen()
	if hasBits {
		if length, err = strconv.Atoi(bits); err != nil || strconv.Itoa(length) != bits || length > addr.BitLen() {
			return Pattern{}, true, errCIDR
		}
	}
	const mapped = 96 // the bits before the IPv4 address in ::ffff:0:0/96
	if addr.Is4In6() {
		if addr, length = addr.Unmap(), length-mapped; length < 0 {
			return Pattern{}, true, errCIDR
		}
	}
	prefix, err := addr.Prefix(length)
	if err != nil {
		return Pattern{}, true, errCIDR
	}
	if prefix.Addr() != addr {
		return Pattern{}, true, errHostBits
	}
	return Pattern{addresses: prefix}, true, nil
}

// String is the pattern as an entry. Parsing it gives the same pattern.
func (p Pattern) String() string {
	text := p.name
	switch {
	case p.below:
		text = "*." + p.name
	case p.addresses.IsValid():
		text = p.addresses.String()
		if p.addresses.IsSingleIP() {
			text = p.addresses.Addr().String()
		}
		if p.port != 0 && p.addresses.Addr().Is6() {
			text = "[" + text + "]"
		}
	}
	if p.port != 0 {
		text += ":" + strconv.Itoa(int(p.port))
	}
	return p.scheme() + text
}

// LocalPort is the port if the pattern is a service of this machine itself; else
// 0.
func (p Pattern) LocalPort() uint16 {
	if p.name == localName && !p.below {
		return p.port
	}
	return 0
}

// LocalEntry is the entry for a service of this machine itself.
func LocalEntry(port uint16) string { return localName + ":" + strconv.Itoa(int(port)) }

// last returns the last address of a prefix.
func last(prefix netip.Prefix) netip.Addr {
	raw := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr
}

// Target is where somebody wants to connect to.
type Target struct {
	// Host is a name in the form of Canonical, or an address.
	Host  string
	Port  uint16
	Named bool // Host is a name
	// Other says that something else than TLS is to be spoken, whatever the port.
	Other bool
}

// ParseTarget reads "host:port", or "tcp://host:port" for something else than
// TLS.
func ParseTarget(text string) (Target, error) { return ParseTargetAt(text, 0) }

// ParseTargetAt reads "host:port", or "host" for the given port. If that is 0, a
// port must be there.
func ParseTargetAt(text string, port uint16) (Target, error) {
	rest, speaks, _ := cutScheme(text)
	other := speaks&others != 0
	host, given, err := cutPort(rest)
	if err != nil {
		return Target{}, err
	}
	port = cmp.Or(given, port)
	if port == 0 {
		return Target{}, errPort
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return Target{Host: addr.Unmap().String(), Port: port, Other: other}, nil
	}
	name, valid := written(host)
	if !valid {
		return Target{}, errName
	}
	return Target{Host: name, Port: port, Named: true, Other: other}, nil
}

// String is the target as ParseTarget reads it.
func (t Target) String() string {
	if t.Other {
		t.Other = false
		return tcpScheme + t.String()
	}
	if !t.Named && strings.Contains(t.Host, ":") {
		return "[" + t.Host + "]:" + strconv.Itoa(int(t.Port))
	}
	return t.Host + ":" + strconv.Itoa(int(t.Port))
}
