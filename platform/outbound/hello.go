package outbound

import (
	"encoding/binary"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
)

// verdict is what the first bytes of a client are.
type verdict int

const (
	unfinished verdict = iota // more bytes are needed
	otherProtocol
	tlsHello
	unacceptable // TLS, but not in the one form that every server reads alike
)

// The numbers of TLS (RFC 8446) and SSL 2 (RFC 6101, appendix E).
const (
	recordLowest      = 20 // change_cipher_spec
	recordHandshake   = 22
	recordHighest     = 23 // application_data
	recordHeader      = 5
	maxRecord         = 1 << 14
	versionMajor      = 3 // of TLS 1.0 to 1.3
	minorLowest       = 1
	minorHighest      = 3
	messageHello      = 1
	messageHeader     = 4
	randomLength      = 32
	maxSession        = 32
	extensionName     = 0
	nameHost          = 0
	ssl2Lowest        = 0x80 // the first byte of a record's length, up to 16 KiB
	ssl2Highest       = 0xc0
	ssl2MessageAt     = 2
	maxGreeting       = 1 << 16 // with the headers of its records
	typicalHelloBytes = 2048
)

const tooLong = "a hello of more than 64 KiB"

// hello is what a ClientHello says.
type hello struct {
	name      string // the server's; "" if there is none
	encrypted bool   // another hello is hidden in it (ECH)
	size      int    // with the headers of its records
}

// greeting reads the first bytes of a client. Servers differ in what they
// tolerate, so only the form passes that all read alike: records of a handshake
// with the versions 3.1 to 3.3, which hold one ClientHello and nothing else.
type greeting struct {
	read    int    // bytes of the records that were whole
	message []byte // what these records hold
}

// next looks at all bytes that have come so far. why says in words what is
// unacceptable.
func (g *greeting) next(data []byte) (what verdict, h hello, why string) {
	if what, why := protocolOf(data); what != tlsHello {
		return what, hello{}, why
	}
	for {
		rest := data[g.read:]
		if len(rest) < recordHeader {
			break
		}
		length := int(binary.BigEndian.Uint16(rest[3:]))
		switch {
		case rest[0] != recordHandshake:
			return unacceptable, hello{}, fmt.Sprintf("a record of type %d before the end of the hello", rest[0])
		case rest[1] != versionMajor || rest[2] < minorLowest || rest[2] > minorHighest:
			return unacceptable, hello{}, fmt.Sprintf("the record version %d.%d", rest[1], rest[2])
		case length == 0 || length > maxRecord:
			return unacceptable, hello{}, fmt.Sprintf("a record of %d bytes", length)
		case g.read+recordHeader+length > maxGreeting:
			return unacceptable, hello{}, tooLong
		}
		if len(rest) < recordHeader+length {
			break
		}
		g.message = append(g.message, rest[recordHeader:recordHeader+length]...)
		g.read += recordHeader + length
		whole, why := isWhole(g.message)
		if why == "" && whole {
			h, why = readHello(g.message[messageHeader:])
			h.size = g.read
		}
		switch {
		case why != "":
			return unacceptable, hello{}, why
		case whole:
			return tlsHello, h, ""
		}
	}
	if len(data) >= maxGreeting {
		return unacceptable, hello{}, tooLong
	}
	return unfinished, hello{}, ""
}

// protocolOf tells TLS from other protocols by the first bytes. No server of
// TLS accepts a record of another type. Some accept the hello of SSL 2, which
// can ask for a later version, but has no place for the server's name.
func protocolOf(data []byte) (what verdict, why string) {
	switch {
	case len(data) == 0:
		return unfinished, ""
	case data[0] >= recordLowest && data[0] <= recordHighest:
		return tlsHello, ""
	case data[0] < ssl2Lowest || data[0] > ssl2Highest:
		return otherProtocol, ""
	case len(data) <= ssl2MessageAt:
		return unfinished, ""
	case data[ssl2MessageAt] == messageHello:
		return unacceptable, "a hello in the form of SSL 2"
	}
	return otherProtocol, ""
}

// isWhole reports whether a message is complete, and is a ClientHello so far.
func isWhole(message []byte) (whole bool, why string) {
	if message[0] != messageHello {
		return false, fmt.Sprintf("a message of type %d in the place of the hello", message[0])
	}
	if len(message) < messageHeader {
		return false, ""
	}
	size := messageHeader + int(message[1])<<16 + int(message[2])<<8 + int(message[3])
	switch {
	case size > maxGreeting:
		return false, tooLong
	case len(message) > size:
		return false, "bytes behind the hello in its record"
	}
	return len(message) == size, ""
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

// readHello reads a ClientHello without its header.
func readHello(message []byte) (h hello, why string) {
	r := &reader{data: message, ok: true}
	major, minor := r.number(1), r.number(1)
	r.take(randomLength)
	session, suites, compression := r.vector(1), r.vector(2), r.vector(1)
	switch {
	case !r.ok || len(suites.data) == 0 || len(suites.data)%2 != 0 || len(compression.data) == 0 ||
		len(session.data) > maxSession:
		return hello{}, "a hello that cannot be read"
	case major != versionMajor || minor < minorLowest || minor > minorHighest:
		return hello{}, fmt.Sprintf("a hello of version %d.%d", major, minor)
	case len(r.data) == 0:
		return hello{}, "" // before TLS 1.3 there may be no extensions
	}
	list := r.vector(2)
	if !r.ok || len(r.data) > 0 {
		return hello{}, "a hello with extensions that cannot be read"
	}
	seen := map[int]bool{}
	for len(list.data) > 0 {
		kind, content := list.number(2), list.vector(2)
		switch {
		case !list.ok:
			return hello{}, "a hello with extensions that cannot be read"
		case seen[kind]:
			return hello{}, fmt.Sprintf("a hello that has the extension %d twice", kind)
		}
		seen[kind] = true
		switch kind {
		case extensionECH, extensionECHObsolete:
			h.encrypted = true
		case extensionName:
			if h.name, why = oneName(content); why != "" {
				return hello{}, why
			}
		}
	}
	return h, ""
}

// oneName reads the extension server_name (RFC 6066). A list of several names
// is refused: nobody knows which one the server takes.
func oneName(content reader) (name, why string) {
	list := content.vector(2)
	kind, text := list.number(1), list.vector(2)
	if !text.ok || kind != nameHost || len(content.data) > 0 || len(list.data) > 0 {
		return "", "a hello whose server name cannot be read"
	}
	name, valid := hosts.Canonical(string(text.data))
	if !valid {
		return "", "a hello whose server name is not the name of a host"
	}
	return name, ""
}
