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
	recordHighest     = 24 // heartbeat
	recordHeader      = 5
	maxRecord         = 1 << 14
	versionMajor      = 3 // of TLS 1.0 to 1.3
	minorLowest       = 0 // in records: old clients of GnuTLS begin with 3.0
	minorHello        = 1
	minorHighest      = 3
	messageHello      = 1
	messageHeader     = 4
	randomLength      = 32
	maxSession        = 32
	extensionName     = 0
	nameHost          = 0
	ssl2Lowest        = 0x80 // the first byte of a record's length, up to 16 KiB
	ssl2Highest       = 0xc5 // OpenSSL's buffer has no room for more
	ssl2MessageAt     = 2
	ssl2VersionAt     = 3
	ssl2Minor         = 2 // SSL 2.0 is 0.2
	ssl2SuitesAt      = 5
	ssl2HeaderLength  = 11
	ssl2SuiteLength   = 3
	smallestHello     = 38      // with nothing but the version, the random, and empty vectors
	largestHello      = 1 << 18 // OpenSSL and GnuTLS take 128 KiB
	maxLoose          = 1<<14 + 1<<12
	alertLength       = 2
	alertFatal        = 2
	alertClose        = 0       // close_notify
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
// with the versions 3.0 to 3.3, which hold one ClientHello and nothing else.
type greeting struct {
	read    int    // bytes of the records that were whole
	message []byte // what these records hold
}

// next looks at all bytes that have come so far. why says in words what is
// unacceptable.
func (g *greeting) next(data []byte) (what verdict, h hello, why string) {
	switch what, why := protocolOf(data); {
	case what == unfinished && len(data) >= maxGreeting:
		return unacceptable, hello{}, tooLong
	case what != tlsHello:
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

// protocolOf tells TLS from other protocols by the first bytes. What a server of
// TLS could take for a record is TLS, in whatever form. Some servers accept the
// hello of SSL 2, too. It can ask for a later version, but has no place for the
// server's name.
func protocolOf(data []byte) (what verdict, why string) {
	switch {
	case len(data) == 0:
		return unfinished, ""
	case data[0] >= recordLowest && data[0] <= recordHighest:
		return recordOf(data), ""
	case data[0] >= ssl2Lowest && data[0] <= ssl2Highest:
		return ssl2Of(data)
	}
	return otherProtocol, ""
}

// recordOf tells a record of TLS from a message of another protocol that begins
// with its own length, such as those of MySQL and MongoDB. With the version 3.x
// everything is TLS. Servers that do not look at the version (Go, wolfSSL) still
// look at the content: with another version it is TLS if they would go on.
func recordOf(data []byte) verdict {
	for len(data) >= recordHeader && data[0] == recordHandshake && data[1] != versionMajor && data[3]|data[4] == 0 {
		data = data[recordHeader:] // empty, which some servers skip
	}
	switch {
	case len(data) == 0:
		return unfinished
	case data[0] < recordLowest || data[0] > recordHighest:
		return otherProtocol
	case len(data) < 2:
		return unfinished
	case data[1] == versionMajor:
		return tlsHello
	case len(data) < recordHeader:
		return unfinished
	}
	length := int(binary.BigEndian.Uint16(data[3:]))
	body := data[recordHeader:min(len(data), recordHeader+length)]
	switch {
	case length == 0 || length > maxLoose:
		return otherProtocol
	case len(body) == 0:
		return unfinished
	case data[0] == recordCipher && length == 1 && body[0] == 1:
		return tlsHello
	case data[0] == recordAlert:
		return alertsOf(body, length)
	case data[0] == recordHandshake && body[0] == messageHello:
		return helloOf(body, length)
	}
	return otherProtocol // nobody takes data or a heartbeat before a hello
}

// helloOf looks at the length of a hello, of which a record has the beginning.
func helloOf(body []byte, length int) verdict {
	if len(body) < messageHeader {
		return tlsIf(len(body) == length)
	}
	size := int(body[1])<<16 + int(body[2])<<8 + int(body[3])
	if size < smallestHello || size > largestHello {
		return otherProtocol
	}
	return tlsHello
}

// tlsIf is TLS if no further bytes count.
func tlsIf(certain bool) verdict {
	if certain {
		return tlsHello
	}
	return unfinished
}

// alertsOf tells whether a server could go on after a record that has alerts of
// two bytes: it ends the connection at a fatal one and at close_notify.
func alertsOf(body []byte, length int) verdict {
	if length%alertLength != 0 {
		return otherProtocol
	}
	for i := 0; i+1 < len(body); i += alertLength {
		if body[i] == alertFatal || body[i+1] == alertClose {
			return otherProtocol
		}
	}
	return tlsIf(len(body) == length)
}

// ssl2Of finds the hello of SSL 2 with the version 2.0 or 3.x (RFC 5246, E.2).
// Its parts fill the message.
func ssl2Of(data []byte) (what verdict, why string) {
	version := data[min(ssl2VersionAt, len(data)):]
	switch {
	case len(data) > ssl2MessageAt && data[ssl2MessageAt] != messageHello,
		len(version) > 0 && version[0] != versionMajor && version[0] != 0,
		len(version) > 1 && version[0] == 0 && version[1] != ssl2Minor:
		return otherProtocol, ""
	case len(data) < ssl2HeaderLength:
		return unfinished, ""
	}
	r := reader{data: data, ok: true}
	length := r.number(2) &^ (ssl2Lowest << 8)
	r.take(ssl2SuitesAt - 2)
	suites, session, challenge := r.number(2), r.number(2), r.number(2)
	if suites == 0 || suites%ssl2SuiteLength != 0 || ssl2HeaderLength-2+suites+session+challenge > length {
		return otherProtocol, ""
	}
	return unacceptable, "a hello in the form of SSL 2"
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
	case major != versionMajor || minor < minorHello || minor > minorHighest:
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
