package proxy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// Server is one proxy for all sessions of a sidecar.
type Server struct {
	listener *net.TCPListener
	places   chan struct{} // holds a token for each connection
	running  sync.WaitGroup
	ctx      context.Context
	stop     context.CancelFunc

	mu       sync.Mutex // guards what follows
	sessions map[key]*session
}

// key is the digest of a token, so that finding one takes the same time for all
// wrong ones.
type key [sha256.Size]byte

// session is what one token may do.
type session struct {
	rules     *hosts.Rules
	refused   func(target, greeting string)
	connected func(target string)
	quota     *outbound.Quota
	ctx       context.Context // ends with the session
}

const (
	maxConnections = 1024
	headTimeout    = 10 * time.Second
)

// Listen starts a proxy on a port of the loopback interface.
func Listen() (*Server, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("open proxy: %w", err)
	}
	s := &Server{listener: listener, places: make(chan struct{}, maxConnections), sessions: map[key]*session{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.running.Go(s.accept)
	return s, nil
}

// Port is where the proxy listens.
func (s *Server) Port() uint16 { return s.listener.Addr().(*net.TCPAddr).AddrPort().Port() }

// Close ends the proxy and all its connections.
func (s *Server) Close() {
	s.stop()
	s.listener.Close()
	s.running.Wait()
}

// NewToken returns a secret for one session.
func NewToken() string {
	var secret [24]byte
	_, _ = rand.Read(secret[:]) // never fails
	return hex.EncodeToString(secret[:])
}

// Client is whose connections a token is for. Its functions are called from
// several goroutines.
type Client struct {
	Rules *hosts.Rules
	// Connections is how many it may have at a time; see outbound.NewQuota, also
	// for Crowded.
	Connections int
	Crowded     func(most int, shared bool)
	// Refused and Connected are called with "host:port". greeting is that of
	// outbound.Refusal.
	Refused   func(target, greeting string)
	Connected func(target string)
}

// Admit lets clients with this token connect to what the rules allow, until end
// is called, which ends their connections.
func (s *Server) Admit(token string, client Client) (end func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	id := key(sha256.Sum256([]byte(token)))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[id] = &session{
		rules: client.Rules, refused: client.Refused, connected: client.Connected, ctx: ctx,
		quota: outbound.NewQuota(client.Connections, maxConnections, client.Crowded),
	}
	return func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, id)
	}
}

// find returns the session of a token; nil if there is none.
func (s *Server) find(token string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[sha256.Sum256([]byte(token))]
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files
			select {
			case <-time.After(headTimeout / 100):
			case <-s.ctx.Done():
			}
			continue
		}
		select {
		case s.places <- struct{}{}:
			s.running.Go(func() {
				defer func() { <-s.places }()
				s.serve(conn)
			})
		default:
			conn.Close()
		}
	}
}

// serve finds out the protocol by the first byte.
func (s *Server) serve(conn *net.TCPConn) {
	defer conn.Close()
	defer context.AfterFunc(s.ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(headTimeout))
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil {
		return
	}
	if first[0] == socksVersion {
		s.serveSOCKS(conn)
		return
	}
	s.serveHTTP(conn, first[0])
}

// targetOf reads a host and a port.
func targetOf(host, port string) (outbound.Target, bool) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return outbound.Target{}, false
	}
	to := outbound.Target{Port: uint16(number)}
	if addr, err := netip.ParseAddr(host); err == nil {
		to.Addr = addr.Unmap().WithZone("")
		return to, addr.Zone() == ""
	}
	name, ok := hosts.Canonical(host)
	to.Name = name
	return to, ok
}

// judge judges what a client sends first through a tunnel to a host.
func (s *session) judge(to outbound.Target) *outbound.Judge {
	return &outbound.Judge{Rules: s.rules, To: to}
}

// errCrowded means that the session has too many connections.
var errCrowded = errors.New("this session has too many connections (limits.connections)")

// dial connects to an allowed host, and reports one that is not. release is
// called when the connection has ended.
func (s *session) dial(to outbound.Target) (conn *net.TCPConn, release func(), err error) {
	place := s.quota.Take()
	if place == nil {
		return nil, nil, errCrowded
	}
	conn, err = (&outbound.Dialer{Rules: s.rules, Quota: s.quota}).Dial(s.ctx, to)
	place.Made()
	var refused *outbound.RefusedError
	if errors.As(err, &refused) {
		s.refused(refused.Refused(), "")
	}
	if err != nil {
		place.Release()
		return nil, nil, err
	}
	s.connected(to.String())
	return conn, func() {
		conn.Close()
		place.Release()
	}, nil
}

// relay copies between a client and the host, until the session ends at the
// latest. Without a judge all bytes pass.
func (s *session) relay(client, host *net.TCPConn, judge *outbound.Judge) {
	_ = client.SetDeadline(time.Time{})
	outbound.Bound(client, s.quota.Buffer())
	defer context.AfterFunc(s.ctx, func() {
		client.Close()
		host.Close()
	})()
	if refusal := outbound.Relay(client, host, judge); refusal != nil {
		s.refused(refusal.Target, refusal.Greeting)
	}
}
