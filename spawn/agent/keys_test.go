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
	"slices"
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
				if plain, ok := plainKey(blob[:cut]); ok && fingerprint(plain) == want {
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
		"SSHSIG" + string(appendString(nil, bytes.Repeat([]byte("x"), 500))): {"to sign for", strings.Repeat("x", 500)},
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

// Only whole requests reach the agent, as they are encoded here.
func TestJudge_OnlyWholeRequests(t *testing.T) {
	t.Parallel()
	text := func(texts ...string) string {
		var all []byte
		for _, one := range texts {
			all = appendString(all, []byte(one))
		}
		return string(all)
	}
	const none, sha256, sha512 = "\x00\x00\x00\x00", "\x00\x00\x00\x02", "\x00\x00\x00\x04"
	signs, binds := "\x0d"+text("key", "data"), "\x1b"+text(sessionBind, "host", "session", "signature")
	for name, test := range map[string]struct {
		request string
		passes  bool
	}{
		"list": {"\x0b", true}, "list and more": {"\x0b\x00", false},
		"sign": {signs + none, true}, "sign, SHA-256": {signs + sha256, true}, "sign, SHA-512": {signs + sha512, true},
		"sign, both": {signs + "\x00\x00\x00\x06", false}, "sign, a new flag": {signs + "\x00\x00\x00\x01", false},
		"sign, no flags": {signs, false}, "sign, short flags": {signs + "\x00\x00\x00", false},
		"sign and more": {signs + none + "\x00", false}, "sign twice": {signs + none + signs + none, false},
		"sign, a long key":  {"\x0d\x00\x00\x00\x04key" + none, false},
		"sign, a huge key":  {"\x0d\xff\xff\xff\xffkey" + none, false},
		"sign, a long text": {"\x0d" + text("key") + "\x00\x00\x01\x00data" + none, false},
		"sign, no text":     {"\x0d" + text("key"), false},
		"bind":              {binds + "\x00", true}, "bind, forwarded": {binds + "\x01", true},
		"bind, no flag": {binds, false}, "bind, another flag": {binds + "\x02", false},
		"bind and more": {binds + "\x00\x00", false}, "bind twice": {binds + "\x00" + binds + "\x00", false},
		"bind, a field more":     {binds + text("more") + "\x00", false},
		"bind, a field less":     {"\x1b" + text(sessionBind, "host", "session") + "\x00", false},
		"bind, the name alone":   {"\x1b" + text(sessionBind), false},
		"bind, a name and a NUL": {"\x1b" + text(sessionBind+"\x00", "host", "session", "signature") + "\x00", false},
		"query":                  {"\x1b" + text("query"), false}, "add": {"\x11", false}, "unknown": {"\x00", false},
	} {
		got, asked, _ := judge([]byte(test.request))
		if passes := got != nil; passes != test.passes {
			t.Errorf("%s: passes: %t", name, passes)
		}
		if got != nil && string(got) != test.request {
			t.Errorf("%s: passes as %q", name, got)
		}
		if (asked != nil) != (test.passes && got[0] == signRequest) {
			t.Errorf("%s: signs: %t", name, asked != nil)
		}
	}
}

// Of a key with anything behind it, or with less, nobody knows which it is.
func TestPlainKey_OnlyWholeKeys(t *testing.T) {
	t.Parallel()
	text := func(texts ...string) []byte {
		var all []byte
		for _, one := range texts {
			all = appendString(all, []byte(one))
		}
		return all
	}
	whole := text("ssh-rsa", "e", "n")
	head := text("ssh-ed25519-cert-v01@openssh.com", "nonce", "key")
	certificate := slices.Concat(head, make([]byte, 8+4), text("name", "principals"), make([]byte, 8+8),
		text("critical", "extensions", "reserved", "authority", "signature"))
	for name, test := range map[string]struct {
		blob  []byte
		whole bool
	}{
		"a key": {whole, true}, "a certificate": {certificate, true},
		"a byte more": {append(slices.Clone(whole), 0), false}, "a byte less": {whole[:len(whole)-1], false},
		"a kind alone": {text("ssh-rsa"), false}, "no kind": {text("", "e"), false}, "nothing": {nil, false},
		"many fields":               {text("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), false},
		"a certificate and more":    {append(slices.Clone(certificate), 0), false},
		"a certificate and a field": {slices.Concat(certificate, text("more")), false},
		"less of a certificate":     {certificate[:len(certificate)-1], false},
		"the head of a certificate": {head, false},
		"no times":                  {slices.Concat(head, make([]byte, 8+4), text("name", "principals")), false},
	} {
		if _, ok := plainKey(test.blob); ok != test.whole {
			t.Errorf("%s: %t", name, ok)
		}
	}
}

// What passes is whole, and read again it is the same.
func FuzzJudge(f *testing.F) {
	f.Add([]byte("\x0b"))
	f.Add([]byte("\x0d\x00\x00\x00\x01k\x00\x00\x00\x01d\x00\x00\x00\x02"))
	const fields = "\x00\x00\x00\x01k\x00\x00\x00\x01d\x00\x00\x00\x01s\x01"
	f.Add(append(appendString([]byte{extension}, []byte(sessionBind)), fields...))
	f.Fuzz(func(t *testing.T, received []byte) {
		if len(received) == 0 {
			return
		}
		request, asked, _ := judge(received)
		if request == nil {
			return
		}
		again, _, _ := judge(request)
		if !slices.Equal(again, request) || len(request) != len(received) {
			t.Fatalf("%q passes as %q, and that as %q", received, request, again)
		}
		if asked != nil && !slices.Equal(asked.request(), request) {
			t.Fatalf("judged is %+v, and %q passes", asked, request)
		}
	})
}
