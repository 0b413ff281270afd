package authority

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func made(t *testing.T, names ...string) *Authority {
	t.Helper()
	a, err := New(names)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// verify is what a client that trusts the session's root says of a host.
func verify(t *testing.T, a *Authority, name string) error {
	t.Helper()
	c, err := a.Certificate(name)
	if err != nil {
		t.Fatal(err)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.PEM()) {
		t.Fatal("no certificate in PEM")
	}
	for _, raw := range c.Certificate[1:] {
		certificate, err := x509.ParseCertificate(raw)
		if err != nil {
			t.Fatal(err)
		}
		between.AddCert(certificate)
	}
	_, err = c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: between})
	return err
}

func TestAuthority_SignsForItsNamesAlone(t *testing.T) {
	t.Parallel()
	a := made(t, "api.example.com", "example.org")
	for _, name := range []string{"api.example.com", "API.example.com", "below.api.example.com", "example.org"} {
		if err := verify(t, a, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"example.com", "evil.example.com", "xapi.example.com", "notexample.org", "org"} {
		if err := verify(t, a, name); err == nil {
			t.Errorf("%s is trusted", name)
		}
	}
	if _, err := New(nil); err == nil {
		t.Error("an authority for everything")
	}
	long := strings.Repeat("a123456789.", 20) + "example.org"
	if err := verify(t, a, long); err != nil {
		t.Errorf("a long name: %v", err)
	}
}

func TestAuthority_ItsRootSignsNothingElse(t *testing.T) {
	t.Parallel()
	a := made(t, "example.org")
	c, err := a.Certificate("example.org")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Leaf.CheckSignatureFrom(a.root); err == nil {
		t.Error("the root has signed a leaf")
	}
	if a.key.Equal(a.root.PublicKey) || a.key.PublicKey.Equal(a.root.PublicKey) {
		t.Error("the root's key is kept")
	}
	if age := time.Since(a.root.NotBefore); age < time.Hour || age > 2*time.Hour {
		t.Errorf("valid since %s", age)
	}
	if again, _ := a.Certificate("example.org"); again != c {
		t.Error("two certificates for one host")
	}
	if other, _ := a.Certificate("b.example.org"); len(other.Leaf.DNSNames) != 1 || other == c {
		t.Errorf("names %q", other.Leaf.DNSNames)
	}
}

// A client of Go's connects by it, and one that does not trust it refuses.
func TestAuthority_Connects(t *testing.T) {
	t.Parallel()
	a := made(t, "example.org")
	for trusted, want := range map[bool]bool{true: true, false: false} {
		client, server := net.Pipe()
		done := make(chan error, 1)
		go func() {
			c, err := a.Certificate("example.org")
			if err == nil {
				err = tls.Server(server, &tls.Config{Certificates: []tls.Certificate{*c}}).Handshake()
			}
			server.Close()
			done <- err
		}()
		roots := x509.NewCertPool()
		if trusted {
			roots.AppendCertsFromPEM(a.PEM())
		}
		err := tls.Client(client, &tls.Config{ServerName: "example.org", RootCAs: roots}).Handshake()
		client.Close()
		<-done
		if (err == nil) != want {
			t.Errorf("trusted %t: %v", trusted, err)
		}
	}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	a := made(t, "example.org")
	for _, machines := range []string{"", "# none\n", string(made(t, "other.example").PEM())} {
		got := a.Bundle([]byte(machines))
		if !strings.HasPrefix(string(got), machines) || !bytes.HasSuffix(got, a.PEM()) {
			t.Errorf("%q", got)
		}
		if machines != "" && bytes.Contains(got, []byte("\n\n")) {
			t.Errorf("an empty line in %q", got)
		}
	}
}

// OpenSSL finds it by its name in a directory.
func TestHashName_IsThatOfOpenSSL(t *testing.T) {
	t.Parallel()
	harness.Once(t, "it computes a name")
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Fatal(err)
	}
	a := made(t, "example.org")
	file := filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(file, a.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(openssl, "x509", "-hash", "-noout", "-in", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	name, err := a.HashName()
	if want := strings.TrimSpace(string(out)) + ".0"; err != nil || name != want {
		t.Errorf("%s, %v, want %s", name, err, want)
	}
}

func TestJava_ReadsBothFormats(t *testing.T) {
	t.Parallel()
	a, other := made(t, "example.org"), made(t, "other.example")
	modern, err := other.Java(emptyStore(t))
	if err != nil {
		t.Fatal(err)
	}
	old := keystore.New()
	if err := old.SetTrustedCertificateEntry("x", keystore.TrustedCertificateEntry{
		CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: other.root.Raw},
	}); err != nil {
		t.Fatal(err)
	}
	var jks bytes.Buffer
	if err := old.Store(&jks, []byte(javaPassword)); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string][]byte{"PKCS #12": modern, "JKS": jks.Bytes()} {
		got, err := a.Java(store)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		list, err := readJava(got)
		if err != nil || len(list) < 2 || !list[0].Equal(a.root) || !list[1].Equal(other.root) {
			t.Errorf("%s: %d certificates, %v", name, len(list), err)
		}
	}
	for _, store := range []string{"", "nonsense", string(pem.EncodeToMemory(&pem.Block{Type: "X"}))} {
		if _, err := a.Java([]byte(store)); err == nil {
			t.Errorf("%q is a trust store", store)
		}
	}
}

// emptyStore is one store of the old format.
func emptyStore(t *testing.T) []byte {
	t.Helper()
	var empty bytes.Buffer
	if err := keystore.New().Store(&empty, []byte(javaPassword)); err != nil {
		t.Fatal(err)
	}
	return empty.Bytes()
}
