package network

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts/loopback"
)

func TestNames_KeepTheirAddressesWhileTheyAreUsed(t *testing.T) {
	t.Parallel()
	names := NewNames(100)
	held, _ := names.Address("held.example")
	name, release, found := names.Hold(held)
	if !found || name != "held.example" {
		t.Fatalf("%q, %v", name, found)
	}
	_, second, _ := names.Hold(held)
	seen := map[netip.Addr]string{}
	for i := range 200_000 {
		name := fmt.Sprintf("n%d.example", i)
		addr, ok := names.Address(name)
		if !ok || !loopback.Own.Contains(addr) || loopback.Reserved.Contains(addr) || addr == held {
			t.Fatalf("%s has %v, %v", name, addr, ok)
		}
		if again, _ := names.Address(name); again != addr {
			t.Fatalf("%s has %v, then %v", name, addr, again)
		}
		const soon = 100_000
		if len(seen) < soon && seen[addr] != "" {
			t.Fatalf("%s has the address of %s", name, seen[addr])
		}
		seen[addr] = name
	}
	if len(names.byName) != 100 || len(names.byAddr) != 100 {
		t.Errorf("%d names, %d addresses", len(names.byName), len(names.byAddr))
	}
	if got, _ := names.Address("held.example"); got != held {
		t.Errorf("a name in use moved from %v to %v", held, got)
	}
	release()
	release() // twice is once
	if names.byName["held.example"].place != nil {
		t.Error("a name with a connection counts as unused")
	}
	second()
	for i := range 100 {
		names.Address(fmt.Sprintf("more%d.example", i))
	}
	if _, found := names.Name(held); found {
		t.Error("an unused name is never forgotten")
	}
}

func TestNames_RefuseWhenAllAreInUse(t *testing.T) {
	t.Parallel()
	names := NewNames(1)
	addr, _ := names.Address("a.example")
	_, release, _ := names.Hold(addr)
	if _, ok := names.Address("b.example"); ok {
		t.Error("a name in use was forgotten")
	}
	release()
	if _, ok := names.Address("b.example"); !ok {
		t.Error("refused although nothing is in use")
	}
	if _, _, found := names.Hold(addr); found {
		t.Error("a forgotten address has a name")
	}
}

// Whatever a session sends, the answer is a message, and no question is asked
// outside that is not about an allowed name.
func FuzzAnswer(f *testing.F) {
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeTXT, dnsmessage.TypePTR, 65} {
		for _, name := range []string{"allowed.example.", "evil.example.", "a.", ".", "1.0.18.198.in-addr.arpa."} {
			m := dnsmessage.Message{Questions: []dnsmessage.Question{{
				Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET,
			}}}
			packed, err := m.Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(packed)
			f.Add(append(packed, packed...))
			f.Add(append([]byte("\x00\x07\x01\x00\x00\x02\x00\x01\x00\x01\x00\x02"), packed[12:]...))
		}
	}
	allowed, err := hosts.ParseAllowed("allowed.example")
	if err != nil {
		f.Fatal(err)
	}
	r := &Resolver{names: NewNames(1000), rules: hosts.New([]hosts.Pattern{allowed}, nil)}
	f.Fuzz(func(t *testing.T, message []byte) {
		q, ok := readQuery(message)
		if !ok {
			return
		}
		answer, forward := r.answer(q)
		if forward {
			if owner(q.name, q.question.Type) != "allowed.example" {
				t.Fatalf("asks outside about %q", q.name)
			}
			answer = q.truncated()
		}
		if q.malformed && (q.name != "" || len(answer) != 12) {
			t.Fatalf("answers what it does not understand: %x", answer)
		}
		var parsed dnsmessage.Message
		if err := parsed.Unpack(answer); err != nil || parsed.ID != q.header.ID || !parsed.Response {
			t.Fatalf("the answer to %q is %x: %v", q.name, answer, err)
		}
	})
}

