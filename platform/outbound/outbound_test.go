package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
)

// recording is a connection that keeps what is written, and gives what was
// given to it.
type recording struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (c *recording) Read(p []byte) (int, error) { return c.in.Read(p) }

func (c *recording) Write(p []byte) (int, error) { return c.out.Write(p) }

func (c *recording) SetDeadline(time.Time) error { return nil }

func (c *recording) Close() error { return nil }

// clientHello returns the first bytes of a TLS client of this Go.
func clientHello(config *tls.Config) []byte {
	config.InsecureSkipVerify = true
	conn := &recording{in: strings.NewReader("")}
	_ = tls.Client(conn, config).Handshake()
	return conn.out.Bytes()
}

// records puts a handshake message into records of this size.
func records(first []byte, size int) []byte {
	var out []byte
	message := first[recordHeader:]
	for len(message) > 0 {
		n := min(size, len(message))
		out = append(out, first[0], first[1], first[2], byte(n>>8), byte(n))
		out, message = append(out, message[:n]...), message[n:]
	}
	return out
}

func longHello(name string) []byte {
	var protocols []string
	for i := range 180 {
		protocols = append(protocols, fmt.Sprintf("protocol-%d-%s", i, strings.Repeat("x", 100)))
	}
	return clientHello(&tls.Config{ServerName: name, NextProtos: protocols})
}

// pipe returns both ends of a TCP connection.
func pipe(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	one, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{one, other} {
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
	}
	return one.(*net.TCPConn), other.(*net.TCPConn)
}

// relayed starts a relay that allows one name. ended has its result.
func relayed(t *testing.T) (client, host *net.TCPConn, ended chan *Refusal) {
	t.Helper()
	client, inner := pipe(t)
	outer, host := pipe(t)
	ended = make(chan *Refusal, 1)
	for _, c := range []*net.TCPConn{inner, outer} {
		_ = c.SetDeadline(time.Time{})
	}
	judge := &Judge{Rules: rules(t, "allowed.example"), To: Target{Name: "allowed.example", Port: 80}}
	go func() { ended <- Relay(inner, outer, judge) }()
	return client, host, ended
}

func TestRelay_KeepsHalfClosedConnections(t *testing.T) {
	t.Parallel()
	client, host, ended := relayed(t)
	_, _ = client.Write([]byte("question"))
	_ = client.CloseWrite()
	if got, err := io.ReadAll(host); string(got) != "question" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	big := bytes.Repeat([]byte("answer"), 1<<18)
	go func() {
		_, _ = host.Write(big)
		host.Close()
	}()
	if got, err := io.ReadAll(client); !bytes.Equal(got, big) || err != nil {
		t.Fatalf("%d bytes of %d, %v", len(got), len(big), err)
	}
	if refusal := <-ended; refusal != nil {
		t.Errorf("refused %+v", refusal)
	}
}

// More connections than there are large pieces, with receivers that do not read
// yet, lose no byte, and hold up no other.
func TestRelay_CopiesMuchForMany(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	var senders sync.WaitGroup
	var receivers []*net.TCPConn
	for range mostLarge + 8 {
		client, host, _ := relayed(t)
		receivers = append(receivers, client)
		senders.Go(func() {
			_, _ = host.Write(data)
			_ = host.CloseWrite()
		})
	}
	for i := range receivers { // the last first, which came too late for a large piece
		got, err := io.ReadAll(receivers[len(receivers)-1-i])
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	senders.Wait()
	client, host, _ := relayed(t)
	go func() {
		_, _ = host.Write(data)
		_ = host.CloseWrite()
	}()
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, data) {
		t.Errorf("afterwards: %d bytes, %v", len(got), err)
	}
}

