package sockets

import "bytes"

// address is a sockaddr_un (unix(7)) as the kernel reads it.
type address struct {
	// path is the path of a socket in the file system, without the NUL after
	// it.
	path string
	// abstract is the name of an abstract socket, without the NUL before it. It
	// may contain any byte.
	abstract   string
	isAbstract bool
}

// unixLength is sizeof(struct sockaddr_un), and pathOffset the offset of its
// path.
const (
	unixLength = 110
	pathOffset = 2
)

// parse reads an address as the caller passed it, beginning with the family. It
// returns false for what the kernel finds invalid.
func parse(raw []byte) (address, bool) {
	if len(raw) <= pathOffset || len(raw) > unixLength {
		return address{}, false
	}
	name := raw[pathOffset:]
	if name[0] == 0 {
		return address{abstract: string(name[1:]), isAbstract: true}, true
	}
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	return address{path: string(name)}, true
}

// family returns the first member of every address.
func family(raw []byte) int {
	if len(raw) < pathOffset {
		return 0
	}
	return int(raw[0]) | int(raw[1])<<8
}

// encode returns the address in the kernel's form.
func (a address) encode() []byte {
	raw := []byte{1, 0}
	if a.isAbstract {
		return append(append(raw, 0), a.abstract...)
	}
	return append(append(raw, a.path...), 0)
}
