package outbound

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// outcome is what a server's first flight means for the client's next bytes.
type outcome int

const (
	unknown    outcome = iota // more bytes are needed
	agreed                    // the server has taken the hello
	retry                     // it asks for a second hello (HelloRetryRequest)
	unreadable                // it is no TLS, or in no usual form
)

const (
	recordAlert          = 21
	recordCipher         = 20
	recordData           = 23
	messageServer        = 2
	messageCertificate   = 11
	messageKeys          = 16 // client_key_exchange
	messageSupplement    = 23 // supplemental_data (RFC 4680), before a certificate
	randomAt             = messageHeader + 2
	maxCipher            = maxRecord + 256 // RFC 8446, 5.2
	extensionECH         = 0xfe0d
	extensionECHObsolete = 0xffce
)

// retryRandom is the random of a ServerHello that is a HelloRetryRequest
// (RFC 8446, 4.1.3).
var retryRandom = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// answer reads the first flight of a server, as far as the random.
type answer struct{ data, message []byte }

// next takes further bytes. Alerts before the answer are skipped, as clients do.
func (a *answer) next(more []byte) outcome {
	a.data = append(a.data, more...)
	for len(a.data) > 0 {
		if a.data[0] != recordHandshake && a.data[0] != recordAlert {
			return unreadable
		}
		if len(a.data) < recordHeader {
			break
		}
		length := int(binary.BigEndian.Uint16(a.data[3:]))
		if a.data[1] != versionMajor || length == 0 || length > maxRecord {
			return unreadable
		}
		if len(a.data) < recordHeader+length {
			break
		}
		if a.data[0] == recordHandshake {
			a.message = append(a.message, a.data[recordHeader:recordHeader+length]...)
		}
		a.data = a.data[recordHeader+length:]
		switch {
		case len(a.message) > 0 && a.message[0] != messageServer:
			return unreadable
		case len(a.message) < randomAt+randomLength:
			continue
		case bytes.Equal(a.message[randomAt:randomAt+randomLength], retryRandom):
			return retry
		}
		return agreed
	}
	return unknown
}

// further judges what a client sends after the server's answer. skipped is how
// many bytes of whole records may pass at once, as no server takes them for a
// hello. known is true if all that follows may pass; else more is needed.
func (j *Judge) further(first hello, to outcome, data []byte) (skipped int, refusal *Refusal, known bool) {
	for skipped < len(data) && skips(to, data[skipped]) {
		rest := data[skipped:]
		if len(rest) < recordHeader {
			return skipped, nil, false
		}
		length := int(binary.BigEndian.Uint16(rest[3:]))
		if rest[1] != versionMajor || rest[2] < minorLowest || rest[2] > minorHighest ||
			length == 0 || length > maxCipher {
			return 0, j.refuse(fmt.Sprintf("a record of type %d that cannot be read", rest[0])), true
		}
		if len(rest) < recordHeader+length {
			return skipped, nil, false
		}
		skipped += recordHeader + length
	}
	rest := data[skipped:]
	switch {
	case len(rest) == 0:
		return skipped, nil, false
	case to == retry:
		refusal, known = j.second(first, rest)
	case to == agreed:
		refusal, known = j.keys(rest)
	default:
		return 0, j.refuse("more bytes after an answer that is no TLS"), true
	}
	return skipped, refusal, known
}

// skips reports whether a client may send a record of this type before what has
// to be judged: an alert, and after a HelloRetryRequest also what was on its way
// (early data) and a change_cipher_spec.
func skips(to outcome, kind byte) bool {
	return kind == recordAlert || to == retry && (kind == recordCipher || kind == recordData)
}

// keys judges what a client sends after the server has taken its hello: keys, a
// certificate, or records that are encrypted. OpenSSL before 1.1.0 takes another
// hello at this place, in the clear, and forgets the first (Server Gated
// Cryptography). done is false if more bytes are needed.
func (j *Judge) keys(data []byte) (refusal *Refusal, done bool) {
	switch {
	case data[0] == recordCipher || data[0] == recordData:
		return nil, true
	case data[0] != recordHandshake:
		return j.refuse("bytes that are no TLS after the server's answer"), true
	case len(data) < recordHeader:
		return nil, false
	}
	switch length := binary.BigEndian.Uint16(data[3:]); {
	case length == 0:
		return j.refuse("an empty record after the server's answer"), true
	case len(data) == recordHeader:
		return nil, false
	}
	switch kind := data[recordHeader]; kind {
	case messageCertificate, messageKeys, messageSupplement:
		return nil, true
	default:
		return j.refuse(fmt.Sprintf("a message of type %d after the server's answer", kind)), true
	}
}

// second judges the hello after a HelloRetryRequest: it must be for the same
// server. done is false if more bytes are needed.
func (j *Judge) second(first hello, data []byte) (refusal *Refusal, done bool) {
	if data[0] != recordHandshake {
		return j.refuse("bytes that are no second hello"), true
	}
	var g greeting
	switch what, h, why := g.next(data); {
	case what == unfinished:
		return nil, false
	case what == otherProtocol:
		return j.refuse("bytes that are no second hello"), true
	case what == unacceptable:
		return j.refuse("in the second hello, " + why), true
	case h.name != first.name || h.encrypted != first.encrypted:
		return &Refusal{Target: j.server(h.name), Greeting: "a second hello that differs from the first"}, true
	}
	return nil, true
}
