package outbound

import (
	"bytes"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
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
		"usual": good, "record version 3.2": record(22, 3, 2, usual), "record version 3.3": record(22, 3, 3, usual),
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
			record(22, 2, 1, usual), record(22, 0, 0, usual), record(22, 4, 1, usual), record(22, 3, 0, usual),
			record(22, 3, 4, usual), slices.Concat(record(22, 3, 1, usual[:50]), record(22, 2, 1, usual[50:])),
		},
		"a record of type": {
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
		"the form of SSL 2": {[]byte("\x80\x2e\x01\x03\x01"), []byte("\x80\x2e\x01\x00\x02"), []byte("\xbf\xff\x01")},
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
	} {
		if what, _, why := new(greeting).next([]byte(text)); what != otherProtocol {
			t.Errorf("%q: %v %q", text, what, why)
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
			if early, _, _ := pieces.next(data[:n]); early != unfinished && early != what {
				t.Fatalf("%d bytes are %v, all are %v", n, early, what)
			}
		}
	})
}
