// Package authority makes the certificates by which a session trusts the program
// that opens its TLS, and puts them into copies of the machine's trust stores.
//
// An [Authority] exists in memory alone, and only sessions trust it. It signs for
// hosts of credentials and for no others: its root signs one intermediate, whose
// names are constrained, and forgets its own key. The constraints are not those of
// the root, because Java does not check a trust anchor's. See
// docs/design/credentials.md.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"
)

const (
	// early is how long before now a certificate becomes valid: a program's clock
	// may be late.
	early = time.Hour
	// lifetime is that of the authority. A sidecar does not live as long.
	lifetime = 2 * 365 * 24 * time.Hour
	// leafLifetime is that of a host's certificate, and renewal the age at which
	// another one takes its place.
	leafLifetime, renewal = 7 * 24 * time.Hour, 24 * time.Hour
)

// Authority signs certificates for the hosts of credentials. It may be used from
// several goroutines.
type Authority struct {
	root, intermediate *x509.Certificate
	key                *ecdsa.PrivateKey // of the intermediate

	mu     sync.Mutex // guards leaves
	leaves map[string]*tls.Certificate
}

// New makes an authority for names and all names below them.
func New(names []string) (*Authority, error) {
	if len(names) == 0 {
		return nil, errors.New("make an authority: no names") // it would sign for all
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-early), NotAfter: time.Now().Add(lifetime),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
			PermittedDNSDomainsCritical: true, PermittedDNSDomains: names,
		}
	}
	anchor := template("sandbox-sidecar session root")
	anchor.MaxPathLen = 1
	a := &Authority{leaves: map[string]*tls.Certificate{}}
	if a.root, err = sign(anchor, anchor, &rootKey.PublicKey, rootKey); err != nil {
		return nil, err
	}
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	below := template("sandbox-sidecar session")
	below.MaxPathLenZero = true
	a.intermediate, err = sign(below, a.root, &a.key.PublicKey, rootKey)
	return a, err
}

// Certificate is that of a host, with the intermediate. No other host has it, so no
// client joins two hosts on one connection. The name must be one of New's, or below
// one, or clients will refuse it.
func (a *Authority) Certificate(name string) (*tls.Certificate, error) {
	name = strings.ToLower(name)
	a.mu.Lock()
	defer a.mu.Unlock()
	if kept := a.leaves[name]; kept != nil && time.Since(kept.Leaf.NotBefore) < early+renewal {
		return kept, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	leaf, err := sign(&x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: short(name)}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-early), NotAfter: time.Now().Add(leafLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.intermediate, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	made := &tls.Certificate{Certificate: [][]byte{leaf.Raw, a.intermediate.Raw}, PrivateKey: key, Leaf: leaf}
	a.leaves[name] = made
	return made, nil
}

// PEM is the certificate that sessions trust.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})
}

// short is a name that fits into a common name (RFC 5280, ub-common-name).
func short(name string) string {
	const most = 64
	return name[max(0, len(name)-most):]
}

func sign(
	template, parent *x509.Certificate, public *ecdsa.PublicKey, by *ecdsa.PrivateKey,
) (*x509.Certificate, error) {
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate for %s: %w", template.Subject.CommonName, err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("read back a certificate: %w", err)
	}
	return made, nil
}

// serial is a random serial number of 120 bits.
func serial() *big.Int {
	var bytes [15]byte
	_, _ = rand.Read(bytes[:]) // which never fails
	return new(big.Int).SetBytes(bytes[:])
}
