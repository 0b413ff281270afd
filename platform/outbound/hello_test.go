package outbound

import (
	"bytes"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
)

func TestGreeting_FindsTheNameInAnyPieces(t *testing.T) {
	t.Parallel()
	short := clientHello(&tls.Config{ServerName: "Allowed.Example"})
	for name, data := range map[string][]byte{
		"one record":        short,
		"TLS 1.2":           clientHello(&tls.Config{ServerName: "allowed.example", MaxVersion: tls.VersionTLS12}),
		"records of 1 byte": records(short, 1), "records of 100 bytes": records(short, 100),
		"20 KB": longHello("allowed.example"),
	} {
		var g greeting
		for n := range len(data) {
			if what, h, why := g.next(data[:n]); what != unfinished {
				t.Fatalf("%s: %d of %d bytes are %v %+v %q", name, n, len(data), what, h, why)
			}
		}
		if what, h, why := g.next(data); what != tlsHello || h.name != "allowed.example" || h.size != len(data) {
			t.Errorf("%s: %v %+v %q", name, what, h, why)
		}
	}
	if what, h, why := new(greeting).next(clientHello(&tls.Config{})); what != tlsHello || h.name != "" {
		t.Errorf("without a name: %v %+v %q", what, h, why)
	}
}

// parts are those of a ClientHello that a case changes.
type parts struct {
	version    []byte
	session    []byte
	suites     []byte
	extensions [][]byte
	rest       []byte // behind the extensions
}

func extension(kind int, content ...byte) []byte {
	return slices.Concat([]byte{byte(kind >> 8), byte(kind)}, counted(2, content))
}

// counted puts the length of data before it, in so many bytes.
func counted(width int, data []byte) []byte {
	var length []byte
	for i := width - 1; i >= 0; i-- {
		length = append(length, byte(len(data)>>(8*i)))
	}
	return append(length, data...)
}

// serverName is the extension with these names.
func serverName(names ...string) []byte {
	var list []byte
	for _, name := range names {
		list = append(append(list, nameHost), counted(2, []byte(name))...)
	}
	return extension(extensionName, counted(2, list)...)
}

// message is the whole ClientHello.
func (p parts) message() []byte {
	body := slices.Concat(p.version, make([]byte, randomLength), counted(1, p.session), counted(2, p.suites),
		[]byte{1, 0}, counted(2, slices.Concat(p.extensions...)), p.rest)
	return append([]byte{messageHello}, counted(3, body)...)
}

func record(kind, major, minor byte, content []byte) []byte {
	return append([]byte{kind, major, minor}, counted(2, content)...)
}

// usualParts are a hello with GREASE (RFC 8701) as clients send it.
func usualParts() parts {
	return parts{
		version: []byte{3, 3}, session: make([]byte, maxSession), suites: []byte{0x8a, 0x8a, 0x13, 1},
		extensions: [][]byte{
			extension(0x3a3a), serverName("allowed.example"), extension(43, 4, 0xda, 0xda, 3, 4), extension(0xcaca, 0),
		},
	}
}

// ssl2Hello is the beginning of a hello of SSL 2, as far as the suites.
func ssl2Hello(major, minor byte, suites, session, challenge int) []byte {
	length := 9 + 3*suites + session + challenge
	data := []byte{byte(0x80 | length>>8), byte(length), 1, major, minor}
	for _, n := range []int{3 * suites, session, challenge} {
		data = append(data, byte(n>>8), byte(n))
	}
	return data
}

