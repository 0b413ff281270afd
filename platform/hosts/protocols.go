package hosts

import "strings"

// protocols are what may be spoken at a port.
type protocols uint8

const (
	tls protocols = 1 << iota
	others
)

// spoken says what an entry lets sessions speak. Its zero value leaves that to
// the port. Entries that mean the same have the same value.
type spoken uint8

const (
	byPort   spoken = iota
	anything        // tcp:// with the port of HTTPS
	onlyTLS         // tls:// with another port
)

// The schemes of entries.
const (
	tcpScheme = "tcp://"
	tlsScheme = "tls://"
)

const httpsPort = 443

// usual is what an entry without a scheme lets sessions speak at a port.
func usual(port uint16) protocols {
	if port == httpsPort {
		return tls
	}
	return tls | others
}

// spokenAt is how an entry for a port says that these protocols may be spoken.
func (p protocols) spokenAt(port uint16) spoken {
	switch {
	case p == usual(port):
		return byPort
	case p == tls:
		return onlyTLS
	}
	return anything
}

// protocols are what the pattern lets sessions speak at its own port.
func (p Pattern) protocols() protocols {
	switch p.spoken {
	case anything:
		return tls | others
	case onlyTLS:
		return tls
	}
	return usual(p.port)
}

// scheme is that of the pattern as an entry.
func (p Pattern) scheme() string {
	return [...]string{byPort: "", anything: tcpScheme, onlyTLS: tlsScheme}[p.spoken]
}

// cutScheme cuts the scheme from an entry.
func cutScheme(text string) (rest string, speaks protocols, schemed bool) {
	if rest, is := strings.CutPrefix(text, tcpScheme); is {
		return rest, tls | others, true
	}
	if rest, is := strings.CutPrefix(text, tlsScheme); is {
		return rest, tls, true
	}
	return text, 0, false
}