func TestRelay_LetsTheServerSpeakFirst(t *testing.T) {
	t.Parallel()
	client, host, _ := relayed(t)
	_, _ = host.Write([]byte("SSH-2.0-server\r\n"))
	got := make([]byte, 5)
	if _, err := io.ReadFull(client, got); err != nil || string(got) != "SSH-2" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRelay_RefusesAnotherName(t *testing.T) {
	t.Parallel()
	evil := clientHello(&tls.Config{ServerName: "evil.example"})
	for name, test := range map[string]struct {
		first []byte
		want  Refusal
	}{
		"another name": {evil, Refusal{Target: "evil.example:80"}},
		"in records":   {records(evil, 7), Refusal{Target: "evil.example:80"}},
		"garbage": {
			append([]byte{22, 3, 1, 0, 50, 1, 0, 0, 46}, bytes.Repeat([]byte{0xee}, 46)...),
			Refusal{Target: "allowed.example:80", Greeting: "a hello that cannot be read"},
		},
	} {
		client, host, ended := relayed(t)
		_, _ = client.Write(test.first)
		_ = client.CloseWrite()
		if refusal := <-ended; refusal == nil || *refusal != test.want {
			t.Errorf("%s: %+v, want %+v", name, refusal, test.want)
		}
		if got, err := io.ReadAll(host); len(got) > 0 {
			t.Errorf("%s: %d bytes reached the host, %v", name, len(got), err)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the client got %v", name, err)
		}
	}
}

func TestRelay_PassesAnAllowedGreetingOnUnchanged(t *testing.T) {
	t.Parallel()
	for name, first := range map[string][]byte{
		"short": clientHello(&tls.Config{ServerName: "allowed.example"}), "long": longHello("allowed.example"),
		"no name": clientHello(&tls.Config{}), "text": []byte("GET / HTTP/1.0\r\n\r\n"),
	} {
		client, host, _ := relayed(t)
		for part := first; len(part) > 0; {
			n := min(len(part), 700)
			_, _ = client.Write(part[:n])
			part = part[n:]
		}
		_ = client.CloseWrite()
		if got, err := io.ReadAll(host); !bytes.Equal(got, first) || err != nil {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(first), err)
		}
	}
}

func TestRelay_PassesAResetOn(t *testing.T) {
	t.Parallel()
	client, host, _ := relayed(t)
	_, _ = client.Write([]byte("x"))
	_, _ = io.ReadFull(host, make([]byte, 1))
	_ = host.SetLinger(0)
	host.Close()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client got %v", err)
	}
}

// end is how a side ends its connection.
type end func(*net.TCPConn)

func closes(c *net.TCPConn) { c.Close() }

func finishes(c *net.TCPConn) { _ = c.CloseWrite() }

func resets(c *net.TCPConn) {
	_ = c.SetLinger(0)
	c.Close()
}

// Who ends a connection early asks for nobody, so that is no denial. Nothing of
// what had begun reaches the host.
func TestRelay_AnEndIsNoDenial(t *testing.T) {
	t.Parallel()
	good := clientHello(&tls.Config{ServerName: "allowed.example"})
	alert := record(recordAlert, 3, 3, []byte{2, 70})
	again := serverHello(retryRandom)
	for name, test := range map[string]struct {
		first           []byte
		client          end    // after the first bytes
		answer          []byte // of the host
		host            end    // after the answer
		second          []byte
		afterwards      end // of the client
		passes          []byte
		refused, resets bool
	}{
		"the client, in its hello":        {first: good[:50], client: closes},
		"the client, in its hello, RST":   {first: good[:50], client: resets},
		"the client, in its hello, FIN":   {first: good[:50], client: finishes, resets: true},
		"the client, RST":                 {client: resets},
		"the host, in the client's hello": {first: good[:50], host: resets, resets: true},
		"the host, before its answer":     {first: good, host: finishes, second: alert, passes: good},
		"the host, in its answer":         {first: good, answer: again[:20], host: resets, second: good, passes: good},
		"the client, after an answer that is no TLS": {
			first: good, answer: []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), second: alert, afterwards: finishes,
			passes: append(good[:len(good):len(good)], alert...),
		},
		"the client, in its second hello": {
			first: good, answer: again, second: good[:50], afterwards: closes, passes: good,
		},
		"the client, in its second hello, FIN": {
			first: good, answer: again, second: good[:50], afterwards: finishes, passes: good, resets: true,
		},
		"control": {
			first: good, answer: again, second: clientHello(&tls.Config{ServerName: "evil.example"}), passes: good,
			afterwards: finishes, refused: true, resets: true,
		},
	} {
		client, host, ended := relayed(t)
		_, _ = client.Write(test.first)
		if test.client != nil {
			test.client(client)
		}
		var got []byte
		if len(test.passes) > 0 {
			got = make([]byte, len(test.first))
			if _, err := io.ReadFull(host, got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		_, _ = host.Write(test.answer)
		if test.host != nil {
			test.host(host)
		}
		if _, err := io.ReadFull(client, make([]byte, len(test.answer))); err != nil && test.host == nil {
			t.Fatalf("%s: the answer: %v", name, err)
		}
		if len(test.second) > 0 { // even an empty write takes a reset that is waiting
			_, _ = client.Write(test.second)
		}
		if test.afterwards != nil {
			test.afterwards(client)
		}
		rest, _ := io.ReadAll(host)
		if got = append(got, rest...); !bytes.Equal(got, test.passes) {
			t.Errorf("%s: %d bytes reached the host, want %d", name, len(got), len(test.passes))
		}
		host.Close()
		if refusal := <-ended; (refusal != nil) != test.refused {
			t.Errorf("%s: reported %+v", name, refusal)
		}
		if _, err := io.ReadAll(client); test.resets && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: the client got %v", name, err)
		}
	}
}

