package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == Command {
		if err := Connect(os.Stdin, os.Stdout, os.Getenv, os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	harness.Main(m)
}

// scene is a proxy with one session, and a server that it may reach under the
// host's name.
type scene struct {
	t         *testing.T
	proxy     *Server
	token     string
	env       []string
	end       func()
	port      string // of the server, which the session may reach
	closed    string // of a server that it may not reach
	dir       string
	mu        sync.Mutex
	refused   []string
	connected []string
	visits    int // of the second server
}

func newScene(t *testing.T, secure bool) *scene {
	t.Helper()
	s := &scene{t: t, token: NewToken(), dir: t.TempDir()}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "hello %s%s%s", r.Header.Get("Proxy-Authorization"), r.URL.Path, body)
	})
	start := httptest.NewServer
	if secure {
		start = httptest.NewTLSServer
	}
	server := start(hello)
	t.Cleanup(server.Close)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.visits++ }))
	t.Cleanup(other.Close)
	_, s.port, _ = net.SplitHostPort(server.Listener.Addr().String())
	_, s.closed, _ = net.SplitHostPort(other.Listener.Addr().String())
	if secure {
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		harness.Must(t, os.WriteFile(filepath.Join(s.dir, "ca.pem"), text, 0o600))
	}
	pattern, err := hosts.ParseAllowed("localhost:" + s.port)
	harness.Must(t, err)
	s.proxy, err = Listen()
	harness.Must(t, err)
	t.Cleanup(s.proxy.Close)
	rules := hosts.New([]hosts.Pattern{pattern}, nil)
	s.end = s.proxy.Admit(s.token, Client{Rules: rules, Refused: func(target, greeting string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if greeting != "" {
			target += ": " + greeting
		}
		s.refused = append(s.refused, target)
	}, Connected: func(target string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.connected = append(s.connected, target)
	}})
	self, err := os.Executable()
	harness.Must(t, err)
	s.env = append(Environ(s.proxy.Port(), s.token, self), "PATH="+os.Getenv("PATH"), "HOME="+s.dir)
	return s
}

// run runs a program with the variables; %h is the server.
func (s *scene) run(env []string, line string) string {
	s.t.Helper()
	command := exec.Command("/bin/sh", "-c", line)
	command.Env, command.Dir = env, s.dir
	output, err := command.CombinedOutput()
	if err != nil {
		s.t.Logf("%s: %v", line, err)
	}
	return string(output)
}

const host = hosts.HostName

func TestClients_FindTheProxyByItsVariables(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	for program, line := range map[string]string{
		"curl": "curl -sS -m 30 http://%h/x", "wget": "wget -q -t 1 -O - http://%h/x",
		"python3": `/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen("http://%h/x").read().decode())'`,
		"nc":      "",
	} {
		if line == "" || exec.Command("/bin/sh", "-c", "command -v "+program).Run() != nil {
			continue
		}
		if got := s.run(s.env, strings.ReplaceAll(line, "%h", host+":"+s.port)); !strings.Contains(got, "hello /x") {
			t.Errorf("%s: %s", program, got)
		}
		_ = s.run(s.env, strings.ReplaceAll(line, "%h", host+":"+s.closed))
	}
	if s.visits > 0 {
		t.Errorf("%d visits of a host that is not allowed", s.visits)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) == 0 || s.refused[0] != host+":"+s.closed {
		t.Errorf("reported: %q", s.refused)
	}
}

func TestCurl_UsesEveryProtocol(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "curl")
	plain, secure := newScene(t, false), newScene(t, true)
	at := func(s *scene, scheme string) string {
		return fmt.Sprintf("curl -sS -m 30 -x %s://x:%s@127.0.0.1:%d ", scheme, s.token, s.proxy.Port())
	}
	trust := " --cacert ca.pem --connect-to ::" + host + ":" + secure.port + " https://example.com/tls"
	for line, want := range map[string]string{
		at(plain, "http") + "http://" + host + ":" + plain.port + "/http":                "hello /http",
		at(plain, "http") + "-p http://" + host + ":" + plain.port + "/c":                "hello /c",
		at(plain, "socks5h") + "http://" + host + ":" + plain.port + "/s":                "hello /s",
		at(plain, "http") + "-d body http://" + host + ":" + plain.port + "/post":        "hello /postbody",
		at(plain, "http") + "--proxy-anyauth http://" + host + ":" + plain.port + "/any": "hello /any",
		at(plain, "http") + "http://" + host + ":" + plain.closed:                        "not allowed",
		at(plain, "socks5h") + "http://" + host + ":" + plain.closed:                     "curl: (97)",
		// An address that no entry has.
		at(plain, "socks5") + "http://127.0.0.1:" + plain.port: "curl: (97)",
		at(plain, "socks4") + "http://127.0.0.1:" + plain.port: "curl:",
		at(plain, "http") + "http://x%20y:80/":                 "curl:",
		at(secure, "http") + trust:                             "hello /tls",
		at(secure, "socks5h") + trust:                          "hello /tls",
	} {
		s := plain
		if strings.Contains(line, secure.token) {
			s = secure
		}
		if got := s.run(s.env, line); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	if plain.visits+secure.visits > 0 {
		t.Error("visits of a host that is not allowed")
	}
}

