package proxy

import (
	"bytes"
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
		r, refusal := readRequest(conn, first)
		if refusal != "" {
			answer(conn, "400 Bad Request", refusal)
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
// already, so that whatever follows stays for the relay. refusal says what is
// wrong with it, as far as a client can be told.
func readRequest(conn *net.TCPConn, first byte) (r request, refusal string) {
	head := []byte{first}
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		if len(head) >= maxHead {
			return request{}, "the head of this request is too long"
		}
		// A lone CR or LF is the end of a line for some servers.
		if n := len(head); head[n-1] == '\n' && (n < 2 || head[n-2] != '\r') ||
			n > 1 && head[n-2] == '\r' && head[n-1] != '\n' {
			return request{}, "a line of this request does not end in CR LF"
		}
		var next [1]byte
		if _, err := conn.Read(next[:]); err != nil {
			return request{}, "the proxy does not understand this request"
		}
		head = append(head, next[0])
	}
	return parseRequest(string(head))
}

// The parts of a head (RFC 9110, 5.6.2; RFC 9112, 3). What is refused here, two
// servers could read in different ways.
const token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func isToken(text string) bool { return text != "" && strings.Trim(text, token) == "" }

// once are headers that a request has once at most.
var once = []string{"Host", "Content-Length", "Transfer-Encoding", "Proxy-Authorization"}

// maxHeaders bounds the headers of a request.
const maxHeaders = 256

// parseRequest reads a head whose lines end in CR LF, the last of them empty.
func parseRequest(head string) (r request, refusal string) {
	lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")
	parts := strings.Split(lines[0], " ")
	if len(parts) != 3 || !isToken(parts[0]) || parts[1] == "" || parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0" {
		return r, "the proxy does not understand this request"
	}
	r = request{method: parts[0], target: parts[1], version: parts[2], header: textproto.MIMEHeader{}}
	if strings.ContainsFunc(r.target, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return r, "the address of this request has a character that it must not have"
	}
	if len(lines) > maxHeaders {
		return r, "this request has too many headers"
	}
	for _, line := range lines[1:] {
		name, value, found := strings.Cut(line, ":")
		switch {
		case line == "" || line[0] == ' ' || line[0] == '\t':
			return r, "a header of this request has more than one line"
		case !found || !isToken(name):
			return r, "a header of this request has no name"
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			return r, "a header of this request has a character that it must not have"
		}
		r.header.Add(name, strings.Trim(value, " \t"))
	}
	for _, name := range once {
		if len(r.header.Values(name)) > 1 {
			return r, "this request has the header " + name + " twice"
		}
	}
	return r, r.ambiguous()
}

// ambiguous says what of the headers two servers could read in different ways.
func (r request) ambiguous() string {
	length, coding := r.header["Content-Length"], r.header["Transfer-Encoding"]
	switch {
	case length != nil && coding != nil:
		return "this request has both Content-Length and Transfer-Encoding"
	case coding != nil && (!strings.EqualFold(coding[0], "chunked") || r.version != "HTTP/1.1"):
		return "this request has a Transfer-Encoding that the proxy does not know"
	case length != nil && (length[0] == "" || len(length[0]) > 18 || strings.Trim(length[0], "0123456789") != ""):
		return "the Content-Length of this request is no number"
	case r.method == "CONNECT" && (length != nil && length[0] != "0" || coding != nil):
		return "a CONNECT has no body"
	case r.header["Host"] == nil && r.version == "HTTP/1.1" && r.method != "CONNECT":
		return "this request has no Host"
	}
	return ""
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
	to, rest, refusal := r.where()
	if refusal != "" {
		answer(conn, "400 Bad Request", refusal)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	judge := s.judge(to)
	if refusal := judge.Other(); r.method != "CONNECT" && refusal != nil &&
		(&outbound.Dialer{Rules: s.rules}).Allows(to) {
		s.refused(refusal.Target, refusal.Greeting)
		answer(conn, "403 Forbidden", fmt.Sprintf("connect to %s: only TLS passes", to))
		return
	}
	there, release, err := s.dial(to)
	if err != nil {
		answer(conn, status(err), fmt.Sprintf("connect to %s: %v", to, err))
		return
	}
	defer release()
	if r.method != "CONNECT" {
		// The host reads our head first, so the body is no greeting of TLS.
		_, err = there.Write(r.forHost(rest))
		judge = nil
	} else {
		_, err = fmt.Fprint(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	if err == nil {
		s.relay(conn, there, judge)
	}
}

// where returns what a request is for, and the target that the host gets. The
// Host of a request must name the same.
func (r request) where() (to outbound.Target, rest, refusal string) {
	authority, port := r.target, ""
	if r.method != "CONNECT" {
		parsed, err := url.Parse(r.target)
		if err != nil || parsed.Scheme != "http" || parsed.User != nil || parsed.Opaque != "" || parsed.Fragment != "" {
			return to, "", "the proxy does not understand this address"
		}
		authority, port, rest = parsed.Host, "80", parsed.RequestURI()
	}
	to, ok := targetOfAuthority(authority, port)
	if !ok {
		return to, "", "the proxy does not understand this address"
	}
	if host := r.header["Host"]; host != nil {
		// Clients leave a CONNECT's port out of Host, or not.
		if port == "" {
			_, port, _ = net.SplitHostPort(authority)
		}
		if named, ok := targetOfAuthority(host[0], port); !ok || named != to {
			return to, "", "the Host of this request is not that of its address"
		}
	}
	r.header.Set("Host", authority) // RFC 9112, 3.2.2
	return to, rest, ""
}

// targetOfAuthority reads "host" or "host:port", with a port for the first.
func targetOfAuthority(authority, usual string) (outbound.Target, bool) {
	host, port, err := net.SplitHostPort(authority)
	if err != nil {
		if usual == "" {
			return outbound.Target{}, false
		}
		host, port = authority, usual
		if inside, is := strings.CutPrefix(host, "["); is {
			if host, is = strings.CutSuffix(inside, "]"); !is || !strings.Contains(host, ":") {
				return outbound.Target{}, false
			}
		} else if strings.Contains(host, ":") {
			return outbound.Target{}, false
		}
	}
	if port == "" {
		port = usual // as in "http://host:/"
	}
	if strings.Trim(port, "0123456789") != "" {
		return outbound.Target{}, false
	}
	return targetOf(host, port)
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
	if errors.Is(err, errCrowded) {
		return "503 Service Unavailable"
	}
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
