// Package opener opens the TLS of a session to the hosts of its credentials, and
// puts secrets in the place of their placeholders.
//
// It ends the client's TLS with a certificate that only sessions trust, checks the
// host's as a strict client does, and copies requests and answers between both. A
// placeholder is replaced only where its secret belongs: in the headers of
// authentication, as a whole word. If it were replaced as text, a request could
// publish the secret. A placeholder anywhere else in the head of a request, or for
// another host, is refused and reported. Bodies are passed on as they are, and a
// placeholder in one stays what it is. See docs/design/credentials.md.
package opener

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/authority"
)

// Secret is what a placeholder stands for.
type Secret struct {
	// Name is the credential's, for people.
	Name               string
	Placeholder, Value string
	// Fetch gets the value when it is first needed; nil if Value has it.
	Fetch func(context.Context) (string, error)
	// Belongs reports whether the secret is for a host.
	Belongs func(host string, port uint16) bool
}

func (s *Secret) value(ctx context.Context) (string, error) {
	if s.Fetch == nil {
		return s.Value, nil
	}
	return s.Fetch(ctx)
}

// Config is what an Opener works with.
type Config struct {
	Authority *authority.Authority
	Secrets   []*Secret
	// SigningKeys are made of some of them.
	SigningKeys []SigningKey
	// Roots are those that hosts are checked by; nil: the system's.
	Roots *x509.CertPool
	// Report is called from several goroutines.
	Report func(credentials.Event)
}

// Opener serves the connections of one session, or of those that share a sandbox.
// It may be used from several goroutines.
type Opener struct {
	config Config
	find   finder
	server *http.Server
	ready  *handed
}

// New returns an Opener. Close ends it.
func New(config Config) *Opener {
	o := &Opener{config: config, find: newFinder(config.Secrets), ready: newHanded()}
	const slowest = time.Minute // for the head of a request, or nobody could wait
	o.server = &http.Server{
		Handler: http.HandlerFunc(o.serve), ReadHeaderTimeout: slowest, Protocols: protocols(true),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), DisableGeneralOptionsHandler: true,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, o.ready.take(c))
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if k := o.ready.take(c); k != nil {
				k.isIdle(state == http.StateIdle)
			}
		},
	}
	go func() { _ = o.server.Serve(o.ready) }() // until Close
	return o
}

// Close ends all connections.
func (o *Opener) Close() { _ = o.server.Close() }

func protocols(http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(http2)
	return p
}

// handshakeTime is how long a handshake with either side may take.
const handshakeTime = 30 * time.Second

// Serve serves a client that has connected to a host, until either ends. Both
// connections are closed then.
func (o *Opener) Serve(client, host net.Conn, name string, port uint16) {
	k := &connection{name: strings.ToLower(name), port: port, done: make(chan struct{}), hostDone: make(chan struct{})}
	k.over, k.cancel = context.WithCancel(context.Background())
	k.client = &noticed{Conn: client, closed: k.end}
	k.host = &noticed{Conn: host, ended: k.hostEnded, closed: k.hostEnded}
	defer k.end()
	defer host.Close()
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	sent := false // our certificate
	secured := tls.Server(k.client, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		if !strings.EqualFold(strings.TrimSuffix(h.ServerName, "."), k.name) {
			return nil, fmt.Errorf("a hello for %q on a connection to %s", h.ServerName, k.name)
		}
		offered := k.reach(ctx, o.config.Roots, h.SupportedProtos)
		certificate, err := o.config.Authority.Certificate(k.name)
		if err != nil {
			return nil, err
		}
		sent = true
		return &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: offered, Certificates: []tls.Certificate{*certificate},
		}, nil
	}})
	if err := secured.HandshakeContext(ctx); err != nil {
		if sent && ctx.Err() == nil {
			o.report(credentials.Event{Kind: credentials.Distrusted, Host: k.target(), Why: "a program ends the " +
				"connection when it sees the session's certificate: it trusts certificates of its own"})
		}
		return
	}
	if k.failed != nil {
		o.report(credentials.Event{Kind: credentials.Unreachable, Host: k.target(), Why: k.failed.Error()})
	}
	k.secured = secured
	k.proxy = o.proxyFor(k)
	if !o.ready.give(k) {
		return
	}
	<-k.done
}

func (o *Opener) report(e credentials.Event) {
	if o.config.Report != nil {
		o.config.Report(e)
	}
}

// connection is one of a client to a host.
type connection struct {
	name         string
	port         uint16
	client, host *noticed
	secured      *tls.Conn // the client's
	proxy        http.Handler
	outer        *tls.Conn // the host's; nil if that failed
	failed       error     // why
	once         sync.Once
	done         chan struct{} // closed when the client's connection is
	over         context.Context
	cancel       context.CancelFunc // ends over, with done
	hostOnce     sync.Once
	hostDone     chan struct{} // closed when the host has ended

	mu   sync.Mutex // guards what follows
	used bool       // outer was handed over
	idle bool       // the client is served nothing
}

