package hosts

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// HostName is the name under which a session reaches services of the host's
// loopback interface. Entries name them by localhost and a port.
const HostName = "host.sandbox.internal"

// localName is what entries call the host.
const localName = "localhost"

// The limits of DNS (RFC 1035).
const (
	maxName  = 253
	maxLabel = 63
)

// Canonical returns a name as DNS and programs use it in the form that rules
// compare: lower case, without the dot at its end. It returns false for what is
// no name of a host, an address among them.
func Canonical(name string) (string, bool) {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > maxName {
		return "", false
	}
	last := name
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return "", false
		}
		last = label
	}
	if isNumber(last) {
		return "", false // a way to write an IPv4 address (inet_aton(3))
	}
	return strings.ToLower(name), true
}

// isLabel reports whether a text can be a label of a host's name. An underscore
// is in names of services (RFC 8552).
func isLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		switch c := label[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

func isNumber(label string) bool {
	digits := "0123456789"
	if hex, is := strings.CutPrefix(strings.ToLower(label), "0x"); is {
		label, digits = hex, digits+"abcdef"
	}
	return strings.Trim(strings.ToLower(label), digits) == ""
}

// written returns the canonical form of a name that a user has written, which
// may hold any letters.
func written(name string) (string, bool) {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			if !utf8.ValidString(name) {
				return "", false
			}
			ascii, err := idna.Lookup.ToASCII(name)
			if err != nil {
				return "", false
			}
			return Canonical(ascii)
		}
	}
	return Canonical(name)
}

// registries are labels under which countries let people register names, as in
// co.uk.
var registries = map[string]bool{
	"ac": true, "co": true, "com": true, "edu": true, "go": true, "gob": true, "gov": true, "gouv": true, "govt": true,
	"gv": true, "id": true, "info": true, "mil": true, "ne": true, "net": true, "nom": true, "or": true, "org": true,
	"plc": true, "ltd": true, "sch": true, "school": true,
}

// anybodys reports whether anybody can register names directly below a name.
// The complete list of such names is long and changes, so this knows the common
// form alone.
func anybodys(name string) bool {
	rest, top, found := cutLast(name)
	if !found {
		return true
	}
	return len(top) == 2 && registries[rest]
}

// cutLast cuts a name before its last label.
func cutLast(name string) (rest, last string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}
