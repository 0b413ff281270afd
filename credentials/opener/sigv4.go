package opener

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// SigningKey is a key that signs requests and is never sent: that of AWS. Its id is
// sent, so the id's placeholder says which key is meant.
type SigningKey struct{ ID, Key *Secret }

// signature is the header of Signature Version 4 (docs.aws.amazon.com, "AWS
// Signature Version 4 for API requests").
var signature = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/,\s]+)/(\d{8})/([\w-]+)/([\w-]+)/aws4_request, ?` +
		`SignedHeaders=([a-z0-9;-]+), ?Signature=[0-9a-f]{64}$`)
})

// mostSigned is the largest body in bytes whose hash is computed here, because the
// request does not name it. Such requests are calls of an API.
const mostSigned = 8 << 20

// signed finds the key by which a request is to be signed; nil if it is another
// kind of request.
func (o *Opener) signed(r *http.Request) (*SigningKey, []string) {
	found := signature().FindStringSubmatch(r.Header.Get("Authorization"))
	if found == nil || len(r.Header["Authorization"]) != 1 {
		return nil, nil
	}
	for i := range o.config.SigningKeys {
		if key := &o.config.SigningKeys[i]; key.ID.Placeholder == found[1] {
			return key, found[1:]
		}
	}
	return nil, nil
}

// sign signs a request anew, with the key itself, over what the client has signed.
func (k *connection) sign(r *http.Request, key *SigningKey, parts []string) error {
	region, service, names := parts[2], parts[3], parts[4]
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return fmt.Errorf("no X-Amz-Date")
	}
	hash := r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case strings.HasPrefix(hash, "STREAMING-AWS4-"):
		return fmt.Errorf("each part of its body is signed, which is not supported")
	case hash == "":
		body, err := io.ReadAll(io.LimitReader(r.Body, mostSigned+1))
		if err != nil {
			return fmt.Errorf("read its body: %w", err)
		}
		if len(body) > mostSigned {
			return fmt.Errorf("its body is larger than %d MiB and has no hash", mostSigned>>20)
		}
		sum := sha256.Sum256(body)
		hash, r.Body = hex.EncodeToString(sum[:]), io.NopCloser(bytes.NewReader(body))
	}
	header := http.Header{}
	for name := range strings.SplitSeq(names, ";") {
		if name = http.CanonicalHeaderKey(name); name != "Host" && name != "Content-Length" {
			header[name] = r.Header[name]
		}
	}
	address := *r.URL
	address.Scheme, address.Host = "https", k.String()
	again := &http.Request{
		Method: r.Method, URL: &address, Host: k.String(), Header: header, ContentLength: r.ContentLength,
	}
	if !strings.Contains(";"+names+";", ";content-length;") {
		again.ContentLength = 0
	}
	signer := v4.NewSigner(func(options *v4.SignerOptions) { options.DisableURIPathEscaping = service == "s3" })
	identity := aws.Credentials{AccessKeyID: key.ID.Value, SecretAccessKey: key.Key.Value}
	if err := signer.SignHTTP(context.Background(), identity, again, hash, service, region, at); err != nil {
		return fmt.Errorf("sign it: %w", err)
	}
	r.Header.Set("Authorization", again.Header.Get("Authorization"))
	return nil
}
