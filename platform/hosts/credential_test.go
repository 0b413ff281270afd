package hosts

import (
	"strings"
	"testing"
)

func TestParseCredential(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text     string
		has, not string // each "name:port"
	}{
		{"api.example.com", "api.example.com:443", "api.example.com:8443"},
		{"API.Example.com:8443", "api.example.com:8443", "api.example.com:443"},
		{"*.example.com", "a.b.example.com:443", "example.com:443"},
		{"intranet", "intranet:443", "x.intranet:443"},
		{"bücher.example", "xn--bcher-kva.example:443", "bcher.example:443"},
	} {
		p, err := ParseCredential(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		rules := New([]Pattern{p}, nil)
		for target, want := range map[string]bool{c.has: true, c.not: false} {
			to, err := ParseTarget(target)
			if err != nil {
				t.Fatal(err)
			}
			if got := rules.Name(to.Host, to.Port); got != want {
				t.Errorf("%s has %s: %t", c.text, target, got)
			}
		}
		if again, err := ParseCredential(p.String()); err != nil || again != p {
			t.Errorf("%s: %s, %v", c.text, p, err)
		}
	}
	for text, want := range map[string]string{
		"": "expected a host", "*": "every host", "*.com": "anybody", "*.co.uk": "anybody", "a b": "not the name",
		"https://api.example.com": "without a scheme", "tcp://api.example.com:443": "without a scheme",
		"api.example.com/path": "without a scheme", "10.0.0.1": "the name of a host",
		"10.0.0.0/8": "the name of a host",
		"[::1]:443":  "the name of a host", "localhost:443": "this machine", "host.sandbox.internal": "this machine",
		"api.example.com:0": "a port", "api.example.com:80": "not encrypted", "db.example.com:5432": "PostgreSQL",
		"git.example.com:22": "SSH", "mail.example.com:587": "SMTP",
	} {
		if p, err := ParseCredential(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v, want %q", text, p, err, want)
		}
	}
}