// Exactly one question is answered, with options at most. All else is malformed.
func TestAnswer_OneQuestion(t *testing.T) {
	t.Parallel()
	allowed, err := hosts.ParseAllowed("allowed.example")
	if err != nil {
		t.Fatal(err)
	}
	r := &Resolver{names: NewNames(10), rules: hosts.New([]hosts.Pattern{allowed}, nil)}
	question := dnsmessage.Question{
		Name: dnsmessage.MustNewName("allowed.example."), Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET,
	}
	other := question
	other.Name = dnsmessage.MustNewName("evil.example.")
	record := dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET},
		Body:   &dnsmessage.AResource{},
	}
	options := dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName("."), Class: 1232},
		Body:   &dnsmessage.OPTResource{},
	}
	named := options
	named.Header.Name = question.Name
	one, list := []dnsmessage.Question{question}, func(r ...dnsmessage.Resource) []dnsmessage.Resource { return r }
	twice := list(options, options)
	const none, malformed = dnsmessage.RCodeSuccess, dnsmessage.RCodeFormatError
	for name, test := range map[string]struct {
		message dnsmessage.Message
		cut     int // bytes at its end
		code    dnsmessage.RCode
		forward bool
	}{
		"one":               {dnsmessage.Message{Questions: one}, 0, none, true},
		"with options":      {dnsmessage.Message{Questions: one, Additionals: list(options)}, 0, none, true},
		"none":              {dnsmessage.Message{}, 0, malformed, false},
		"two":               {dnsmessage.Message{Questions: append(one, other)}, 0, malformed, false},
		"the same twice":    {dnsmessage.Message{Questions: append(one, question)}, 0, malformed, false},
		"cut":               {dnsmessage.Message{Questions: one}, 1, malformed, false},
		"an answer":         {dnsmessage.Message{Questions: one, Answers: list(record)}, 0, malformed, false},
		"an authority":      {dnsmessage.Message{Questions: one, Authorities: list(record)}, 0, malformed, false},
		"another record":    {dnsmessage.Message{Questions: one, Additionals: list(record)}, 0, malformed, false},
		"options twice":     {dnsmessage.Message{Questions: one, Additionals: twice}, 0, malformed, false},
		"options of a name": {dnsmessage.Message{Questions: one, Additionals: list(named)}, 0, malformed, false},
		"options cut":       {dnsmessage.Message{Questions: one, Additionals: list(options)}, 1, malformed, false},
		"another operation": {
			dnsmessage.Message{Header: dnsmessage.Header{OpCode: 5}, Questions: append(one, other)},
			0,
			dnsmessage.RCodeNotImplemented, false,
		},
	} {
		packed, err := test.message.Pack()
		if err != nil {
			t.Fatal(err)
		}
		q, ok := readQuery(packed[:len(packed)-test.cut])
		if !ok {
			t.Errorf("%s: no answer", name)
			continue
		}
		answer, forward := r.answer(q)
		if forward != test.forward {
			t.Errorf("%s: asks outside: %t", name, forward)
		}
		if forward {
			continue
		}
		var parsed dnsmessage.Message
		if err := parsed.Unpack(answer); err != nil || parsed.RCode != test.code || len(parsed.Answers) > 0 {
			t.Errorf("%s: answered %v, %v", name, parsed.RCode, err)
		}
	}
	if _, ok := readQuery([]byte("short")); ok {
		t.Error("what has no header is answered")
	}
}

// Only names that an entry has, with known services before them, are asked
// outside.
func TestAnswer_AsksOutsideWithoutData(t *testing.T) {
	t.Parallel()
	var patterns []hosts.Pattern
	for _, text := range []string{"allowed.example", "*.below.example"} {
		pattern, err := hosts.ParseAllowed(text)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, pattern)
	}
	r := &Resolver{names: NewNames(1000), rules: hosts.New(patterns, nil)}
	const srv, mx, txt = dnsmessage.TypeSRV, dnsmessage.TypeMX, dnsmessage.TypeTXT
	for _, test := range []struct {
		name string
		kind dnsmessage.Type
		want bool
	}{
		{"allowed.example", srv, true},
		{"allowed.example", mx, true},
		{"allowed.example", txt, true},
		{"_mongodb._tcp.allowed.example", srv, true},
		{"_MongoDB._TCP.allowed.example", srv, true},
		{"_sip._udp.a.below.example", srv, true},
		{"_dmarc.allowed.example", txt, true},
		{"data.below.example", txt, true}, // connections have it, too
		{"_data.allowed.example", txt, false},
		{"_data._tcp.allowed.example", srv, false},
		{"_http._data.allowed.example", srv, false},
		{"_http._tcp._data.allowed.example", srv, false},
		{"_data._http._tcp.allowed.example", srv, false},
		{"_http._tcp.allowed.example", txt, false},
		{"_http.allowed.example", srv, false},
		{"_dmarc.allowed.example", mx, false},
		{"_dmarc._data.allowed.example", txt, false},
		{"data.allowed.example", txt, false},
		{"data.allowed.example", mx, false},
		{"_http._tcp.other.example", srv, false},
	} {
		q := query{question: dnsmessage.Question{
			Name: dnsmessage.MustNewName(test.name + "."), Type: test.kind, Class: dnsmessage.ClassINET,
		}}
		q.name, _ = hosts.Canonical(test.name)
		if _, got := r.answer(q); got != test.want {
			t.Errorf("%s %v: %t", test.name, test.kind, got)
		}
	}
}