// Of all forms that some server takes, only one passes.
func TestGreeting_OnlyOneFormOfTLSPasses(t *testing.T) {
	t.Parallel()
	changed := func(change func(*parts)) []byte {
		p := usualParts()
		change(&p)
		return record(recordHandshake, 3, 1, p.message())
	}
	usual := usualParts().message()
	good := record(recordHandshake, 3, 1, usual)
	// Positive controls.
	for name, data := range map[string][]byte{
		"usual": good, "record version 3.0": record(22, 3, 0, usual),
		"record version 3.2": record(22, 3, 2, usual), "record version 3.3": record(22, 3, 3, usual),
		"followed by early data": slices.Concat(good, record(23, 3, 3, []byte("early"))),
		"no extensions at all": record(22, 3, 1, append([]byte{messageHello}, counted(3, slices.Concat([]byte{3, 1},
			make([]byte, randomLength), []byte{0, 0, 2, 0, 47, 1, 0}))...)),
	} {
		want := "allowed.example"
		if name == "no extensions at all" {
			want = ""
		}
		if what, h, why := new(greeting).next(data); what != tlsHello || h.name != want {
			t.Errorf("%s: %v %+v %q", name, what, h, why)
		}
	}
	for why, cases := range map[string][][]byte{
		"the record version": {
			record(22, 2, 1, usual), record(22, 0, 0, usual), record(22, 4, 1, usual), record(22, 3, 4, usual),
			record(22, 255, 255, usual), record(22, 2, 1, usual[:1]),
			slices.Concat(record(22, 3, 1, usual[:50]), record(22, 2, 1, usual[50:])),
		},
		"a record of type": {
			record(21, 2, 1, []byte{1, 0x5a}), record(21, 0, 0, []byte{0, 0x5a, 7, 7}), record(20, 9, 9, []byte{1}),
			record(24, 3, 2, []byte{1}), record(23, 3, 0, nil), record(21, 3, 3, []byte{2, 0}),
			slices.Concat(record(21, 3, 1, []byte{1, 0}), good), slices.Concat(record(20, 3, 3, []byte{1}), good),
			slices.Concat(record(23, 3, 3, []byte{1}), good),
			slices.Concat(record(22, 3, 1, usual[:50]), record(21, 3, 1, []byte{1, 0}), record(22, 3, 1, usual[50:])),
		},
		"a record of 0 bytes":     {slices.Concat(record(22, 3, 1, nil), good)},
		"a record of 16385 bytes": {record(22, 3, 1, make([]byte, maxRecord+1))},
		"a message of type": {
			record(22, 3, 1, slices.Concat([]byte{0, 0, 0, 0}, usual)), record(22, 3, 1, []byte{2, 0, 0, 0}),
		},
		"bytes behind the hello": {
			record(22, 3, 1, append(slices.Clone(usual), 0)), record(22, 3, 1, slices.Concat(usual, usual)),
		},
		"a hello of more than 64 KiB": {
			record(22, 3, 1, []byte{1, 1, 0, 0}),
			bytes.Repeat(record(22, 9, 9, nil), maxGreeting/recordHeader+1),
			records(record(22, 3, 1, append([]byte{1, 0, 0xf0, 0}, make([]byte, 0xf000)...)), 1),
		},
		"a hello of version": {
			changed(func(p *parts) { p.version = []byte{3, 0} }), changed(func(p *parts) { p.version = []byte{3, 4} }),
			changed(func(p *parts) { p.version = []byte{2, 3} }),
		},
		"a hello that cannot be read": {
			changed(func(p *parts) { p.session = make([]byte, maxSession+1) }),
			changed(func(p *parts) { p.suites = nil }), changed(func(p *parts) { p.suites = []byte{19} }),
			record(22, 3, 1, []byte{1, 0, 0, 2, 3, 3}),
		},
		"extensions that cannot be read": {
			changed(func(p *parts) { p.rest = []byte{0} }),
			changed(func(p *parts) { p.extensions = append(p.extensions, []byte{0, 9, 0, 9}) }),
			changed(func(p *parts) { p.extensions[1] = append(serverName("allowed.example"), 0) }),
		},
		"the extension 0 twice": {
			changed(func(p *parts) { p.extensions = append(p.extensions, serverName("evil.example")) }),
		},
		"the extension 43 twice": {
			changed(func(p *parts) { p.extensions = append(p.extensions, extension(43)) }),
		},
		"server name cannot be read": {
			changed(func(p *parts) { p.extensions[1] = serverName("allowed.example", "evil.example") }),
			changed(func(p *parts) { p.extensions[1] = serverName() }),
			changed(func(p *parts) { p.extensions[1] = extension(0) }),
			changed(func(p *parts) { p.extensions[1] = extension(0, 0, 4, 1, 0, 1, 'a') }), // of another kind
		},
		"not the name of a host": {
			changed(func(p *parts) { p.extensions[1] = serverName("allowed.example\x00.evil.example") }),
			changed(func(p *parts) { p.extensions[1] = serverName("93.184.216.34") }),
			changed(func(p *parts) { p.extensions[1] = serverName("") }),
		},
		"the form of SSL 2": {
			ssl2Hello(3, 1, 7, 0, 16), ssl2Hello(3, 3, 1, 0, 32), ssl2Hello(0, 2, 1, 16, 16),
			ssl2Hello(3, 200, 5440, 0, 32),
		},
	} {
		for i, data := range cases {
			if what, _, said := new(greeting).next(data); what != unacceptable || !strings.Contains(said, why) {
				t.Errorf("%s, %d: %v %q", why, i, what, said)
			}
		}
	}
}

func TestGreeting_LeavesOtherProtocolsAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\x00", "\xff\xfd\x01", "\x80\x00\x00\x28", "\x05\x01\x00",
		"\x94\x00\x01\xa4ping\x90",            // msgpack-rpc
		"\x82\x21\x01\x03get\x00\x00\x00\x00", // Thrift's compact protocol
		"\x80\x2e\x01\x00\x03", "\xff\xfd\x01",
	} {
		if what, _, why := new(greeting).next([]byte(text)); what != otherProtocol {
			t.Errorf("%q: %v %q", text, what, why)
		}
	}
}

// mysql is a client's first packet (HandshakeResponse41) of this length, without
// its header.
func mysql(length int) []byte {
	capabilities := []byte{0x8d, 0xa6, 0xff, 0x09} // of MariaDB's client
	packet := append([]byte{byte(length), byte(length >> 8), byte(length >> 16), 1}, capabilities...)
	packet = append(packet, 0, 0, 0, 1, 0x21)
	packet = append(packet, make([]byte, 23)...)
	packet = append(packet, "user\x00\x14aaaaaaaaaaaaaaaaaaaadatabase\x00mysql_native_password\x00"...)
	return append(packet, bytes.Repeat([]byte("a"), 4+length-len(packet))...)
}

// mongo is a client's first message (OP_MSG) of this length.
func mongo(length, request int) []byte {
	message := []byte{byte(length), byte(length >> 8), 0, 0}
	message = append(message, byte(request), byte(request>>8), byte(request>>16), byte(request>>24))
	message = append(message, 0, 0, 0, 0, 0xdd, 7, 0, 0, 0, 0, 0, 0, 0)
	return append(message, make([]byte, length-len(message))...)
}

// Messages that begin with their length pass at every length, also if its lowest
// byte is a type of TLS.
func TestGreeting_LeavesMessagesWithTheirLengthAlone(t *testing.T) {
	t.Parallel()
	seen := 0
	check := func(name string, length int, message []byte) {
		what, _, why := new(greeting).next(message)
		if what != otherProtocol {
			t.Errorf("%s of %d bytes: %v %q", name, length, what, why)
		}
		if message[0] >= 20 && message[0] <= 23 {
			seen++
		}
	}
	for length := 100; length < 700; length++ {
		check("MySQL", length, mysql(length))
		for _, request := range []int{0, 1, 2, 3, 4, 20, 255, 512, 1000, 65535, 1804289383} {
			check("MongoDB", length, mongo(length, request))
		}
	}
	if seen == 0 {
		t.Error("no length began like TLS")
	}
}