// Other programs of this machine can connect to the port, and get nothing.
func TestProxy_ServesNobodyWithoutTheToken(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "curl")
	s := newScene(t, false)
	url := " http://" + host + ":" + s.port
	for _, line := range []string{
		"http://127.0.0.1:%d", "http://session:@127.0.0.1:%d", "http://session:" + NewToken() + "@127.0.0.1:%d",
		"socks5h://127.0.0.1:%d", "socks5h://session:" + NewToken() + "@127.0.0.1:%d",
	} {
		for _, more := range []string{"", "-p "} {
			got := s.run(s.env, "curl -sS -m 30 -x "+fmt.Sprintf(line, s.proxy.Port())+" "+more+url)
			if strings.Contains(got, "hello") {
				t.Errorf("%s%s: %s", more, line, got)
			}
		}
	}
	s.end()
	if got := s.run(s.env, "curl -sS -m 30"+url); strings.Contains(got, "hello") {
		t.Errorf("after the session: %s", got)
	}
}

func TestSession_EndsItsConnections(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.proxy.Port()))
	harness.Must(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "CONNECT %s:%s HTTP/1.1\r\nProxy-Authorization: Basic %s\r\n\r\n", host, s.port, basic(s.token))
	text := make([]byte, 39)
	if _, err := io.ReadFull(conn, text); err != nil || !strings.Contains(string(text), " 200 ") {
		t.Fatalf("%q %v", text, err)
	}
	s.end()
	if _, err := conn.Read(text); err == nil {
		t.Error("the connection lives")
	}
}

func basic(token string) string {
	request, _ := http.NewRequest(http.MethodGet, "http://x", http.NoBody)
	request.SetBasicAuth("x", token)
	return strings.TrimPrefix(request.Header.Get("Authorization"), "Basic ")
}

// A client of TLS may ask for the allowed server alone. Refusals are reported.
func TestTLS_TheGreetingIsJudged(t *testing.T) {
	t.Parallel()
	s := newScene(t, true)
	for lie, told := range map[string]string{
		"\x15\x03\x01\x00\x02\x01\x00":                 "a record of type 21 before the end of the hello",
		"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10": "a hello in the form of SSL 2",
	} {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.proxy.Port()))
		harness.Must(t, err)
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "CONNECT %s:%s HTTP/1.1\r\nProxy-Authorization: Basic %s\r\n\r\n", host, s.port, basic(s.token))
		text := make([]byte, 39)
		if _, err := io.ReadFull(conn, text); err != nil || !strings.Contains(string(text), " 200 ") {
			t.Fatalf("%q %v", text, err)
		}
		_, _ = conn.Write([]byte(lie))
		if _, err := conn.Read(text); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %v", lie, err)
		}
		conn.Close()
		want := host + ":" + s.port + ": " + told
		harness.Eventually(t, want, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Contains(s.refused, want)
		})
	}
}

// The body of a request is the host's, whatever it begins with. The control is
// that the same bytes do not pass as a greeting.
func TestHTTP_ABodyIsNoGreeting(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	bodies := []string{
		"\x15\x03\x01\x00\x02\x01\x00", "\x16\x02\x01\x00\x01\x01", "\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10",
	}
	for _, body := range bodies {
		for method, want := range map[string]string{"POST": "hello /x" + body, "CONNECT": ""} {
			conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.proxy.Port()))
			harness.Must(t, err)
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			target, at := host+":"+s.port, host+":"+s.port
			head := ""
			if method == "POST" {
				target, head = "http://"+at+"/x", fmt.Sprintf("Content-Length: %d\r\n", len(body))
			}
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\n%sProxy-Authorization: Basic %s\r\n\r\n%s",
				method, target, at, head, basic(s.token), body)
			got, _ := io.ReadAll(conn)
			conn.Close()
			if !strings.HasSuffix(string(got), want) || want == "" && strings.Contains(string(got), "hello") {
				t.Errorf("%s of %q: %q", method, body, got)
			}
		}
	}
	harness.Eventually(t, "a report of each CONNECT", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.refused) == len(bodies)
	})
}

