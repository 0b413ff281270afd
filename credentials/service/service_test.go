package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials/authority"
)

const secret = "ghp_real0000real0000real"

// channels is a pair of them.
func channels(t *testing.T) (sidecar, program *credentials.Channel) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := make([]*credentials.Channel, 2)
	for i, fd := range pair {
		if ends[i], err = credentials.FromFile(os.NewFile(uintptr(fd), "pair")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	return ends[0], ends[1]
}

func TestPrepare_GivesPlaceholders(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	npmrc := filepath.Join(home, ".npmrc")
	write(t, npmrc, "//npm.example.com/:_authToken="+secret+"\n")
	write(t, filepath.Join(home, "odd.bin"), secret)
	write(t, filepath.Join(home, "mine.pem"), "MY OWN\n")
	order := credentials.Order{
		Dir: dir,
		Trusted: map[string]string{
			"CURL_CA_BUNDLE": filepath.Join(home, "mine.pem"), "SSL_CERT_FILE": "/missing",
		},
		Wanted: []credentials.Wanted{
			{Name: "TOKEN", Variable: "TOKEN", Value: secret, Hosts: []string{"a.example"}},
			{Name: "AGAIN", Variable: "AGAIN", Value: secret, Hosts: []string{"b.example"}},
			{Name: "UNSET", Variable: "UNSET", Hosts: []string{"a.example"}},
			{Name: "SHORT", Variable: "SHORT", Value: "x", Hosts: []string{"a.example"}},
			{Name: "LONG", Variable: "LONG", Value: strings.Repeat("x", 64<<10), Hosts: []string{"a.example"}},
			{Name: "LINES", Variable: "LINES", Value: "-----BEGIN\nX", Hosts: []string{"a.example"}},
			{Name: "NOWHERE", Variable: "NOWHERE", Value: secret},
			{Name: "~/.npmrc", File: npmrc, Format: npmrc, Hosts: []string{"npm.example.com"}},
			{Name: "~/gone", File: home + "/gone", Format: home + "/.npmrc", Hosts: []string{"a.example"}},
			{Name: "~/odd", File: home + "/odd.bin", Format: home + "/odd.bin", Hosts: []string{"a.example"}},
			{Name: "~/dir", File: home, Format: home + "/.npmrc", Hosts: []string{"a.example"}},
			{Name: "ci", Command: []string{"/nonexistent"}, As: "CI", Hosts: []string{"a.example"}},
		},
	}
	made, given, err := prepare(order)
	if err != nil {
		t.Fatal(err)
	}
	for name, length := range map[string]int{"TOKEN": len(secret), "AGAIN": len(secret), "CI": 52} {
		if got := given.Variables[name]; len(got) != length || got == secret {
			t.Errorf("%s=%s", name, got)
		}
	}
	if given.Variables["TOKEN"] == given.Variables["AGAIN"] {
		t.Error("two credentials have one placeholder")
	}
	withheld := []string{}
	for _, w := range given.Withheld {
		withheld = append(withheld, w.Name)
		if w.Variable != "" && given.Variables[w.Variable] != "" || strings.Contains(w.Why, secret) {
			t.Errorf("%+v", w)
		}
	}
	if want := []string{"SHORT", "LONG", "LINES", "NOWHERE", "~/odd", "~/dir"}; !slices.Equal(withheld, want) {
		t.Errorf("withheld %q, want %q", withheld, want)
	}
	if len(made.Secrets) != 4 {
		t.Errorf("%d secrets", len(made.Secrets))
	}
	// Nothing that the session reads holds a secret.
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	copied := ""
	for _, f := range given.Files {
		if f.Path == npmrc {
			data, err := os.ReadFile(f.Source)
			if err != nil {
				t.Fatal(err)
			}
			copied = string(data)
		}
	}
	if !strings.HasPrefix(copied, "//npm.example.com/:_authToken=ghp_") {
		t.Errorf("the copy is %q", copied)
	}
	root := string(made.Authority.PEM())
	mine, err := os.ReadFile(given.Variables["CURL_CA_BUNDLE"])
	if err != nil || string(mine) != "MY OWN\n"+root {
		t.Errorf("the user's bundle: %q, %v", mine, err)
	}
	bundle, err := os.ReadFile(given.Variables["NODE_EXTRA_CA_CERTS"])
	if err != nil || !strings.HasSuffix(string(bundle), root) {
		t.Errorf("the machine's bundle: %d bytes, %v", len(bundle), err)
	}
}

// A command runs when its secret is first used, once if it succeeds.
func TestFetched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := func(text string) []string { return []string{"/bin/sh", "-c", "echo x >>" + dir + "/ran; " + text} }
	fetch := fetched(script("echo "+secret+"; echo more"), nil)
	for range 3 {
		if got, err := fetch(t.Context()); got != secret || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if ran, _ := os.ReadFile(dir + "/ran"); string(ran) != "x\n" {
		t.Errorf("ran %q", ran)
	}
	for text, want := range map[string]string{
		"echo why >&2; exit 3":     "exit status 3: why",
		"true":                     "prints nothing",
		"echo short":               "shorter than",
		"read x && echo " + secret: "exit status 1", // it has no input
		"yes | head -c 9000000":    "shorter than",
		"echo two words and some":  "no header takes",
	} {
		if got, err := fetched(script(text), nil)(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := fetched(script("sleep 1000 & sleep 1000"), nil)(ctx); err == nil || time.Since(begun) > time.Minute {
		t.Errorf("one that hangs: %v after %s", err, time.Since(begun))
	}
}

// The whole of it, without the sidecar: an order, a connection, a request.
func TestRun_ServesConnections(t *testing.T) {
	t.Parallel()
	sidecar, program := channels(t)
	ran := make(chan error, 1)
	go func() { ran <- Run(program) }()
	host := strange(t)
	if err := sidecar.Send(credentials.Message{Order: &credentials.Order{
		Dir: t.TempDir(), Wanted: []credentials.Wanted{{
			Name: "T", Variable: "T", Value: secret, Hosts: []string{"a.example"},
		}},
	}}); err != nil {
		t.Fatal(err)
	}
	m, _, err := sidecar.Receive()
	if err != nil || m.Given == nil {
		t.Fatalf("%+v, %v", m, err)
	}
	bundle, err := os.ReadFile(m.Given.Variables["PIP_CERT"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return pass(sidecar, host.Listener.Addr().String())
		},
	}}
	response, err := client.Get("https://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	// The host's certificate is of no authority that this machine knows.
	if response.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "unknown authority") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	client.CloseIdleConnections()
	kinds := []string{}
	for range 2 {
		m, _, err := sidecar.Receive()
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, fmt.Sprint(m.Event != nil, m.Ended))
	}
	if fmt.Sprint(kinds) != "[true 0 false 7]" {
		t.Errorf("said %q", kinds)
	}
	_ = sidecar.Close()
	if err := <-ran; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// strange is a host whose certificate nobody trusts.
func strange(t *testing.T) *httptest.Server {
	t.Helper()
	a, err := authority.New([]string{"a.example"})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := a.Certificate("a.example")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// pass hands a connection to a host over, and returns the client's end.
func pass(to *credentials.Channel, address string) (net.Conn, error) {
	host, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer host.Close()
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
	defer accepted.Close()
	var descriptors []int
	for _, conn := range []net.Conn{accepted, host} {
		file, err := conn.(*net.TCPConn).File()
		if err != nil {
			return nil, err
		}
		defer file.Close()
		descriptors = append(descriptors, int(file.Fd()))
	}
	return client, to.Send(credentials.Message{
		Connection: &credentials.Connection{Number: 7, Name: "a.example", Port: 443},
	}, descriptors...)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
