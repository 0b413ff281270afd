package opener

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/authority"
)

const (
	apiHost, otherHost = "api.example.com", "other.example.com"
	token, fake        = "ghp_real0000real0000real", "ghp_fake1111fake1111fake"
	second, secondFake = "sk-real-9999-9999-9999", "sk-fake-8888-8888-8888"
)

// world is a host for all names, and an opener before it.
type world struct {
	*Opener
	host   *httptest.Server
	client *http.Client
	roots  *x509.CertPool // that the opener checks the host by
	inside *authority.Authority

	mu     sync.Mutex // guards what follows
	events []credentials.Event
}

type options struct {
	protocols []string // of the host
	configure func(*Config)
	host      func(*tls.Config)
	http2     bool // the client speaks it
}

// open starts a world whose host answers by a function.
func open(t *testing.T, answer http.HandlerFunc, o options) *world {
	t.Helper()
	outside, err := authority.New([]string{"example.com"})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{roots: x509.NewCertPool()}
	w.roots.AppendCertsFromPEM(outside.PEM())
	w.host = httptest.NewUnstartedServer(answer)
	w.host.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	w.host.TLS = &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return outside.Certificate(h.ServerName)
	}}
	w.host.EnableHTTP2 = len(o.protocols) == 0 || slices.Contains(o.protocols, "h2")
	w.host.TLS.NextProtos = o.protocols
	if o.host != nil {
		o.host(w.host.TLS)
	}
	w.host.StartTLS()
	t.Cleanup(w.host.Close)
	if w.inside, err = authority.New([]string{apiHost, otherHost}); err != nil {
		t.Fatal(err)
	}
	at := func(want string) func(string, uint16) bool {
		return func(host string, port uint16) bool { return host == want && port == 443 }
	}
	config := Config{
		Authority: w.inside, Roots: w.roots,
		Secrets: []*Secret{
			{Name: "GITHUB_TOKEN", Placeholder: fake, Value: token, Belongs: at(apiHost)},
			{Name: "OTHER_KEY", Placeholder: secondFake, Value: second, Belongs: at(otherHost)},
		},
		Report: func(e credentials.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
	}
	if o.configure != nil {
		o.configure(&config)
	}
	w.Opener = New(config)
	t.Cleanup(w.Close)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(w.inside.PEM())
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableCompression: true, ForceAttemptHTTP2: o.http2,
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) { return w.dial(address) },
	}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &http.Client{Transport: transport, Timeout: time.Minute}
	return w
}

// dial connects a client, as the relay of a session does.
func (w *world) dial(address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	host, err := net.Dial("tcp", w.host.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	accepted, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	go w.Serve(accepted, host, name, 443)
	return client, nil
}

func (w *world) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for _, e := range w.events {
		list = append(list, string(e.Kind)+" "+e.Credential+" "+strings.TrimSuffix(e.Host, ":443"))
	}
	return list
}

func get(t *testing.T, w *world, address string, header http.Header) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	return do(t, w, request)
}