type connectionKey struct{}

// target is "name:port".
func (k *connection) target() string { return fmt.Sprintf("%s:%d", k.name, k.port) }

// String is what a request names as its host.
func (k *connection) String() string {
	if k.port == 443 {
		return k.name
	}
	return fmt.Sprintf("%s:%d", k.name, k.port)
}

func (k *connection) end() {
	k.once.Do(func() {
		close(k.done)
		k.cancel()
	})
	_ = k.host.Conn.Close()
}

// hostEnded notes that the host has ended, which reading or net/http has found out.
// The client's connection ends then, too, but not before an answer that is on its
// way.
func (k *connection) hostEnded() {
	k.hostOnce.Do(func() { close(k.hostDone) })
	k.endIdle()
}

func (k *connection) isIdle(idle bool) {
	k.mu.Lock()
	k.idle = idle
	k.mu.Unlock()
	k.endIdle()
}

func (k *connection) endIdle() {
	k.mu.Lock()
	idle := k.idle
	k.mu.Unlock()
	if idle && k.hasEnded() {
		go k.secured.Close() // it may wait for who calls
	}
}

func (k *connection) hasEnded() bool {
	select {
	case <-k.hostDone:
		return true
	default:
		return false
	}
}

var (
	errProtocols   = errors.New("the program offers neither HTTP/1.1 nor HTTP/2")
	errCertificate = errors.New("the host asks for a client's certificate, which cannot be passed on")
	errEnded       = errors.New("the host has ended the connection")
)

// reach secures the connection to the host, and returns which protocols the client
// is offered: what the host has chosen, so that no request is ever turned from one
// version of HTTP into another. If it fails, the client's handshake goes on, and the
// answer to its request says why.
func (k *connection) reach(ctx context.Context, roots *x509.CertPool, offers []string) []string {
	var known []string
	for _, name := range offers {
		if name == "h2" || name == "http/1.1" {
			known = append(known, name)
		}
	}
	if len(offers) > 0 && len(known) == 0 {
		k.failed = errProtocols
		return nil
	}
	asked := false
	outer := tls.Client(k.host, &tls.Config{
		ServerName: k.name, RootCAs: roots, NextProtos: known, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return &tls.Certificate{}, nil
		},
	})
	if err := outer.HandshakeContext(ctx); err != nil {
		if k.failed = fmt.Errorf("the host's TLS: %w", err); asked {
			k.failed = errCertificate
		}
		return known
	}
	k.outer = outer
	if asked {
		k.failed = errCertificate
	}
	if chosen := outer.ConnectionState().NegotiatedProtocol; chosen != "" {
		return []string{chosen}
	}
	if slices.Contains(known, "http/1.1") {
		return []string{"http/1.1"}
	}
	return nil
}

// dial hands the host's connection over, once. A request that comes just before that
// is free again waits for it, and for its end at the latest.
func (k *connection) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	k.mu.Lock()
	first := !k.used
	k.used = true
	k.mu.Unlock()
	if first {
		return k.outer, nil
	}
	select {
	case <-k.hostDone:
	case <-k.done:
	case <-ctx.Done():
	}
	return nil, errEnded
}

// noticed is a connection whose end is noticed.
type noticed struct {
	net.Conn
	ended, closed func()
}

func (n *noticed) Read(p []byte) (int, error) {
	read, err := n.Conn.Read(p)
	if err != nil && n.ended != nil {
		n.ended()
	}
	return read, err
}

func (n *noticed) Close() error {
	err := n.Conn.Close()
	if n.closed != nil {
		n.closed()
	}
	return err
}

// handed is a listener whose connections come from Serve.
type handed struct {
	coming chan net.Conn
	ended  chan struct{}
	once   sync.Once
	open   sync.Map // of *connection, by *tls.Conn, until they have ended
}

func newHanded() *handed { return &handed{coming: make(chan net.Conn), ended: make(chan struct{})} }

// give hands a connection to the server. It returns false if that has ended.
func (h *handed) give(k *connection) bool {
	h.open.Store(k.secured, k)
	go func() {
		<-k.done
		h.open.Delete(k.secured)
	}()
	select {
	case h.coming <- k.secured:
		return true
	case <-h.ended:
		k.end()
		return false
	}
}

func (h *handed) take(c net.Conn) *connection {
	found, _ := h.open.Load(c)
	k, _ := found.(*connection)
	return k
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.coming:
		return c, nil
	case <-h.ended:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error {
	h.once.Do(func() { close(h.ended) })
	return nil
}

func (h *handed) Addr() net.Addr { return &net.TCPAddr{} }
