package outbound

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net/netip"
	"slices"
	"syscall"
	"testing"
)

// serverHello is a record with the beginning of the server's answer.
func serverHello(random []byte) []byte {
	body := slices.Concat([]byte{3, 3}, random, []byte{0, 0x13, 1, 0})
	return record(recordHandshake, 3, 3, append([]byte{messageServer}, counted(3, body)...))
}

// After a HelloRetryRequest another hello passes only if it is for the same
// server.
func TestRelay_JudgesTheSecondHello(t *testing.T) {
	t.Parallel()
	named := func(name string, more ...[]byte) []byte {
		p := usualParts()
		p.extensions[1] = serverName(name)
		p.extensions = append(p.extensions, more...)
		return record(recordHandshake, 3, 3, p.message())
	}
	good, evil := named("allowed.example"), named("evil.example")
	again, taken := serverHello(retryRandom), serverHello(make([]byte, randomLength))
	alert, cipher := record(recordAlert, 3, 3, []byte{1, 112}), record(recordCipher, 3, 3, []byte{1})
	early := record(recordData, 3, 3, make([]byte, 50))
	for name, test := range map[string]struct {
		answer, second []byte
		passes         bool
	}{
		"the same":                    {again, good, true},
		"after change_cipher_spec":    {again, slices.Concat(cipher, good), true},
		"after early data":            {again, slices.Concat(early, cipher, good), true},
		"no TLS after the agreement":  {taken, []byte("anything"), false},
		"encrypted bytes":             {taken, early, true},
		"change_cipher_spec":          {taken, slices.Concat(cipher, early), true},
		"keys":                        {taken, record(recordHandshake, 3, 3, []byte{messageKeys, 0, 0, 0}), true},
		"a certificate":               {taken, record(recordHandshake, 3, 1, []byte{messageCertificate, 0}), true},
		"an alert after the answer":   {taken, alert, true},
		"a restart":                   {taken, evil, false},
		"a restart, after an alert":   {taken, slices.Concat(alert, evil), false},
		"a restart, in pieces":        {taken, records(evil, 1), false},
		"a restart, the same name":    {taken, good, false},
		"a restart, an empty record":  {taken, slices.Concat(record(recordHandshake, 3, 3, nil), evil), false},
		"a restart, a HelloRequest":   {taken, record(recordHandshake, 3, 3, []byte{0, 0, 0, 0}), false},
		"a heartbeat":                 {taken, record(24, 3, 3, []byte{1, 0, 0}), false},
		"an alert and the end":        {again, alert, true},
		"another":                     {again, evil, false},
		"another, after an alert":     {again, slices.Concat(alert, evil), false},
		"another, after early data":   {again, slices.Concat(early, evil), false},
		"another, in pieces":          {again, records(evil, 3), false},
		"an alert before the answer":  {slices.Concat(alert, again), evil, false},
		"an answer in pieces":         {records(again, 5), evil, false},
		"another form":                {again, slices.Concat([]byte{22, 2, 1}, good[3:]), false},
		"with a hidden one":           {again, named("allowed.example", extension(extensionECH, 1)), false},
		"no record":                   {again, []byte("GET / HTTP/1.1\r\n\r\n"), false},
		"an answer that is no TLS":    {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), good, false},
		"another form of the message": {record(recordHandshake, 3, 3, []byte{0, 0, 0, 0}), evil, false},
	} {
		for _, atOnce := range []bool{true, false} { // before the answer, or after it
			client, host, ended := relayed(t)
			first := good
			if atOnce {
				first = slices.Concat(good, test.second)
			}
			_, _ = client.Write(first)
			got := make([]byte, len(good))
			if _, err := io.ReadFull(host, got); err != nil || !slices.Equal(got, good) {
				t.Fatalf("%s: the first hello: %v", name, err)
			}
			_, _ = host.Write(test.answer)
			if _, err := io.ReadFull(client, make([]byte, len(test.answer))); err != nil && test.passes {
				t.Fatalf("%s: the answer: %v", name, err)
			}
			if !atOnce {
				_, _ = client.Write(test.second)
			}
			_ = client.CloseWrite()
			rest, _ := io.ReadAll(host)
			host.Close()
			if refusal := <-ended; (refusal == nil) != test.passes {
				t.Errorf("%s, at once %v: %+v", name, atOnce, refusal)
			}
			// What servers skip may have passed before.
			if test.passes && !slices.Equal(rest, test.second) || !bytes.HasPrefix(test.second, rest) ||
				!test.passes && bytes.Contains(rest, []byte(".example")) {
				t.Errorf("%s, at once %v: %d bytes reached the host, of %d", name, atOnce, len(rest), len(test.second))
			}
			if _, err := client.Read(make([]byte, 1)); !test.passes && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: the client got %v", name, err)
			}
		}
	}
}

// A real server asks for another key share, and gets it.
func TestRelay_PassesARealSecondHello(t *testing.T) {
	t.Parallel()
	client, host, _ := relayed(t)
	certificate := selfSigned(t)
	failed := make(chan error, 1)
	go func() {
		server := tls.Server(host, &tls.Config{
			Certificates: []tls.Certificate{certificate}, CurvePreferences: []tls.CurveID{tls.CurveP521},
		})
		_, err := server.Write([]byte("hello"))
		failed <- err
	}()
	conn := tls.Client(client, &tls.Config{
		ServerName: "allowed.example", InsecureSkipVerify: true,
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP521},
	})
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" || <-failed != nil {
		t.Fatalf("%q, %v", got, err)
	}
	if !conn.ConnectionState().HelloRetryRequest {
		t.Error("the server did not ask for another hello")
	}
}

// selfSigned is a certificate that nobody checks.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"allowed.example"}}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// Without a name an encrypted hello could be for anybody. With the name of an
// allowed server it passes, as browsers send it to everybody.
func TestJudge_AnEncryptedHelloNeedsAnAllowedName(t *testing.T) {
	t.Parallel()
	judge := Judge{Rules: rules(t, "allowed.example"), To: Target{Name: "allowed.example", Port: 443}}
	byAddress := Judge{
		Rules: rules(t, "192.0.2.1"), To: Target{Addr: netip.MustParseAddr("192.0.2.1"), Port: 443},
	}
	for _, kind := range []int{extensionECH, extensionECHObsolete} {
		for name, allowed := range map[string]bool{"allowed.example": true, "evil.example": false, "": false} {
			p := usualParts()
			p.extensions[1] = extension(kind, 1, 2)
			if name != "" {
				p.extensions = append(p.extensions, serverName(name))
			}
			hello := record(recordHandshake, 3, 1, p.message())
			first, refusal, done := judge.judge(new(greeting), hello)
			if !done || (refusal == nil) != allowed || allowed && !first.encrypted {
				t.Errorf("%x, %q: %+v, %+v", kind, name, first, refusal)
			}
			// Every server behind an allowed address is allowed.
			if _, refusal, done := byAddress.judge(new(greeting), hello); !done || refusal != nil {
				t.Errorf("%x, %q, by address: %+v", kind, name, refusal)
			}
		}
	}
}