func do(t *testing.T, w *world, request *http.Request) (int, string) {
	t.Helper()
	response, err := w.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// echo answers with the head of the request, each word in a form that is not masked.
func echo(w http.ResponseWriter, r *http.Request) {
	text := r.Proto + " " + r.Method + " " + r.Host + " " + r.RequestURI + "\n"
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range r.Header {
			if !yield(name) {
				return
			}
		}
	}) {
		text += name + ": " + strings.Join(r.Header[name], ", ") + "\n"
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write([]byte(text + string(body)))
}

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestSecretsAreReplacedWhereTheyBelong(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"HTTP/1.1", "HTTP/2.0"} {
		w := open(t, echo, options{http2: version == "HTTP/2.0"})
		for _, c := range []struct{ name, value, want string }{
			{"Authorization", "Bearer " + fake, "Bearer " + token},
			{"Authorization", "token " + fake, "token " + token},
			{"Authorization", fake, token},
			{"Authorization", basic("me:" + fake), basic("me:" + token)},
			{"Authorization", basic(fake + ":x-oauth-basic"), basic(token + ":x-oauth-basic")},
			{"Authorization", basic(fake + ":"), basic(token + ":")},
			{"X-Api-Key", fake, token},
			{"Private-Token", fake, token},
			{"User-Agent", "curl/8", "curl/8"},
			{"X-Forwarded-For", "1.2.3.4", "1.2.3.4"},
		} {
			status, body := get(t, w, "https://"+apiHost+"/a%2Fb?x=1;y&z=%zz", http.Header{c.name: {c.value}})
			if status != 200 || !strings.Contains(body, "\n"+c.name+": "+c.want+"\n") {
				t.Errorf("%s: %s: %s: %d %s", version, c.name, c.value, status, body)
			}
			if !strings.HasPrefix(body, version+" GET "+apiHost+" /a%2Fb?x=1;y&z=%zz\n") {
				t.Errorf("%s: the head is %.80s", version, body)
			}
		}
		if got := w.said(); len(got) != 8 || got[0] != "used GITHUB_TOKEN "+apiHost {
			t.Errorf("%s: said %q", version, got)
		}
	}
}

