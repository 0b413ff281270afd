package proxy

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// maxHead bounds a request's line and headers.
const maxHead = 64 << 10

// maxAttempts is how often a client may ask on one connection: without the token
// first, as libcurl does, and then with it.
const maxAttempts = 4

// serveHTTP serves a client of an HTTP proxy (RFC 9110, RFC 9112).
func (s *Server) serveHTTP(conn *net.TCPConn, first byte) {
	for range maxAttempts {
		r, ok := readRequest(conn, first)
		if !ok {
			answer(conn, "400 Bad Request", "the proxy does not understand this request")
			return
		}
		session := s.find(r.token())
		if session == nil {
			fmt.Fprint(conn, "HTTP/1.1 407 Proxy Authentication Required\r\n"+
				"Proxy-Authenticate: Basic realm=\"sandbox-sidecar\"\r\nContent-Length: 0\r\n\r\n")
			if r.hasBody() {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(headTimeout))
			var next [1]byte
			if _, err := conn.Read(next[:]); err != nil {
				return
			}
			first = next[0]
			continue
		}
		session.serveRequest(conn, r)
		return
	}
}

// request is a request's line and headers.
type request struct {
	method, target, version string
	header                  textproto.MIMEHeader
}

// readRequest reads exactly a request's head, of which the first byte was read
// already, so that whatever follows stays for the relay.
func readRequest(conn *net.TCPConn, first byte) (request, bool) {
	head := []byte{first}
	for !strings.HasSuffix(string(head[max(0, len(head)-4):]), "\r\n\r\n") {
		var next [1]byte
		if _, err := conn.Read(next[:]); err != nil || len(head) >= maxHead {
			return request{}, false
		}
		head = append(head, next[0])
	}
	reader := textproto.NewReader(bufio.NewReader(strings.NewReader(string(head))))
	line, err := reader.ReadLine()
	if err != nil {
		return request{}, false
	}
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !strings.HasPrefix(parts[2], "HTTP/1.") {
		return request{}, false
	}
	header, err := reader.ReadMIMEHeader()
	return request{method: parts[0], target: parts[1], version: parts[2], header: header}, err == nil
}

// token is the password of the proxy's credentials (RFC 7617).
func (r request) token() string {
	scheme, encoded, _ := strings.Cut(r.header.Get("Proxy-Authorization"), " ")
	if !strings.EqualFold(scheme, "Basic") {
		return ""
	}
	both, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return ""
	}
	_, token, _ := strings.Cut(string(both), ":")
	return token
}

func (r request) hasBody() bool {
	length := r.header.Get("Content-Length")
	return r.header.Get("Transfer-Encoding") != "" || length != "" && length != "0"
}

// serveRequest serves a client that has the token of this session.
func (s *session) serveRequest(conn *net.TCPConn, r request) {
	host, port, err := net.SplitHostPort(r.target)
	plain := r.method != "CONNECT"
	var rest string
	if plain {
		var parsed *url.URL
		if parsed, err = url.Parse(r.target); err == nil && parsed.Scheme != "http" {
			err = errors.New("not http")
		}
		if err == nil {
			host, port, rest = parsed.Hostname(), parsed.Port(), parsed.RequestURI()
			r.header.Set("Host", parsed.Host) // RFC 9112, 3.2.2
			if port == "" {
				port = "80"
			}
		}
	}
	to, ok := outbound.Target{}, false
	if err == nil {
		to, ok = targetOf(host, port)
	}
	if !ok {
		answer(conn, "400 Bad Request", "the proxy does not understand this address")
		return
	}
	_ = conn.SetDeadline(time.Time{})
	there, err := s.dial(to)
	if err != nil {
		answer(conn, status(err), fmt.Sprintf("connect to %s: %v", to, err))
		return
	}
	defer there.Close()
	if plain {
		_, err = there.Write(r.forHost(rest))
	} else {
		_, err = fmt.Fprint(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	if err == nil {
		s.relay(conn, there, to)
	}
}

// forHost is the head that the host gets. The connection is for one request:
// another could be for another host.
func (r request) forHost(target string) []byte {
	for _, name := range []string{"Proxy-Authorization", "Proxy-Connection", "Connection", "Keep-Alive"} {
		r.header.Del(name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\nConnection: close\r\n", r.method, target, r.version)
	var names []string
	for name := range r.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range r.header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// status is the answer for an error of a dialer.
func status(err error) string {
	switch outbound.Errno(err) {
	case syscall.EACCES:
		return "403 Forbidden"
	case syscall.ETIMEDOUT:
		return "504 Gateway Timeout"
	}
	return "502 Bad Gateway"
}

func answer(conn *net.TCPConn, status, text string) {
	fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		status, len(text)+1, text)
}