// At a port that serves TLS the same message is refused as another protocol, and
// the refusal names the entry that passes it.
func TestJudge_NamesTheEntryForAnotherProtocol(t *testing.T) {
	t.Parallel()
	packet := mysql(0x116)
	for entry, refused := range map[string]bool{
		"allowed.example": true, "tcp://allowed.example:443": false, "tls://allowed.example:3306": true,
		"allowed.example:3306": false, "allowed.example:443": true,
	} {
		to := Target{Name: "allowed.example", Port: 443}
		if strings.HasSuffix(entry, ":3306") {
			to.Port = 3306
		}
		want := &Refusal{Target: "tcp://" + to.String(), Greeting: "another protocol than TLS"}
		judge := Judge{Rules: rules(t, entry), To: to}
		_, got, done := judge.judge(new(greeting), packet)
		if !done || (got != nil) != refused || refused && *got != *want {
			t.Errorf("%s: %+v", entry, got)
		}
	}
}

// served is what a server of crypto/tls takes from the same bytes.
func served(data []byte) (name string, parsed bool) {
	conn := &recording{in: bytes.NewReader(data)}
	_ = tls.Server(conn, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, parsed = h.ServerName, true
		return nil, errors.New("enough")
	}}).Handshake()
	return name, parsed
}

// Servers take more than what passes. crypto/tls, for one, takes record versions
// below 16.0 and warnings before the hello. Whatever it finds a name in must not
// pass as another protocol, nor with another name.
func FuzzGreeting(f *testing.F) {
	for _, config := range []*tls.Config{{ServerName: "a.example"}, {}, {
		ServerName: "b.example",
		MaxVersion: tls.VersionTLS12,
	}} {
		data := clientHello(config)
		f.Add(data)
		f.Add(records(data, 50))
		f.Add(slices.Concat([]byte{21, 3, 1, 0, 2, 1, 0}, data))
		f.Add(slices.Concat([]byte{20, 3, 3, 0, 1, 1}, data))
		f.Add(slices.Concat([]byte{22, 2, 1}, data[3:]))
	}
	f.Add(record(recordHandshake, 3, 1, usualParts().message()))
	f.Fuzz(func(t *testing.T, data []byte) {
		var g greeting
		what, h, why := g.next(data)
		if (what == unacceptable) != (why != "") || what == tlsHello && h.size > len(data) {
			t.Fatalf("%v %+v %q", what, h, why)
		}
		theirs, parsed := served(data)
		if parsed && (what == otherProtocol || what == tlsHello && !strings.EqualFold(h.name, theirs)) {
			t.Fatalf("we find %v %q, a server %q", what, h.name, theirs)
		}
		var pieces greeting // must give the same
		for n := range data {
			early, _, _ := pieces.next(data[:n])
			if early != unfinished && early != what {
				t.Fatalf("%d bytes are %v, all are %v", n, early, what)
			}
			if early != unfinished {
				break // nobody asks again
			}
		}
	})
}

// tolerant is a receiver that takes everything that any receiver takes that we
// know of: records of any version (wolfSSL), warnings (Go, BoringSSL), of any
// level (GnuTLS) and several in one record (OpenSSL before 1.1.0), a
// change_cipher_spec (GnuTLS), empty records (OpenSSL, BoringSSL), early data, and
// several messages in a record. It returns every name in every hello.
func tolerant(data []byte) (names []string) {
	var message []byte
	for len(data) >= recordHeader {
		length := int(data[3])<<8 | int(data[4])
		if length > maxLoose || len(data) < recordHeader+length {
			break
		}
		body := data[recordHeader : recordHeader+length]
		switch kind := data[0]; {
		case kind == recordHandshake:
			message = append(message, body...)
		case kind == recordCipher && length == 1 && body[0] == 1:
		case kind == recordAlert && length >= 2 && length%2 == 0:
			for i := 0; i < length; i += 2 {
				if body[i] == 2 || body[i+1] == 0 {
					return names
				}
			}
		default:
			return names
		}
		data = data[recordHeader+length:]
		for len(message) >= messageHeader {
			size := messageHeader + int(message[1])<<16 + int(message[2])<<8 + int(message[3])
			if message[0] != messageHello || size > 1<<18 {
				return names
			}
			if len(message) < size {
				break
			}
			names = append(names, namesOf(message[messageHeader:size])...)
			message = message[size:]
		}
	}
	return names
}

