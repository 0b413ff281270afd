package network

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// Bounds of what a session can make the resolver do at a time.
const (
	maxForwarded   = 16
	maxStreams     = 64
	forwardTimeout = 5 * time.Second
	streamTimeout  = 10 * time.Second
)

// Resolver is the only DNS server that a session can reach. It gives every name
// an address of the session's own. So no question leaves this machine, except
// for other records of allowed names.
type Resolver struct {
	names *Names
	rules *hosts.Rules
	quota *outbound.Quota // of names that are asked outside

	ctx  context.Context
	stop context.CancelFunc
	udp  net.PacketConn // nil, as tcp, if nobody listens for the session
	tcp  net.Listener
	// searched are domains below which programs look for names because the
	// machine's configuration says so. Names in them that are not allowed do not
	// exist.
	searched []string
	forward  chan struct{} // holds a token for each question that is asked outside
	streams  chan struct{} // holds a token for each connection
	running  sync.WaitGroup
}

// NewResolver answers on two sockets, of which it takes ownership, until Close.
func NewResolver(
	names *Names, rules *hosts.Rules, quota *outbound.Quota, udp net.PacketConn, tcp net.Listener,
) *Resolver {
	r := newResolver(names, rules, quota)
	r.udp, r.tcp = udp, tcp
	r.running.Go(r.serveUDP)
	r.running.Go(r.serveTCP)
	return r
}

// newResolver returns a resolver that answers on connections alone.
func newResolver(names *Names, rules *hosts.Rules, quota *outbound.Quota) *Resolver {
	r := &Resolver{
		names: names, rules: rules, quota: quota, forward: make(chan struct{}, maxForwarded),
		streams: make(chan struct{}, maxStreams),
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Close stops answering.
func (r *Resolver) Close() {
	r.stop()
	if r.udp != nil {
		r.udp.Close()
		r.tcp.Close()
	}
	r.running.Wait()
}

func (r *Resolver) serveUDP() {
	buffer := make([]byte, mostUDP)
	for {
		n, from, err := r.udp.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		q, ok := readQuery(buffer[:n])
		if err != nil || !ok {
			continue
		}
		r.resolve(q, func(message []byte) {
			if len(message) > q.room {
				message = q.truncated()
			}
			_, _ = r.udp.WriteTo(message, from)
		})
	}
}

// resolve calls reply with the answer, perhaps later and from another
// goroutine.
func (r *Resolver) resolve(q query, reply func([]byte)) {
	message, forward := r.answer(q)
	if !forward {
		reply(message)
		return
	}
	select {
	case r.forward <- struct{}{}:
		r.running.Go(func() {
			defer func() { <-r.forward }()
			reply(r.ask(q))
		})
	default:
		reply(q.reply(dnsmessage.RCodeServerFailure))
	}
}

func (r *Resolver) serveTCP() {
	for {
		conn, err := r.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		r.running.Go(func() { r.serveConn(conn) })
	}
}

// serveConn serves one connection until it ends, and closes it.
func (r *Resolver) serveConn(conn net.Conn) {
	defer conn.Close()
	select {
	case r.streams <- struct{}{}:
		defer func() { <-r.streams }()
		defer context.AfterFunc(r.ctx, func() { conn.Close() })()
		r.serveStream(conn)
	default:
	}
}

// serveStream answers one question after the other.
func (r *Resolver) serveStream(conn net.Conn) {
	for {
		_ = conn.SetDeadline(time.Now().Add(streamTimeout))
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
		q, ok := readQuery(message)
		if !ok {
			return
		}
		answer := make(chan []byte, 1)
		r.resolve(q, func(message []byte) { answer <- message })
		if _, err := conn.Write(framed(<-answer)); err != nil {
			return
		}
	}
}

// ask asks the system's resolver for a record of an allowed name.
func (r *Resolver) ask(q query) []byte {
	ctx, cancel := context.WithTimeout(r.ctx, forwardTimeout)
	defer cancel()
	var found []dnsmessage.ResourceBody
	if err := r.quota.Name(ctx, q.name); err != nil {
		return q.reply(dnsmessage.RCodeServerFailure)
	}
	var err error
	name := q.name + "."
	switch q.question.Type {
	case dnsmessage.TypeSRV:
		found, err = askSRV(ctx, name)
	case dnsmessage.TypeMX:
		found, err = askMX(ctx, name)
	default:
		found, err = askTXT(ctx, name)
	}
	var failed *net.DNSError
	switch {
	case err == nil:
		return q.reply(dnsmessage.RCodeSuccess, found...)
	case errors.As(err, &failed) && failed.IsNotFound:
		return q.reply(dnsmessage.RCodeSuccess)
	}
	return q.reply(dnsmessage.RCodeServerFailure)
}

func askSRV(ctx context.Context, name string) (list []dnsmessage.ResourceBody, err error) {
	_, found, err := net.DefaultResolver.LookupSRV(ctx, "", "", name)
	for _, s := range found {
		if target, invalid := dnsmessage.NewName(s.Target); invalid == nil {
			list = append(list, &dnsmessage.SRVResource{
				Priority: s.Priority, Weight: s.Weight, Port: s.Port, Target: target,
			})
		}
	}
	return list, err
}

func askMX(ctx context.Context, name string) (list []dnsmessage.ResourceBody, err error) {
	found, err := net.DefaultResolver.LookupMX(ctx, name)
	for _, m := range found {
		if target, invalid := dnsmessage.NewName(m.Host); invalid == nil {
			list = append(list, &dnsmessage.MXResource{Pref: m.Pref, MX: target})
		}
	}
	return list, err
}

func askTXT(ctx context.Context, name string) (list []dnsmessage.ResourceBody, err error) {
	found, err := net.DefaultResolver.LookupTXT(ctx, name)
	const longest = 255 // of a string in a record
	for _, text := range found {
		var pieces []string
		for len(text) > longest {
			pieces, text = append(pieces, text[:longest]), text[longest:]
		}
		list = append(list, &dnsmessage.TXTResource{TXT: append(pieces, text)})
	}
	return list, err
}
