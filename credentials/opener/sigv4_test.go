package opener

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

const (
	keyID, keyIDFake = "AKIAREALREALREALREAL", "AKIAFAKEFAKEFAKEFAKE"
	key, keyFake     = "real/real+real0123456789", "fake/fake+fake9876543210"
)

// verified is a host that takes requests signed with the real key, and answers with
// their bodies.
func verified(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sum := sha256.Sum256(body)
		hash := r.Header.Get("X-Amz-Content-Sha256")
		if hash == "" {
			hash = hex.EncodeToString(sum[:])
		}
		given := r.Header.Get("Authorization")
		_, rest, _ := strings.Cut(given, "SignedHeaders=")
		names, _, _ := strings.Cut(rest, ",")
		scope := strings.Split(given, "/")
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil || len(scope) != 5 {
			http.Error(w, "what is "+given, http.StatusBadRequest)
			return
		}
		again := r.Clone(context.Background())
		again.Header, again.URL.Scheme, again.URL.Host = http.Header{}, "https", r.Host
		again.ContentLength = 0
		for name := range strings.SplitSeq(names, ";") {
			if name == "content-length" {
				again.ContentLength = r.ContentLength
			} else if name = http.CanonicalHeaderKey(name); name != "Host" {
				again.Header[name] = r.Header[name]
			}
		}
		signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = scope[3] == "s3" })
		if err := signer.SignHTTP(r.Context(), aws.Credentials{AccessKeyID: keyID, SecretAccessKey: key}, again, hash,
			scope[3], scope[2], at); err != nil {
			t.Error(err)
		}
		if want := again.Header.Get("Authorization"); given != want {
			http.Error(w, given+"\n"+want, http.StatusForbidden)
			return
		}
		_, _ = w.Write(body)
	}
}

func TestRequestsAreSignedWithTheRealKey(t *testing.T) {
	t.Parallel()
	w := open(t, verified(t), options{configure: func(c *Config) {
		belongs := c.Secrets[0].Belongs
		pair := SigningKey{
			ID:  &Secret{Name: "AWS_ACCESS_KEY_ID", Placeholder: keyIDFake, Value: keyID, Belongs: belongs},
			Key: &Secret{Name: "AWS_SECRET_ACCESS_KEY", Placeholder: keyFake, Value: key, Belongs: belongs},
		}
		c.Secrets = append(c.Secrets, pair.ID, pair.Key)
		c.SigningKeys = []SigningKey{pair}
	}})
	sign := func(host, path, service, hash, id string, body []byte, header http.Header) (int, string) {
		t.Helper()
		request, err := http.NewRequest(http.MethodPut, "https://"+host+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header
		if hash != "" {
			request.Header.Set("X-Amz-Content-Sha256", hash)
		} else {
			sum := sha256.Sum256(body)
			hash = hex.EncodeToString(sum[:])
		}
		signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" })
		identity := aws.Credentials{AccessKeyID: id, SecretAccessKey: keyFake}
		if err := signer.SignHTTP(t.Context(), identity, request, hash, service, "eu-west-1", time.Now()); err != nil {
			t.Fatal(err)
		}
		return do(t, w, request)
	}
	for _, c := range []struct{ path, service, hash string }{
		{"/bucket/a%20b/c+d", "s3", "UNSIGNED-PAYLOAD"},
		{"/bucket/key?list-type=2&prefix=a%2Fb", "s3", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"},
		{"/?Action=GetCallerIdentity", "sts", ""},
		{"/a%20b", "execute-api", ""},
	} {
		status, body := sign(apiHost, c.path, c.service, c.hash, keyIDFake, []byte("some body"), http.Header{
			"X-Amz-Meta-A": {"b"}, "Content-Type": {"text/plain"},
		})
		if status != 200 || body != "some body" {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
	}
	if said := w.said(); len(said) != 4 || said[0] != "used AWS_SECRET_ACCESS_KEY "+apiHost {
		t.Errorf("said %q", said)
	}
	const misplacedKey, misplacedID = "misplaced AWS_SECRET_ACCESS_KEY ", "misplaced AWS_ACCESS_KEY_ID "
	for name, c := range map[string]struct {
		host, hash, id string
		body           int
		header         http.Header
		want           string
	}{
		"another host":      {host: otherHost, id: keyIDFake, want: "elsewhere AWS_SECRET_ACCESS_KEY " + otherHost},
		"signed parts":      {hash: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", id: keyIDFake, want: misplacedKey},
		"a large body":      {id: keyIDFake, body: mostSigned + 1, want: misplacedKey},
		"the key in a name": {id: keyIDFake, header: http.Header{"X-Amz-Meta-A": {keyFake}}, want: misplacedKey},
		"the id in a name":  {id: keyIDFake, header: http.Header{"X-Amz-Meta-A": {keyIDFake}}, want: misplacedID},
		"another id":        {id: keyIDFake + "X", want: misplacedID},
	} {
		before := len(w.said())
		host := c.host
		if host == "" {
			host = apiHost
		}
		header := c.header
		if header == nil {
			header = http.Header{}
		}
		status, body := sign(host, "/x", "s3", c.hash, c.id, make([]byte, c.body), header)
		said := strings.Join(w.said()[before:], "; ")
		if status != http.StatusForbidden || !strings.HasPrefix(said, c.want) {
			t.Errorf("%s: %d %s%s", name, status, body, said)
		}
	}
}
