package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// A key that may not be used signs nothing, and another one of the same agent
// still does.
func TestFilter_ChosenKeys(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	_, other, _ := ed25519.GenerateKey(rand.Reader)
	if err := s.keyring.Add(agent.AddedKey{PrivateKey: other, Comment: "the other"}); err != nil {
		t.Fatal(err)
	}
	client, _ := s.client(t)
	keys, err := client.List()
	if err != nil || len(keys) != 2 {
		t.Fatal(keys, err)
	}
	var comments []string
	s.decide = func(_ context.Context, use Use) bool {
		comments = append(comments, use.Comment())
		return use.Key == ssh.FingerprintSHA256(keys[0])
	}
	if _, err := client.Sign(keys[0], []byte("text")); err != nil {
		t.Errorf("the chosen key: %v", err)
	}
	if signature, err := client.Sign(keys[1], []byte("text")); err == nil {
		t.Errorf("another key has signed: %v", signature)
	}
	if len(comments) != 2 || comments[0] != "mine" || comments[1] != "the other" {
		t.Errorf("the keys are called %q", comments)
	}
}

// A certificate is judged as the key in it, whatever kind that is.
func TestPlainKey_IsThatOfOpenSSH(t *testing.T) {
	t.Parallel()
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	ec, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	rs, _ := rsa.GenerateKey(rand.Reader, 2048)
	ca, err := ssh.NewSignerFromKey(ed)
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []any{ed, ec, rs} {
		signer, err := ssh.NewSignerFromKey(private)
		if err != nil {
			t.Fatal(err)
		}
		key := signer.PublicKey()
		certificate := &ssh.Certificate{Key: key, CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity}
		if err := certificate.SignCert(rand.Reader, ca); err != nil {
			t.Fatal(err)
		}
		want := ssh.FingerprintSHA256(key)
		for what, blob := range map[string][]byte{"key": key.Marshal(), "certificate": certificate.Marshal()} {
			plain, ok := plainKey(blob)
			if !ok || fingerprint(plain) != want {
				t.Errorf("%s of %s: %v, %s", what, key.Type(), ok, fingerprint(plain))
			}
			for cut := range blob { // no part of it stands for the key
				if plain, ok := plainKey(blob[:cut]); ok && what == "key" && fingerprint(plain) == want {
					t.Errorf("%s of %s: its first %d bytes", what, key.Type(), cut)
				}
			}
		}
	}
	unknown := appendString(nil, []byte("ssh-new-cert-v01@openssh.com"))
	if _, ok := plainKey(appendString(unknown, []byte("nonce"))); ok {
		t.Error("a certificate of an unknown kind has a key")
	}
}

func TestPurpose(t *testing.T) {
	t.Parallel()
	login := appendString(nil, []byte("session"))
	login = appendString(append(login, userAuth), []byte("git"))
	for data, want := range map[string][2]string{
		"SSHSIG" + string(appendString(nil, []byte("git"))): {"to sign for", "git"},
		string(login): {"to log in as", "git"},
		"SSHSIG":      {}, "": {}, "text": {}, "\x00\x00\x00\x01x": {},
		"\x00\x00\x00\x01x\x32": {}, "\x00\x00\x00\x01x\x33": {},
		"SSHSIG" + string(appendString(nil, bytes.Repeat([]byte("x"), 500))): {"to sign for", strings.Repeat("x", 64)},
	} {
		if what, name := purpose([]byte(data)); what != want[0] || name != want[1] {
			t.Errorf("%q: %q, %q", data, what, name)
		}
	}
}

// Once the client has gone, or the session has ended, nobody is asked any more.
func TestFilter_QuestionsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *scene, client net.Conn){
		"the client goes":  func(_ *scene, client net.Conn) { client.Close() },
		"the session ends": func(s *scene, _ net.Conn) { s.filter.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, nil)
			client, c := s.client(t)
			keys, err := client.List()
			if err != nil {
				t.Fatal(err)
			}
			asked, ended := make(chan bool), make(chan bool)
			s.decide = func(ctx context.Context, _ Use) bool {
				close(asked)
				<-ctx.Done()
				close(ended)
				return true // a late yes is of no use
			}
			signed := make(chan error, 1)
			go func() {
				_, err := client.Sign(keys[0], []byte("text"))
				signed <- err
			}()
			<-asked
			end(s, c)
			<-ended
			if err := <-signed; err == nil {
				t.Error("signed")
			}
		})
	}
}

// The agent that was asked about is the one that signs, also if another has
// taken its place meanwhile.
func TestFilter_AReplacedAgent(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	client, _ := s.client(t)
	keys, err := client.List()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(filepath.Dir(s.socket), "agent")
	s.decide = func(context.Context, Use) bool {
		if err := os.Rename(socket, socket+".old"); err != nil {
			t.Error(err)
		}
		other, err := net.Listen("unix", socket)
		if err != nil {
			t.Error(err)
			return true
		}
		t.Cleanup(func() { other.Close() })
		go func() {
			for {
				c, err := other.Accept()
				if err != nil {
					return
				}
				t.Error("the other agent was asked")
				c.Close()
			}
		}()
		return true
	}
	signature, err := client.Sign(keys[0], []byte("text"))
	if err == nil {
		err = keys[0].Verify([]byte("text"), signature)
	}
	if err != nil {
		t.Error(err)
	}
}

// An agent that does not name its keys, or lies about them, is no reason to
// refuse, and no way to hold a session up.
func TestComment_OfAnAgentThatLies(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"nothing": "\x00\x00\x00\x00", "a signature": "\x00\x00\x00\x01\x0e",
		"no keys":    "\x00\x00\x00\x05\x0c\xff\xff\xff\xff",
		"half a key": "\x00\x00\x00\x09\x0c\x00\x00\x00\x01\x00\x00\x00\x09", "an end": "",
	} {
		near, far := net.Pipe()
		go func() {
			_, _ = far.Read(make([]byte, 100))
			_, _ = far.Write([]byte(answer))
			far.Close()
		}()
		if got := comment(near, []byte("key")); got != "" {
			t.Errorf("%s: %q", name, got)
		}
		near.Close()
	}
}
