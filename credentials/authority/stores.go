package authority

import (
	"bytes"
	"crypto/sha1"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// javaPassword is the one that all Java installations have for their trust store.
const javaPassword = "changeit"

// Bundle is a file of certificates in PEM with the session's one.
func (a *Authority) Bundle(machines []byte) []byte {
	machines = bytes.TrimRight(machines, "\n")
	if len(machines) > 0 {
		machines = append(machines[:len(machines):len(machines)], '\n')
	}
	return append(machines, a.PEM()...)
}

// Java is a trust store of Java, in either of its formats, with the session's
// certificate. It is PKCS #12 without a password, which Java opens with any.
func (a *Authority) Java(machines []byte) ([]byte, error) {
	list, err := readJava(machines)
	if err != nil {
		return nil, err
	}
	entries := []pkcs12.TrustStoreEntry{{Cert: a.root, FriendlyName: "sandbox-sidecar"}}
	for i, certificate := range list {
		entries = append(entries, pkcs12.TrustStoreEntry{Cert: certificate, FriendlyName: fmt.Sprint("machine-", i)})
	}
	made, err := pkcs12.Passwordless.EncodeTrustStoreEntries(entries, "")
	if err != nil {
		return nil, fmt.Errorf("write a trust store of Java: %w", err)
	}
	return made, nil
}

func readJava(store []byte) ([]*x509.Certificate, error) {
	for _, password := range []string{"", javaPassword} {
		if list, err := pkcs12.DecodeTrustStore(store, password); err == nil {
			return list, nil
		}
	}
	old := keystore.New()
	if err := old.Load(bytes.NewReader(store), []byte(javaPassword)); err != nil {
		return nil, errors.New("read a trust store of Java: neither PKCS #12 nor JKS with the usual password")
	}
	var list []*x509.Certificate
	for _, alias := range old.Aliases() {
		entry, err := old.GetTrustedCertificateEntry(alias)
		if err != nil {
			continue // a key, which no trust store needs
		}
		certificate, err := x509.ParseCertificate(entry.Certificate.Content)
		if err != nil {
			continue // Go is stricter than Java, and a program would trust less
		}
		list = append(list, certificate)
	}
	return list, nil
}

// HashName is the name of the session's certificate in a directory that OpenSSL
// looks into: the hash of its subject, as "openssl x509 -hash" prints it, and ".0".
func (a *Authority) HashName() (string, error) {
	canonical, err := canonicalName(a.root.RawSubject)
	if err != nil {
		return "", err
	}
	sum := sha1.Sum(canonical)
	return fmt.Sprintf("%08x.0", binary.LittleEndian.Uint32(sum[:])), nil
}

// canonicalName is a subject in OpenSSL's canonical form (crypto/x509/x_name.c):
// each value as UTF-8 in small letters, without the sequence around all. Ours has
// one value of ASCII, with single spaces in it.
func canonicalName(subject []byte) ([]byte, error) {
	type attribute struct {
		Type  asn1.ObjectIdentifier
		Value string `asn1:"utf8"`
	}
	type names []attribute
	var read []asn1.RawValue
	if _, err := asn1.Unmarshal(subject, &read); err != nil {
		return nil, fmt.Errorf("read a subject: %w", err)
	}
	var out []byte
	for _, set := range read {
		var values names
		if _, err := asn1.UnmarshalWithParams(set.FullBytes, &values, "set"); err != nil {
			return nil, fmt.Errorf("read a subject: %w", err)
		}
		for i := range values {
			values[i].Value = string(bytes.ToLower([]byte(values[i].Value)))
		}
		written, err := asn1.MarshalWithParams(values, "set")
		if err != nil {
			return nil, fmt.Errorf("write a subject: %w", err)
		}
		out = append(out, written...)
	}
	return out, nil
}
