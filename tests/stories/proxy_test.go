//go:build linux

package stories

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// In a company everything goes through a proxy that opens TLS connections with
// a certificate of its own. curl, Python and npm find both by variables, and
// work at once. The proxy's password is mentioned once.
func TestBehindACompanyProxy(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "curl", "python3", "npm", "node")
	u := newUser(t, `{"toolchains": ["node"]}`)
	proxy := newProxy(t)
	certificate := filepath.Join(u.Home, "company", "ca.pem")
	harness.Write(t, certificate, string(proxy.certificate))
	address := "http://me:secret@" + proxy.address
	u.env = append(u.env, "HTTPS_PROXY="+address, "https_proxy="+address, "SSL_CERT_FILE="+certificate,
		"CURL_CA_BUNDLE="+certificate, "NODE_EXTRA_CA_CERTS="+certificate)
	harness.Write(t, u.ProjectPath(".npmrc"), "registry=https://registry.example/\nfetch-retries=0\n")
	harness.Write(t, u.ProjectPath("package.json"), `{"name": "app", "version": "1.0.0", "private": true}`)

	screen, status := u.types(t, `sandbox-sidecar exec -- curl -sS https://registry.example/hello`)
	sees(t, screen, "hello from the other side")
	if status != "0" {
		t.Errorf("exit status %s", status)
	}
	sees(t, screen, "password of your proxy\n!secret")
	screen, status = u.types(t, `sandbox-sidecar exec -- python3 -c '
import urllib.request
print(urllib.request.urlopen("https://registry.example/hello").read().decode())'`)
	sees(t, screen, "hello from the other side")
	if status != "0" {
		t.Errorf("exit status %s", status)
	}
	// The machine's own settings of npm may name a certificate, which would win.
	screen, status = u.types(t, `sandbox-sidecar exec -- npm install --no-audit --no-fund --globalconfig /dev/null dep
sandbox-sidecar exec -- node -p 'require("dep")'`)
	sees(t, screen, "answered")
	if status != "0" {
		t.Errorf("exit status %s", status)
	}

	// Control: without the certificate nothing works.
	u.env = append(u.env, "CURL_CA_BUNDLE=", "SSL_CERT_FILE=")
	if screen, status := u.types(t, `curl -sS https://registry.example/hello`); status == "0" {
		t.Errorf("control: without the company's certificate: %s", screen)
	}
}

// proxy is an HTTP proxy that answers every host itself, with a certificate of
// its own authority.
type proxy struct {
	address     string
	certificate []byte
	authority   *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p := &proxy{}
	var err error
	p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(t, err)
	p.authority = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Company"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, p.authority, p.authority, p.key.Public(), p.key)
	harness.Must(t, err)
	p.authority, err = x509.ParseCertificate(der)
	harness.Must(t, err)
	p.certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	p.address = listener.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(p.connect), ReadHeaderTimeout: harness.Timeout}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return p
}

// connect answers CONNECT, and then serves the host's pages.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	host, _, _ := net.SplitHostPort(r.Host)
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer connection.Close()
	leaf, err := p.leaf(host)
	if err != nil {
		return
	}
	fmt.Fprint(connection, "HTTP/1.1 200 OK\r\n\r\n")
	inner := tls.Server(connection, &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12})
	requests := bufio.NewReader(inner)
	for {
		request, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		body := page(request.URL)
		response := http.Response{
			StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: request,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}
		if body == nil {
			response.StatusCode = http.StatusNotFound
		}
		if response.Write(inner) != nil {
			return
		}
	}
}

func (p *proxy) leaf(host string) (tls.Certificate, error) {
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{host}, NotBefore: p.authority.NotBefore,
		NotAfter: p.authority.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, p.authority, p.key.Public(), p.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: p.key}, err
}

// page is what every host serves: a greeting, and a registry with one package.
func page(at *url.URL) []byte {
	switch at.Path {
	case "/hello":
		return []byte("hello from the other side\n")
	case "/dep":
		return []byte(`{"name": "dep", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "dep",
"version": "1.0.0", "main": "dep.js", "dist": {"tarball": "https://registry.example/dep.tgz"}}}}`)
	case "/dep.tgz":
		var packed bytes.Buffer
		compressed := gzip.NewWriter(&packed)
		archive := tar.NewWriter(compressed)
		for name, content := range map[string]string{
			"package.json": `{"name": "dep", "version": "1.0.0", "main": "dep.js"}`,
			"dep.js":       `module.exports = "answered"`,
		} {
			_ = archive.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(content))})
			_, _ = io.WriteString(archive, content)
		}
		_, _ = archive.Close(), compressed.Close()
		return packed.Bytes()
	}
	return nil
}