// Go's own client of HTTP reuses connections and reads the variables' form.
func TestGo_ReachesTheHostByTLS(t *testing.T) {
	t.Parallel()
	s := newScene(t, true)
	at, err := url.Parse(strings.TrimPrefix(s.env[0][strings.Index(s.env[0], "=")+1:], ""))
	harness.Must(t, err)
	if !strings.HasPrefix(at.Scheme, "http") {
		at, err = url.Parse(fmt.Sprintf("http://session:%s@127.0.0.1:%d", s.token, s.proxy.Port()))
		harness.Must(t, err)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "ca.pem"))
	harness.Must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	client := http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"},
	}}
	response, err := client.Get("https://" + host + ":" + s.port + "/go")
	harness.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "hello /go" {
		t.Errorf("%q %v", body, err)
	}
}

// What ssh runs as its ProxyCommand. The server is of HTTP, which says as much.
func TestConnect_IsAProxyCommand(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	var command string
	for _, entry := range s.env {
		if value, is := strings.CutPrefix(entry, "GIT_SSH_COMMAND=ssh -o ProxyCommand="); is {
			command = value
		}
	}
	ask := `printf 'GET /ssh HTTP/1.0\r\n\r\n' | eval $(printf %s ` + command + ` | sed "s/%h/` + host +
		`/; s/%p/PORT/")`
	if got := s.run(s.env, strings.ReplaceAll(ask, "PORT", s.port)); !strings.Contains(got, "hello /ssh") {
		t.Errorf("%s", got)
	}
	if got := s.run(s.env, strings.ReplaceAll(ask, "PORT", s.closed)); !strings.Contains(got, "403") || s.visits > 0 {
		t.Errorf("a host that is not allowed: %s", got)
	}
}

