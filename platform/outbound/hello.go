package outbound

import (
	"encoding/binary"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
)

// greeting is what the first bytes of a client are.
type greeting int

const (
	unfinished greeting = iota // more bytes are needed
	otherProtocol
	tlsHello
	tlsMalformed
)

// The numbers of TLS (RFC 8446).
const (
	recordHandshake   = 22
	versionMajor      = 3
	recordHeader      = 5
	maxRecord         = 1 << 14
	messageHello      = 1
	messageHeader     = 4
	maxHello          = 1 << 16
	extensionName     = 0
	nameHost          = 0
	randomAndVersion  = 34
	maxGreeting       = 2 * maxHello // with the headers of its records
	typicalHelloBytes = 2048
)

// greet finds the server's name in the first bytes of a client. The name is
// empty if the client names none. If the bytes are unfinished, at least need of
// them must be there to find out more.
func greet(data []byte) (what greeting, name string, need int) {
	var message []byte
	for {
		switch {
		case len(data) > 0 && data[0] != recordHandshake || len(data) > 1 && data[1] != versionMajor:
			if message == nil {
				return otherProtocol, "", 0
			}
			return tlsMalformed, "", 0
		case len(data) < 2:
			return unfinished, "", need + 2 // the version tells other protocols
		case len(data) < recordHeader:
			return unfinished, "", need + recordHeader
		}
		length := int(binary.BigEndian.Uint16(data[3:]))
		if length == 0 || length > maxRecord {
			return tlsMalformed, "", 0
		}
		need += recordHeader + length
		rest := data[recordHeader:]
		message = append(message, rest[:min(length, len(rest))]...)
		if size, known := helloSize(message); !known && len(message) >= messageHeader || size > maxHello {
			return tlsMalformed, "", 0
		} else if known && len(message) >= messageHeader+size {
			what, name = helloName(message[messageHeader : messageHeader+size])
			return what, name, 0
		}
		if len(rest) < length {
			return unfinished, "", need
		}
		data = rest[length:]
	}
}

// helloSize returns the length of a ClientHello from the header of the message;
// known is false if it is another one, or the header is not complete.
func helloSize(message []byte) (size int, known bool) {
	if len(message) < messageHeader || message[0] != messageHello {
		return 0, false
	}
	return int(message[1])<<16 | int(message[2])<<8 | int(message[3]), true
}

// reader takes parts from a message. ok is false once one was missing.
type reader struct {
	data []byte
	ok   bool
}

// take returns the next bytes.
func (r *reader) take(n int) []byte {
	if !r.ok || n > len(r.data) {
		r.ok = false
		return nil
	}
	part := r.data[:n]
	r.data = r.data[n:]
	return part
}

// number returns the next bytes as a number.
func (r *reader) number(width int) int {
	n := 0
	for _, b := range r.take(width) {
		n = n<<8 | int(b)
	}
	return n
}

// vector returns a part that has its length in front, in so many bytes.
func (r *reader) vector(width int) reader {
	part := r.take(r.number(width))
	return reader{data: part, ok: r.ok}
}

// helloName reads a ClientHello without its header.
func helloName(message []byte) (greeting, string) {
	r := &reader{data: message, ok: true}
	r.take(randomAndVersion)
	r.vector(1) // session
	r.vector(2) // cipher suites
	r.vector(1) // compression
	if r.ok && len(r.data) == 0 {
		return tlsHello, "" // before TLS 1.3 there may be no extensions
	}
	list := r.vector(2)
	if !r.ok || len(r.data) > 0 {
		return tlsMalformed, ""
	}
	name, named := "", false
	for list.ok && len(list.data) > 0 {
		kind, content := list.number(2), list.vector(2)
		if !list.ok || kind == extensionName && named {
			return tlsMalformed, ""
		}
		if kind == extensionName {
			if name, named = oneName(content); !named {
				return tlsMalformed, ""
			}
		}
	}
	return tlsHello, name
}

// oneName reads the extension server_name (RFC 6066). A list of several names
// is refused: nobody knows which one the server takes.
func oneName(content reader) (name string, valid bool) {
	list := content.vector(2)
	kind, text := list.number(1), list.vector(2)
	if !text.ok || kind != nameHost || len(content.data) > 0 || len(list.data) > 0 {
		return "", false
	}
	return hosts.Canonical(string(text.data))
}