// Whatever else holds a placeholder is refused, and the host learns nothing.
func TestPlaceholdersElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	reached := 0
	w := open(t, func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached++
	}, options{})
	encoded := strings.ReplaceAll(fake, "_", "%5f")
	for _, c := range []struct {
		address string
		header  http.Header
		want    string
	}{
		{otherHost + "/", http.Header{"Authorization": {"Bearer " + fake}}, "elsewhere GITHUB_TOKEN " + otherHost},
		{otherHost + "/", http.Header{"Authorization": {basic("me:" + fake)}}, "elsewhere GITHUB_TOKEN " + otherHost},
		{otherHost + "/" + fake, nil, "elsewhere GITHUB_TOKEN " + otherHost},
		{otherHost + "/?a=" + encoded, nil, "elsewhere GITHUB_TOKEN " + otherHost},
		{apiHost + "/", http.Header{"X-Name": {fake}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/", http.Header{"X-Amz-Meta-A": {"a" + fake + "b"}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/", http.Header{"Cookie": {"a=" + fake}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/", http.Header{"User-Agent": {"x/" + fake}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/", http.Header{"Authorization": {"Bearer x" + fake}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/", http.Header{"Authorization": {fake + " " + fake}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/", http.Header{"Authorization": {"Bearer " + fake, "x"}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/", http.Header{"Authorization": {basic(fake + ":" + fake)}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/", http.Header{"Authorization": {basic("x" + fake)}}, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/?name=" + fake, nil, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/?name=" + encoded, nil, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/?" + fake + "=1", nil, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/?key=" + fake, nil, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/a/" + encoded, nil, "misplaced GITHUB_TOKEN " + apiHost},
		{apiHost + "/a/" + fake + "/b", nil, "misplaced GITHUB_TOKEN " + apiHost},
	} {
		before := len(w.said())
		status, body := get(t, w, "https://"+c.address, c.header)
		said := w.said()[before:]
		if status != http.StatusForbidden || len(said) != 1 || said[0] != c.want ||
			!strings.HasPrefix(body, "sandbox-sidecar: refused: ") {
			t.Errorf("%s, %q: %d %s%q", c.address, c.header, status, body, said)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if reached != 0 {
		t.Errorf("%d requests have reached the host", reached)
	}
}

// A body is passed on as it is: the placeholder in it opens nothing.
func TestABodyStaysAsItIs(t *testing.T) {
	t.Parallel()
	w := open(t, echo, options{})
	request, err := http.NewRequest(http.MethodPost, "https://"+apiHost+"/", strings.NewReader("the key is "+fake))
	if err != nil {
		t.Fatal(err)
	}
	if status, body := do(t, w, request); status != 200 || !strings.HasSuffix(body, "the key is "+fake) {
		t.Errorf("%d %s", status, body)
	}
}

func TestRequestsForAnotherHostAreRefused(t *testing.T) {
	t.Parallel()
	w := open(t, echo, options{protocols: []string{"http/1.1"}})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(w.inside.PEM())
	for head, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: " + apiHost + "\r\n":                                           "200",
		"GET / HTTP/1.1\r\nHost: API.example.com.:443\r\n":                                      "200",
		"GET https://" + apiHost + "/ HTTP/1.1\r\nHost: " + apiHost + "\r\n":                    "200",
		"GET / HTTP/1.1\r\nHost: " + otherHost + "\r\n":                                         "421",
		"GET / HTTP/1.1\r\nHost: " + apiHost + ":80\r\n":                                        "421",
		"GET / HTTP/1.1\r\nHost: " + apiHost + "@" + otherHost + "\r\n":                         "400",
		"GET https://" + otherHost + "/ HTTP/1.1\r\nHost: " + apiHost + "\r\n":                  "421",
		"GET http://" + apiHost + "/ HTTP/1.1\r\nHost: " + apiHost + "\r\n":                     "421",
		"GET https://u@" + apiHost + "/ HTTP/1.1\r\nHost: " + apiHost + "\r\n":                  "421",
		"TRACE / HTTP/1.1\r\nHost: " + apiHost + "\r\n":                                         "405",
		"CONNECT " + apiHost + ":443 HTTP/1.1\r\nHost: " + apiHost + ":443\r\n":                 "405",
		"GET / HTTP/1.1\r\nHost: " + apiHost + "\r\nHost: " + apiHost + "\r\n":                  "400",
		"GET / HTTP/1.1\r\nHost: " + apiHost + "\r\nTransfer-Encoding: x\r\n":                   "501",
		"GET / HTTP/1.1\r\nHost: " + apiHost + "\r\nContent-Length: 1\r\nContent-Length: 2\r\n": "400",
		"GET / HTTP/1.1\r\nHost: " + apiHost + "\r\nTransfer-Encoding: chunked\r\nX : y\r\n":    "400",
		"PRI * HTTP/2.0\r\n": "400",
	} {
		raw, err := w.dial(apiHost + ":443")
		if err != nil {
			t.Fatal(err)
		}
		conn := tls.Client(raw, &tls.Config{ServerName: apiHost, RootCAs: trusted})
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		if _, err := io.WriteString(conn, head+"Connection: close\r\n\r\n"); err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%q: %v", head, err)
		} else if got := fmt.Sprint(response.StatusCode); got != want {
			t.Errorf("%q: %s, want %s", head, got, want)
		}
		conn.Close()
	}
}

// A host that holds no valid certificate is not reached, and the program learns why
// from an answer.
func TestHostsAreCheckedStrictly(t *testing.T) {
	t.Parallel()
	strange, err := authority.New([]string{"example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		host func(*tls.Config)
		want string
	}{
		"unknown authority": {func(c *tls.Config) {
			c.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
				return strange.Certificate(h.ServerName)
			}
		}, "unknown authority"},
		"another name": {func(c *tls.Config) {
			given := c.GetCertificate
			c.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
				h.ServerName = otherHost
				return given(h)
			}
		}, "valid for " + otherHost},
		"old TLS": {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }, "protocol version"},
		"a client's certificate": {
			func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }, "asks for a client's certificate",
		},
	} {
		w := open(t, echo, options{host: c.host})
		status, body := get(t, w, "https://"+apiHost+"/", http.Header{"Authorization": {"Bearer " + fake}})
		if status != http.StatusBadGateway || !strings.Contains(body, c.want) || strings.Contains(body, token) {
			t.Errorf("%s: %d %s", name, status, body)
		}
		if said := w.said(); len(said) != 1 || said[0] != "unreachable  "+apiHost {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

func TestAClientThatTrustsOthersIsReported(t *testing.T) {
	t.Parallel()
	w := open(t, echo, options{})
	w.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	if response, err := w.client.Get("https://" + apiHost + "/"); err == nil {
		response.Body.Close()
		t.Fatal("it has connected")
	}
	for end := time.Now().Add(time.Minute); len(w.said()) == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if said := w.said(); len(said) != 1 || said[0] != "distrusted  "+apiHost {
		t.Errorf("said %q", said)
	}
}

// The client is offered what the host speaks.
func TestProtocolsAreThoseOfTheHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host []string
		want string
	}{{[]string{"h2", "http/1.1"}, "HTTP/2.0"}, {[]string{"http/1.1"}, "HTTP/1.1"}} {
		w := open(t, echo, options{protocols: c.host, http2: true})
		if _, body := get(t, w, "https://"+apiHost+"/", nil); !strings.HasPrefix(body, c.want) {
			t.Errorf("%q: %.20s", c.host, body)
		}
	}
}

// What a host echoes is masked, in whatever pieces it comes.
func TestAnswersAreMasked(t *testing.T) {
	t.Parallel()
	text := "a" + token + token[:5] + token + strings.Repeat("b", 70000) + token
	w := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Echo", token)
		var out io.Writer = w
		if r.URL.Path == "/gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			defer zip.Close()
			out = zip
		}
		for rest := text; rest != ""; {
			n := min(len(rest), 1+len(rest)%4000)
			_, _ = io.WriteString(out, rest[:n])
			if r.URL.Path == "/pieces" {
				w.(http.Flusher).Flush()
			}
			rest = rest[n:]
		}
	}, options{})
	for _, path := range []string{"/", "/pieces", "/gzip"} {
		request, err := http.NewRequest(http.MethodGet, "https://"+apiHost+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Encoding", "br, gzip;q=0.5")
		response, err := w.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != strings.ReplaceAll(text, token, fake) ||
			response.Header.Get("X-Echo") != fake {
			t.Errorf("%s: %d bytes, %v, %s", path, len(body), err, response.Header)
		}
	}
}