// namesOf finds the names in a hello of any version, as far as it can be read.
func namesOf(hello []byte) (names []string) {
	r := &reader{data: hello, ok: true}
	r.take(2 + randomLength)
	r.vector(1)
	r.vector(2)
	r.vector(1)
	list := r.vector(2)
	for list.ok && len(list.data) > 0 {
		kind, content := list.number(2), list.vector(2)
		if kind != extensionName {
			continue
		}
		for entries := content.vector(2); entries.ok && len(entries.data) > 0; {
			entries.number(1)
			if name := entries.vector(2); name.ok {
				names = append(names, string(name.data))
			}
		}
	}
	return names
}

// lying are beginnings for the fuzz tests: every form in every place.
func lying(add func([]byte)) {
	hello := record(recordHandshake, 3, 1, usualParts().message())
	for _, first := range [][]byte{
		nil, {21, 3, 1, 0, 2, 1, 90}, {20, 3, 3, 0, 1, 1}, {22, 3, 1, 0, 0}, {21, 0, 0, 0, 4, 1, 90, 0, 1},
	} {
		for _, version := range []byte{0, 2, 3, 15, 255} {
			one := slices.Clone(hello)
			one[1] = version
			add(slices.Concat(first, one))
			add(slices.Concat(first, records(one, 40), one))
		}
	}
	add(mysql(0x116))
	add(mongo(0x116, 1))
	add(slices.Concat(ssl2Hello(3, 1, 1, 0, 16), make([]byte, 19), hello))
}

// What passes has one name for the most tolerant receiver, too: the name that was
// judged. What passes as another protocol has none.
func FuzzTolerance(f *testing.F) {
	lying(func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		what, h, _ := new(greeting).next(data)
		switch what {
		case otherProtocol:
			if names := tolerant(data); len(names) > 0 {
				t.Fatalf("another protocol, with the names %q", names)
			}
		case tlsHello:
			for _, name := range tolerant(data[:h.size]) {
				if !strings.EqualFold(strings.TrimSuffix(name, "."), h.name) {
					t.Fatalf("we find %q, a server %q", h.name, name)
				}
			}
		}
	})
}

// After the first hello nothing passes in the clear that has another name, and
// nothing that is judged byte by byte passes in another way than at once.
func FuzzFurther(f *testing.F) {
	lying(func(data []byte) {
		f.Add(data, true)
		f.Add(data, false)
	})
	list, err := hosts.ParseAllowed("allowed.example")
	if err != nil {
		f.Fatal(err)
	}
	judge := &Judge{Rules: hosts.New([]hosts.Pattern{list}, nil), To: Target{Name: "allowed.example", Port: 443}}
	f.Fuzz(func(t *testing.T, data []byte, again bool) {
		to := agreed
		if again {
			to = retry
		}
		skipped, refusal, known := judge.further(hello{name: "allowed.example"}, to, data)
		passes := data[:skipped]
		switch {
		case refusal != nil:
			return
		case known && to == retry: // the second hello, and what is encrypted behind it
			var g greeting
			if _, h, _ := g.next(data[skipped:]); h.name != "allowed.example" {
				t.Fatalf("the second hello is for %q", h.name)
			}
			passes = data[:skipped+g.read]
		case known: // what follows a change_cipher_spec or data is encrypted
			passes = data
			if kind := data[skipped]; kind == recordCipher || kind == recordData {
				passes = data[:skipped]
			}
		}
		for _, name := range tolerant(passes) {
			if !strings.EqualFold(strings.TrimSuffix(name, "."), "allowed.example") || to == agreed {
				t.Fatalf("a hello for %q passes", name)
			}
		}
	})
}
