package sockets

import "bytes"

// address is a sockaddr_un (unix(7)) as the kernel would understand it.
type address struct {
	// path is set for a socket in the file system, without the NUL behind it.
	path string
	// abstract is the name of an abstract socket, without the NUL before it; it
	// may hold any byte.
	abstract   string
	isAbstract bool
}

// unixLength is sizeof(struct sockaddr_un), and pathOffset where its path
// begins.
const (
	unixLength = 110
	pathOffset = 2
)

// parse reads the bytes that a caller gave as an address, beginning with the
// family. It reports false for what the kernel finds invalid.
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

// family is the first member of every address.
func family(raw []byte) int {
	if len(raw) < pathOffset {
		return 0
	}
	return int(raw[0]) | int(raw[1])<<8
}

// encode writes an address of the family AF_UNIX.
func (a address) encode() []byte {
	raw := []byte{1, 0}
	if a.isAbstract {
		return append(append(raw, 0), a.abstract...)
	}
	return append(append(raw, a.path...), 0)
}