// What comes arrives at once, also if it could be the beginning of a secret.
func TestStreamsAreNotHeldBack(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	w := open(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for text := range next {
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
	}, options{})
	defer close(next)
	go func() { next <- "data: 0\n" }()
	response, err := w.client.Get("https://" + apiHost + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for i := range 10 {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
		next <- fmt.Sprintf("data: %d\n", i+1)
	}
}

// A connection that the host ends is ended inside, and the client makes another.
func TestTheHostsEndIsTheClients(t *testing.T) {
	t.Parallel()
	w := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		echo(w, r)
	}, options{protocols: []string{"http/1.1"}})
	for range 5 {
		if status, body := get(t, w, "https://"+apiHost+"/", http.Header{"X-Api-Key": {fake}}); status != 200 ||
			!strings.Contains(body, token) {
			t.Fatalf("%d %s", status, body)
		}
	}
}

func TestUpgradedConnectionsAreCopied(t *testing.T) {
	t.Parallel()
	w := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		conn, both, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := both.ReadString('\n')
		_, _ = io.WriteString(conn, "heard "+line)
	}, options{protocols: []string{"http/1.1"}})
	request, err := http.NewRequest(http.MethodGet, "https://"+apiHost+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{
		"Authorization": {"Bearer " + fake}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"},
	}
	response, err := w.client.Transport.RoundTrip(request) // a Client's limit of time hides how to write
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", response, err)
	}
	both := response.Body.(io.ReadWriteCloser)
	defer both.Close()
	if _, err := io.WriteString(both, fake+"\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(both).ReadString('\n'); line != "heard "+fake+"\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func TestLargeBodiesBothWays(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		w := open(t, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = io.Copy(w, r.Body)
		}, options{http2: http2})
		sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
		response, err := w.client.Post("https://"+apiHost+"/", "application/octet-stream", bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("HTTP/2 %t: %d bytes of %d, %v", http2, len(got), len(sent), err)
		}
	}
}