func rules(t *testing.T, allowed ...string) *hosts.Rules {
	t.Helper()
	var list []hosts.Pattern
	for _, text := range allowed {
		p, err := hosts.ParseAllowed(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return hosts.New(list, nil)
}

func TestDialer_ReachesTheHostsLoopbackByItsPortAlone(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	d := Dialer{Rules: rules(t, fmt.Sprintf("localhost:%d", port))}
	conn, err := d.Dial(t.Context(), Target{Name: hosts.HostName, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	var refused *RefusedError
	for _, to := range []Target{
		{Name: hosts.HostName, Port: port + 1},
		{Name: "localhost", Port: port},
		{Addr: netip.MustParseAddr("127.0.0.1"), Port: port},
		{Name: "other.example", Port: port},
	} {
		if _, err := d.Dial(t.Context(), to); !errors.As(err, &refused) || Errno(err) != syscall.EACCES {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func TestDialer_RefusesANameThatLeadsHere(t *testing.T) {
	t.Parallel()
	// The name of this machine's loopback interface stands for any name whose
	// owner leads it there.
	refuses := func(addr netip.Addr) error { return &RefusedError{Addr: addr} }
	_, err := (&Dialer{}).dial(t.Context(), "localhost", 9, refuses)
	var refused *RefusedError
	if !errors.As(err, &refused) || !refused.Addr.IsLoopback() {
		t.Errorf("%v", err)
	}
	if !isOurs(netip.MustParseAddr("127.0.0.1")) {
		t.Error("127.0.0.1 is not this machine's")
	}
}

func TestErrno_IsWhatTheNetworkWouldAnswer(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := closed.Addr().(*net.TCPAddr).AddrPort().Port()
	closed.Close()
	d := Dialer{Rules: rules(t, fmt.Sprintf("localhost:%d", port))}
	if _, err := d.Dial(t.Context(), Target{Name: hosts.HostName, Port: port}); Errno(err) != syscall.ECONNREFUSED {
		t.Errorf("a closed port: %v", err)
	}
	for want, err := range map[syscall.Errno]error{
		syscall.EHOSTUNREACH: &net.DNSError{IsNotFound: true}, syscall.ETIMEDOUT: &net.DNSError{IsTimeout: true},
		syscall.ENETUNREACH: &net.OpError{Err: os.NewSyscallError("connect", syscall.ENETUNREACH)},
	} {
		if got := Errno(fmt.Errorf("dial: %w", err)); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	if got := Errno(context.DeadlineExceeded); got != syscall.ETIMEDOUT {
		t.Errorf("a timeout: %v", got)
	}
}

// Behind an address, and on this machine, every server is allowed that is not
// denied.
func TestJudge_TheServersNameMustBeAllowed(t *testing.T) {
	t.Parallel()
	denied, err := hosts.ParseDenied("denied.example")
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := hosts.ParseAllowed("allowed.example:443")
	if err != nil {
		t.Fatal(err)
	}
	both := hosts.New([]hosts.Pattern{allowed}, []hosts.Pattern{denied})
	for _, test := range []struct {
		to      Target
		server  string
		allowed bool
	}{
		{Target{Name: "allowed.example", Port: 443}, "allowed.example", true},
		{Target{Name: "allowed.example", Port: 443}, "", true},
		{Target{Name: "allowed.example", Port: 443}, "evil.example", false},
		{Target{Name: "other.example", Port: 443}, "approved.example", true},
		{Target{Addr: netip.MustParseAddr("10.1.1.1"), Port: 443}, "any.example", true},
		{Target{Addr: netip.MustParseAddr("10.1.1.1"), Port: 443}, "denied.example", false},
		{Target{Name: hosts.HostName, Port: 443}, "any.example", true},
		{Target{Name: hosts.HostName, Port: 443}, "denied.example", false},
	} {
		judge := Judge{Rules: both, To: test.to, Approved: func(target string) bool {
			return target == "approved.example:443"
		}}
		if got := judge.allowsServer(test.server); got != test.allowed {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