// What two servers could read in different ways is refused, and says why.
func TestHTTP_OnlyOneReading(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	at := host + ":" + s.port
	auth := "Proxy-Authorization: Basic " + basic(s.token) + "\r\n"
	end := auth + "\r\n"
	get := "GET http://" + at + "/x HTTP/1.1\r\n"
	named := "Host: " + at + "\r\n"
	whole, connect := get+named+auth, "CONNECT "+at+" HTTP/1.1\r\n"
	post := "POST http://" + at + "/p HTTP/1.1\r\n" + named + auth
	for name, test := range map[string]struct{ head, want string }{
		"whole":                 {get + named + end, "hello /x"},
		"blanks around a value": {get + "Host:\t" + at + " \r\n" + end, "hello /x"},
		"a chunked body": {
			post + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
			"hello /pbody",
		},
		"a body": {
			post + "Content-Length: 4\r\n\r\nbody", "hello /pbody",
		},
		"HTTP/1.0":              {"GET http://" + at + "/x HTTP/1.0\r\n" + end, "hello /x"},
		"CONNECT":               {connect + end, " 200 "},
		"CONNECT, a short Host": {connect + "Host: " + host + "\r\n" + end, " 200 "},
		"two Hosts":             {get + named + named + end, "the header Host twice"},
		"two Hosts, case":       {get + named + "hOST: evil\r\n" + end, "the header Host twice"},
		"another Host":          {get + "Host: evil.example\r\n" + end, "not that of its address"},
		"another port":          {get + "Host: " + host + ":1\r\n" + end, "not that of its address"},
		"a list of Hosts":       {get + "Host: " + at + ", evil\r\n" + end, "not that of its address"},
		"an empty Host":         {get + "Host: \r\n" + end, "not that of its address"},
		"CONNECT, another Host": {connect + "Host: evil:1\r\n" + end, "not that of its"},
		"no Host":               {get + end, "no Host"},
		"a folded header":       {whole + "X: a\r\n b\r\n\r\n", "more than one line"},
		"a folded Host":         {get + "Host:\r\n\t" + at + "\r\n" + end, "more than one line"},
		"folded at once":        {get + " " + named + end, "more than one line"},
		"a bare LF":             {get + "X: a\nHost: evil\r\n" + end, "does not end in CR LF"},
		"only LF":               {"GET http://" + at + "/x HTTP/1.1\n" + "\n", "does not end in CR LF"},
		"a bare CR":             {get + "X: a\rHost: evil\r\n" + end, "does not end in CR LF"},
		"two CRs":               {get + named + "X: a\r\r\n" + end, "does not end in CR LF"},
		"NUL":                   {get + named + "X: a\x00b\r\n" + end, "must not have"},
		"NUL in the address":    {"GET http://" + at + "/\x00 HTTP/1.1\r\n" + named + end, "must not have"},
		"NUL in a name":         {get + "Host\x00: x\r\n" + named + end, "has no name"},
		"a blank behind a name": {get + "Host : evil\r\n" + named + end, "has no name"},
		"no colon":              {get + named + "Host\r\n" + end, "has no name"},
		"a blank more":          {"GET  http://" + at + "/x HTTP/1.1\r\n" + named + end, "does not understand"},
		"a tab":                 {"GET\thttp://" + at + "/x HTTP/1.1\r\n" + named + end, "does not understand"},
		"another version":       {"GET http://" + at + "/x HTTP/1.2\r\n" + named + end, "does not understand"},
		"a method":              {"G:T http://" + at + "/x HTTP/1.1\r\n" + named + end, "does not understand"},
		"an empty line first":   {"\r\n" + get + named + end, "does not understand"},
		"a user":                {"GET http://a@" + at + "/x HTTP/1.1\r\n" + named + end, "this address"},
		"a fragment":            {"GET http://" + at + "/x#a HTTP/1.1\r\n" + named + end, "this address"},
		"only a path":           {"GET /x HTTP/1.1\r\n" + named + end, "this address"},
		"both lengths": {
			whole + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both Content-Length and",
		},
		"two lengths":        {whole + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", "Content-Length twice"},
		"a list of lengths":  {whole + "Content-Length: 0, 0\r\n\r\n", "is no number"},
		"a signed length":    {whole + "Content-Length: +1\r\n\r\n", "is no number"},
		"a huge length":      {whole + "Content-Length: " + strings.Repeat("9", 30) + "\r\n\r\n", "is no number"},
		"another coding":     {whole + "Transfer-Encoding: gzip, chunked\r\n\r\n", "does not know"},
		"an unknown coding":  {whole + "Transfer-Encoding: \x0bchunked\r\n\r\n", "must not have"},
		"CONNECT and a body": {connect + auth + "Content-Length: 4\r\n\r\nbody", "has no body"},
		"two tokens":         {get + named + auth + end, "Proxy-Authorization twice"},
		"many headers":       {whole + strings.Repeat("X: a\r\n", maxHeaders) + "\r\n", "too many headers"},
		"a long head":        {whole + "X: " + strings.Repeat("a", maxHead) + "\r\n\r\n", "too long"},
	} {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.proxy.Port()))
		harness.Must(t, err)
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		go func() { _, _ = io.WriteString(conn, test.head) }()
		var got strings.Builder
		buffer := make([]byte, 4096)
		for !strings.Contains(got.String(), test.want) {
			n, err := conn.Read(buffer)
			got.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		conn.Close()
		passes := strings.HasPrefix(test.want, "hello") || test.want == " 200 "
		if !strings.Contains(got.String(), test.want) || !passes && !strings.HasPrefix(got.String(), "HTTP/1.1 400 ") {
			t.Errorf("%s: %q", name, got.String())
		}
	}
}

// What a host gets has one reading: Go's parser finds the host that was judged.
func FuzzRequest(f *testing.F) {
	f.Add("GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nX: y\r\n\r\n")
	f.Add("POST http://[::1]:8/ HTTP/1.1\r\nHost: [::1]:8\r\nContent-Length: 4\r\n\r\n")
	f.Add("GET http://a.example:80 HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: Host\r\n\r\n")
	f.Fuzz(func(t *testing.T, head string) {
		bare := strings.ContainsAny(strings.ReplaceAll(head, "\r\n", ""), "\r\n")
		if strings.Index(head, "\r\n\r\n") != len(head)-4 || bare {
			return // the reader does not come so far
		}
		r, refusal := parseRequest(head)
		if refusal != "" || r.method == "CONNECT" {
			return
		}
		to, rest, refusal := r.where()
		if refusal != "" {
			return
		}
		passed := string(r.forHost(rest))
		got, err := http.ReadRequest(bufio.NewReader(strings.NewReader(passed)))
		if err != nil {
			t.Fatalf("%q passes, and is no request: %v", passed, err)
		}
		named, ok := targetOfAuthority(got.Host, "80")
		if !ok || named != to || got.Method != r.method || len(got.Header["Host"]) > 0 ||
			strings.Count(strings.ToLower(passed), "\r\nhost:") != 1 {
			t.Fatalf("%q passes for %v: host %q", passed, to, got.Host)
		}
	})
}
