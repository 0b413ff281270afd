package agent

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// signing is a request to sign.
type signing struct {
	key, data []byte
	flags     uint32
}

// Flags of a request to sign (draft-ietf-sshm-ssh-agent, section 3.6.1). They
// exclude each other.
const (
	rsaSHA256 = 2
	rsaSHA512 = 4
)

// parseSigning reads a request to sign behind its first byte.
func parseSigning(rest []byte) (signing, bool) {
	fields, rest, ok := cutStrings(rest, 2)
	if !ok || len(rest) != 4 {
		return signing{}, false
	}
	s := signing{fields[0], fields[1], binary.BigEndian.Uint32(rest)}
	return s, s.flags == 0 || s.flags == rsaSHA256 || s.flags == rsaSHA512
}

// request is the request as it passes.
func (s signing) request() []byte {
	request := appendString(appendString([]byte{signRequest}, s.key), s.data)
	return binary.BigEndian.AppendUint32(request, s.flags)
}

// maySign reports whether a request to sign may pass: its key is one that the
// session may use.
func (f *Filter) maySign(client, agent net.Conn, asked signing) bool {
	plain, ok := plainKey(asked.key)
	if !ok {
		f.session.Refused("sign with a key or certificate of an unknown form")
		return false
	}
	what, name := purpose(asked.data)
	return f.mayUse(client, Use{
		Key: fingerprint(plain), Purpose: what, For: name, Comment: func() string { return comment(agent, asked.key) },
	})
}

// mayUse asks whether a key may be used. Once the client has gone, nobody waits
// for the answer.
func (f *Filter) mayUse(client net.Conn, use Use) bool {
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		awaitEnd(client)
		cancel()
	}()
	may := f.session.MayUse(ctx, use) && ctx.Err() == nil
	_ = client.SetReadDeadline(time.Unix(1, 0)) // ends awaitEnd
	<-gone
	_ = client.SetReadDeadline(time.Time{})
	cancel()
	return may
}

// awaitEnd returns once a connection has ended or has a read deadline. What it
// has sent meanwhile stays to be read.
func awaitEnd(c net.Conn) {
	socket, is := c.(*net.UnixConn)
	if !is {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		// A client that has sent its next request early is still there. The
		// runtime waits for the next event then.
		return err == nil && n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR
	})
}

// fingerprint is the name of a key, as ssh-add -l shows it.
func fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// certificates maps the kinds of certificates to the kinds of their keys, and
// to the number of fields of such a key (PROTOCOL.certkeys of OpenSSH).
var certificates = map[string]struct {
	kind   string
	fields int
}{
	"ssh-ed25519-cert-v01@openssh.com":            {"ssh-ed25519", 1},
	"ssh-rsa-cert-v01@openssh.com":                {"ssh-rsa", 2},
	"rsa-sha2-256-cert-v01@openssh.com":           {"ssh-rsa", 2},
	"rsa-sha2-512-cert-v01@openssh.com":           {"ssh-rsa", 2},
	"ecdsa-sha2-nistp256-cert-v01@openssh.com":    {"ecdsa-sha2-nistp256", 2},
	"ecdsa-sha2-nistp384-cert-v01@openssh.com":    {"ecdsa-sha2-nistp384", 2},
	"ecdsa-sha2-nistp521-cert-v01@openssh.com":    {"ecdsa-sha2-nistp521", 2},
	"sk-ssh-ed25519-cert-v01@openssh.com":         {"sk-ssh-ed25519@openssh.com", 2},
	"sk-ecdsa-sha2-nistp256-cert-v01@openssh.com": {"sk-ecdsa-sha2-nistp256@openssh.com", 3},
}

// maxFields bounds the fields of a key. Those of ssh-dss are four.
const maxFields = 8

