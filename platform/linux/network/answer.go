package network

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
)

// lifetime is how long programs may keep an answer, in seconds: an address
// belongs to its name only as long as the session uses it.
const lifetime = 1

// The sizes of messages over UDP: what every client takes (RFC 1035), and the
// most that is sent.
const (
	leastUDP = 512
	mostUDP  = 4096
)

// query is a question that somebody has to answer.
type query struct {
	header   dnsmessage.Header
	question dnsmessage.Question
	// name is canonical; empty if the question is about no host.
	name string
	// room is the size of the longest answer over UDP.
	room int
	// malformed: the message is more or less than one question.
	malformed bool
}

// readQuery reads a message. It returns false for what has no answer: what is
// no question, or has no whole header. The query has malformed set if the rest
// is not exactly one question, with nothing else but options (RFC 6891).
func readQuery(message []byte) (query, bool) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil || header.Response {
		return query{}, false
	}
	q := query{header: header, room: leastUDP, malformed: true}
	question, err := p.Question()
	if err != nil {
		return q, true
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return q, true
	}
	if _, err := p.AnswerHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return q, true
	}
	if _, err := p.AuthorityHeader(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return q, true
	}
	options := false
	for {
		h, err := p.AdditionalHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err != nil || h.Type != dnsmessage.TypeOPT || h.Name.String() != "." || options {
			return q, true
		}
		if p.SkipAdditional() != nil {
			return q, true
		}
		options = true
		q.room = min(max(int(h.Class), leastUDP), mostUDP)
	}
	q.question, q.malformed = question, false
	q.name, _ = hosts.Canonical(q.question.Name.String())
	return q, true
}

// reply builds an answer. Resources that do not fit are left out.
func (q query) reply(code dnsmessage.RCode, resources ...dnsmessage.ResourceBody) []byte {
	message := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: q.header.ID, Response: true, OpCode: q.header.OpCode, RecursionDesired: q.header.RecursionDesired,
			RecursionAvailable: true, RCode: code,
		},
	}
	if !q.malformed {
		message.Questions = []dnsmessage.Question{q.question}
	}
	for _, body := range resources {
		message.Answers = append(message.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.question.Name, Class: dnsmessage.ClassINET, TTL: lifetime},
			Body:   body,
		})
	}
	packed, err := message.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// truncated is the answer over UDP to a question whose real one is too long
// for that. The client asks again over TCP.
func (q query) truncated() []byte {
	packed := q.reply(dnsmessage.RCodeSuccess)
	const flags, truncation = 2, 0x02 // the byte with the bit TC (RFC 1035)
	if len(packed) > flags {
		packed[flags] |= truncation
	}
	return packed
}

// answer answers what needs no other machine. forward says that the question
// must be asked outside.
func (r *Resolver) answer(q query) (message []byte, forward bool) {
	switch {
	case q.header.OpCode != 0:
		return q.reply(dnsmessage.RCodeNotImplemented), false
	case q.malformed:
		return q.reply(dnsmessage.RCodeFormatError), false
	case q.question.Class != dnsmessage.ClassINET && q.question.Class != dnsmessage.ClassANY:
		return q.reply(dnsmessage.RCodeRefused), false
	case q.question.Type == dnsmessage.TypePTR:
		return r.reverse(q), false
	case q.name == "":
		return q.reply(dnsmessage.RCodeNameError), false
	case q.name == "localhost" || strings.HasSuffix(q.name, ".localhost"):
		return q.local(), false
	case (!strings.Contains(q.name, ".") || r.isSearched(q.name)) && !r.rules.Named(q.name):
		return q.reply(dnsmessage.RCodeNameError), false
	}
	switch q.question.Type {
	case dnsmessage.TypeA, dnsmessage.TypeALL:
		addr, ok := r.names.Address(q.name)
		if !ok {
			return q.reply(dnsmessage.RCodeServerFailure), false
		}
		return q.reply(dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: addr.As4()}), false
	case dnsmessage.TypeSRV, dnsmessage.TypeMX, dnsmessage.TypeTXT:
		if q.name != hosts.HostName && r.rules.Named(owner(q.name, q.question.Type)) {
			return nil, true
		}
		return q.reply(dnsmessage.RCodeRefused), false
	}
	return q.reply(dnsmessage.RCodeSuccess), false
}

// isSearched reports whether programs may have made a name themselves, from
// another one and a domain of the machine's configuration.
func (r *Resolver) isSearched(name string) bool {
	return slices.ContainsFunc(r.searched, func(domain string) bool { return strings.HasSuffix(name, "."+domain) })
}

// local answers about the session's own loopback interface (RFC 6761).
func (q query) local() []byte {
	switch q.question.Type {
	case dnsmessage.TypeA:
		return q.reply(dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}})
	case dnsmessage.TypeAAAA:
		return q.reply(dnsmessage.RCodeSuccess, &dnsmessage.AAAAResource{AAAA: netip.IPv6Loopback().As16()})
	}
	return q.reply(dnsmessage.RCodeSuccess)
}

// reverse answers which name an address of the session's own has.
func (r *Resolver) reverse(q query) []byte {
	addr, ok := reversed(q.name)
	if !ok {
		return q.reply(dnsmessage.RCodeNameError)
	}
	name, found := "localhost", addr.IsLoopback()
	if !found {
		name, found = r.names.Name(addr)
	}
	target, err := dnsmessage.NewName(name + ".")
	if !found || err != nil {
		return q.reply(dnsmessage.RCodeNameError)
	}
	return q.reply(dnsmessage.RCodeSuccess, &dnsmessage.PTRResource{PTR: target})
}

// reversed reads the name that asks for the name of an IPv4 address.
func reversed(name string) (netip.Addr, bool) {
	digits, is := strings.CutSuffix(name, ".in-addr.arpa")
	parts := strings.Split(digits, ".")
	var raw [4]byte
	if !is || len(parts) != len(raw) {
		return netip.Addr{}, false
	}
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		raw[len(raw)-1-i] = byte(number)
	}
	return netip.AddrFrom4(raw), true
}

// framed puts the length in front of a message, as over TCP.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}