// plainKey is the key in a certificate, or the key itself. A certificate has the
// fingerprint of its key. It is false if nobody knows where the key is in it, and
// if anything is missing or more.
func plainKey(blob []byte) ([]byte, bool) {
	kind, rest, ok := cutString(blob)
	if !ok || len(kind) == 0 {
		return nil, false
	}
	if !strings.Contains(string(kind), "-cert-v") {
		// Every kind is a list of strings.
		for range maxFields {
			if _, rest, ok = cutString(rest); !ok {
				return nil, false
			}
			if len(rest) == 0 {
				return blob, true
			}
		}
		return nil, false
	}
	known, is := certificates[string(kind)]
	_, rest, ok = cutString(rest) // the nonce
	if !is || !ok {
		return nil, false
	}
	fields, rest, ok := cutStrings(rest, known.fields)
	if !ok || !endsCertificate(rest) {
		return nil, false
	}
	plain := appendString(nil, []byte(known.kind))
	for _, field := range fields {
		plain = appendString(plain, field)
	}
	return plain, true
}

// endsCertificate reports whether a text is exactly what follows the key in a
// certificate.
func endsCertificate(rest []byte) bool {
	const serialAndType, times = 8 + 4, 8 + 8
	if len(rest) < serialAndType {
		return false
	}
	_, rest, ok := cutStrings(rest[serialAndType:], 2) // name, principals
	if !ok || len(rest) < times {
		return false
	}
	_, rest, ok = cutStrings(rest[times:], 5) // critical, extensions, reserved, authority's key, signature
	return ok && len(rest) == 0
}

// userAuth is the message of the ssh protocol that a login signs (RFC 4252,
// section 7).
const userAuth = 50

// purpose says what a signature is for, and the name in it. No other protocol
// takes it for anything else, so a session cannot lie about that.
func purpose(data []byte) (what, name string) {
	if rest, is := strings.CutPrefix(string(data), "SSHSIG"); is { // PROTOCOL.sshsig
		namespace, _, ok := cutString([]byte(rest))
		return named("to sign for", namespace, ok)
	}
	_, rest, ok := cutString(data) // the connection's id
	if !ok || len(rest) == 0 || rest[0] != userAuth {
		return "", ""
	}
	user, _, ok := cutString(rest[1:])
	return named("to log in as", user, ok)
}

// maxName bounds names of keys.
const maxName = 64

func named(what string, name []byte, ok bool) (string, string) {
	if !ok {
		return "", ""
	}
	return what, string(name)
}

// commentTimeout is how long an agent may take to list its keys for a question.
const commentTimeout = 5 * time.Second

// comment is what the agent calls a key; "" if it does not say.
func comment(agent net.Conn, key []byte) string {
	_ = agent.SetDeadline(time.Now().Add(commentTimeout))
	defer func() { _ = agent.SetDeadline(time.Time{}) }()
	answer, err := ask(agent, []byte{requestIdentities})
	if err != nil || answer[0] != identitiesAnswer || len(answer) < 5 {
		return ""
	}
	for rest := answer[5:]; len(rest) > 0; {
		blob, after, ok := cutString(rest)
		if !ok {
			return ""
		}
		text, next, ok := cutString(after)
		if !ok {
			return ""
		}
		if slices.Equal(blob, key) {
			return string(text[:min(len(text), maxName)])
		}
		rest = next
	}
	return ""
}

// cutString splits off a string of the ssh protocol.
func cutString(data []byte) (text, rest []byte, ok bool) {
	if len(data) < 4 {
		return nil, nil, false
	}
	size := binary.BigEndian.Uint32(data)
	if data = data[4:]; uint64(size) > uint64(len(data)) {
		return nil, nil, false
	}
	return data[:size], data[size:], true
}

// cutStrings splits off so many strings.
func cutStrings(data []byte, count int) (fields [][]byte, rest []byte, ok bool) {
	for range count {
		var field []byte
		if field, data, ok = cutString(data); !ok {
			return nil, nil, false
		}
		fields = append(fields, field)
	}
	return fields, data, true
}

func appendString(to, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...)
}
