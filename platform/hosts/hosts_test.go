package hosts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestParseAllowed_KnowsTheForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"github.com": "github.com", "GitHub.COM.": "github.com", "*.npmjs.org:443": "*.npmjs.org:443",
		"ssh.example.org:22": "ssh.example.org:22", "10.1.0.0/16:5432": "10.1.0.0/16:5432",
		"localhost:5432": "localhost:5432", "host.sandbox.internal:80": "localhost:80",
		"bücher.example": "xn--bcher-kva.example", "xn--bcher-kva.example:1": "xn--bcher-kva.example:1",
		"10.0.0.1": "10.0.0.1", "10.0.0.1/32:80": "10.0.0.1:80", "2001:db8::/32": "2001:db8::/32",
		"[2001:db8::/32]:443": "[2001:db8::/32]:443", "[2606:4700::1111]:443": "[2606:4700::1111]:443",
		"::ffff:10.0.0.0/104": "10.0.0.0/8", "_sip._tcp.example.org": "_sip._tcp.example.org", "intranet": "intranet",
		"a.example.org:65535": "a.example.org:65535", "169.254.169.254/32": "169.254.169.254",
		// The schemes, which are left out where they say what the port says.
		"tcp://ssh.GitHub.com:443": "tcp://ssh.github.com:443", "tls://db.example:5432": "tls://db.example:5432",
		"tcp://db.example:22": "db.example:22", "tls://a.example:443": "a.example:443",
		"tcp://*.example.org:443": "tcp://*.example.org:443", "tcp://[2001:db8::/32]:443": "tcp://[2001:db8::/32]:443",
		"tls://10.0.0.0/8:636": "tls://10.0.0.0/8:636", "tcp://localhost:443": "tcp://localhost:443",
	} {
		p, err := ParseAllowed(text)
		if err != nil || p.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, p, err, want)
		}
		if again, err := ParseAllowed(p.String()); err != nil || again != p {
			t.Errorf("%q, written again, is %q, %v", p, again, err)
		}
	}
}

func TestParseAllowed_RefusesWhatIsWrongOrTooWide(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{
		"": errEmpty, ":443": errEmpty, "*": errAll, "*:443": errAll, "*.com": errAnybodys, "*.co.uk": errAnybodys,
		"*.com.au:443": errAnybodys, "*.": errName, "*.*.example.org": errWild, "a.*.example.org": errWild,
		"a*.example.org": errWild, "**.example.org": errWild, "example..org": errName, ".example.org": errName,
		"example.org..": errName, "-a.example.org": errName, "exa mple.org": errName, "example.org:0": errPort,
		"example.org:65536": errPort, "example.org:-1": errPort, "example.org:": errPort, "example.org:https": errPort,
		"example.org:+1": errPort, "example.org:080": errPort, "https://example.org": errScheme,
		"example.org/path": errScheme, "//example.org": errScheme, "localhost": errLocal, "*.localhost": errLocal,
		"host.sandbox.internal": errLocal, "10.1.0.1/16": errHostBits, "10.0.0.0/33": errCIDR, "10.0.0/8": errCIDR,
		"10.0.0.0/08": errCIDR, "0.0.0.0/0": errEvery, "::/0": errEvery, "127.0.0.1:80": errLoopback,
		"127.0.0.0/8": errLoopback, "[::1]:80": errLoopback, "0.0.0.0": errLoopback, "224.0.0.1": errNoHost,
		"198.18.0.0/15": errNoHost, "198.18.3.4": errNoHost, "fe80::1%eth0": errCIDR, "1.2.3": errName,
		"example.0x7f": errName, "tcp://example.org": errNoPort, "tls://*.example.org": errNoPort,
		"tcp://10.0.0.0/8": errNoPort, "TCP://example.org:1": errScheme, "udp://example.org:1": errScheme,
		"tcp://tls://example.org:1": errScheme, "tcp://": errEmpty, "tls://example.org:443/": errPort,
		"tcp://*.com:443": errAnybodys, "tcp:example.org:443": errCIDR,
		"[2001:db8::1": errName, "[2001:db8::1]x": errPort, "2001:db8::zz": errCIDR, "xn--a.example": nil,
		strings.Repeat("a", 64) + ".org": errName, strings.Repeat("a.", 127) + "org": errName, "a\x00.org": errName,
		"\xff.example.org": errName,
	} {
		p, err := ParseAllowed(text)
		if !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%q is %q, %v; want the error %v", text, p, err, want)
		}
	}
}

func TestParseDenied_MayBeWide(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"*.com", "127.0.0.0/8", "0.0.0.0/0", "localhost", "198.18.0.0/15"} {
		if _, err := ParseDenied(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ParseDenied("*"); !errors.Is(err, errAllDeny) {
		t.Errorf("*: %v", err)
	}
	for _, text := range []string{"tcp://a.example:443", "tls://a.example:1", "tls://a.example"} {
		if _, err := ParseDenied(text); !errors.Is(err, errDenied) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What is no TLS passes at no port of HTTPS, unless an entry says so.
func TestRules_DecideWhatMayBeSpoken(t *testing.T) {
	t.Parallel()
	r := New(patterns(t, ParseAllowed, "a.example", "b.example", "tcp://b.example:443", "tls://c.example:5000",
		"tls://d.example:5000", "d.example:5000", "*.e.example:443", "tcp://x.e.example:443", "10.0.0.0/8",
		"tcp://10.1.0.0/16:443", "tcp://localhost:443"), patterns(t, ParseDenied, "x.e.example:444"))
	for target, want := range map[string]string{
		"a.example:443": "tls", "a.example:80": "any", "b.example:443": "any", "c.example:5000": "tls",
		"c.example:443": "", "d.example:5000": "any", "y.e.example:443": "tls", "x.e.example:443": "any",
		"x.e.example:444": "", "host.sandbox.internal:443": "any", "localhost:443": "",
		"10.2.0.1:443": "tls", "10.1.0.1:443": "any", "10.2.0.1:80": "any", "11.0.0.1:443": "",
	} {
		to, err := ParseTarget(target)
		if err != nil {
			t.Fatal(err)
		}
		allowed, other := r.Name(to.Host, to.Port), r.OtherName(to.Host, to.Port)
		if !to.Named {
			addr := netip.MustParseAddr(to.Host)
			allowed, other = r.Address(addr, to.Port), r.OtherAddress(addr, to.Port)
		}
		if got := map[[2]bool]string{{true, false}: "tls", {true, true}: "any"}[[2]bool{allowed, other}]; got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	if (*Rules)(nil).OtherName("a.example", 80) || (*Rules)(nil).OtherAddress(netip.MustParseAddr("10.1.0.1"), 80) {
		t.Error("no rules allow something")
	}
}

func TestParseTarget_TellsTLSFromOthers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Target{
		"a.example:443":       {Host: "a.example", Port: 443, Named: true},
		"tcp://a.example:443": {Host: "a.example", Port: 443, Named: true, Other: true},
		"tcp://[::1]:22":      {Host: "::1", Port: 22, Other: true},
	} {
		got, err := ParseTarget(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if got, err := ParseTarget("tls://a.example:5000"); err != nil || got.String() != "a.example:5000" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseTarget("ftp://a.example:21"); !errors.Is(err, errScheme) {
		t.Errorf("%+v, %v", got, err)
	}
}

func patterns(t testing.TB, parse func(string) (Pattern, error), texts ...string) []Pattern {
	t.Helper()
	var list []Pattern
	for _, text := range texts {
		p, err := parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		list = append(list, p)
	}
	return list
}

func TestRules_DecideByNameAndPort(t *testing.T) {
	t.Parallel()
	r := New(
		patterns(t, ParseAllowed, "github.com", "*.npmjs.org:443", "localhost:5432", "intranet", "*.example.org"),
		patterns(t, ParseDenied, "bad.example.org", "*.evil.example.org:443", "github.com:22"))
	for target, want := range map[string]bool{
		"github.com:443": true, "github.com:22": false, "api.github.com:443": false, "npmjs.org:443": false,
		"registry.npmjs.org:443": true, "a.b.npmjs.org:443": true, "registry.npmjs.org:80": false,
		"xnpmjs.org:443": false, "evilnpmjs.org:443": false, "host.sandbox.internal:5432": true,
		"host.sandbox.internal:22": false, "localhost:5432": false, "intranet:80": true, "a.example.org:80": true,
		"bad.example.org:80": false, "a.bad.example.org:80": true, "a.evil.example.org:443": false,
		"a.evil.example.org:80": true, "evil.example.org:443": true, "github.com:0": false,
	} {
		name, number, _ := strings.Cut(target, ":")
		var port uint16
		_, _ = fmt.Sscan(number, &port)
		if r.Name(name, port) != want {
			t.Errorf("%s: %v, want %v", target, !want, want)
		}
	}
	if (*Rules)(nil).Name("github.com", 443) || New(nil, nil).Name("github.com", 443) {
		t.Error("no rules allow a name")
	}
}

func TestRules_DecideByAddress(t *testing.T) {
	t.Parallel()
	r := New(patterns(t, ParseAllowed, "10.1.0.0/16:5432", "128.0.0.0/1", "[2001:db8::/32]:443", "64.0.0.0/2",
		"fe80::/10"),
		patterns(t, ParseDenied, "10.1.2.3", "192.168.7.0/24"))
	for target, want := range map[string]bool{
		"10.1.0.1:5432": true, "10.1.0.1:80": false, "10.1.2.3:5432": false, "10.2.0.1:5432": false,
		"192.168.1.1:1": true, "192.168.7.1:1": false, "[2001:db8::1]:443": true, "[2001:db8::1]:80": false,
		"[::ffff:10.1.0.1]:5432": true,
		// These need more than a wide prefix.
		"127.0.0.1:80": false, "169.254.169.254:80": false, "198.18.0.7:80": false, "224.0.0.1:80": false,
		"255.255.255.255:1": false, "[fe80::1]:80": true, "[fe80::1%eth0]:80": false,
	} {
		to := netip.MustParseAddrPort(target)
		if r.Address(to.Addr(), to.Port()) != want {
			t.Errorf("%s: %v, want %v", target, !want, want)
		}
	}
	metadata := New(patterns(t, ParseAllowed, "169.254.169.254:80"), nil)
	if !metadata.Address(netip.MustParseAddr("169.254.169.254"), 80) {
		t.Error("an entry that names the metadata's address does not grant it")
	}
}

func TestRules_RefuseWhatANameMustNotLeadTo(t *testing.T) {
	t.Parallel()
	r := New(patterns(t, ParseAllowed, "example.org", "10.0.0.0/8:443"), patterns(t, ParseDenied, "8.8.8.0/24"))
	for text, want := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": false, "10.1.2.3": true, "192.168.1.1": false, "127.0.0.1": false,
		"169.254.169.254": false, "100.100.100.200": false, "168.63.129.16": false, "0.0.0.0": false, "::1": false,
		"::": false, "fe80::1": false, "fd00:ec2::254": false, "2606:4700::1": true, "::ffff:127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::101:101": true, "2002:7f00:1::": false, "2001::1": false,
		"198.18.0.9": false, "255.255.255.255": false, "::127.0.0.1": false, "64:ff9b:1::1": false,
	} {
		if r.Result(netip.MustParseAddr(text), 443) != want {
			t.Errorf("%s: %v, want %v", text, !want, want)
		}
	}
}

// someEntries are made so that they often meet.
func someEntries(random *rand.Rand) []Pattern {
	var list []Pattern
	for range random.IntN(6) {
		text := ""
		switch labels := []string{"a", "b", "example.org"}; random.IntN(4) {
		case 0:
			text = strings.Join(labels[random.IntN(3):], ".")
		case 1:
			text = "*." + strings.Join(labels[random.IntN(3):], ".")
		case 2:
			text = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(random.IntN(2)), 0, 0}),
				7+random.IntN(20)).Masked().String()
		case 3:
			text = []string{"169.254.0.0/16", "168.0.0.0/6", "2001:db8::/32", "::/1"}[random.IntN(4)]
		}
		if random.IntN(2) == 0 {
			if strings.Contains(text, "::") {
				text = "[" + text + "]"
			}
			text = fmt.Sprintf("%s:%d", text, []int{1, 2, 443}[random.IntN(3)])
			text = []string{"", "", tcpScheme, tlsScheme}[random.IntN(4)] + text
		}
		if p, err := ParseAllowed(text); err == nil {
			list = append(list, p)
		}
	}
	return list
}

func TestMeet_AllowsExactlyWhatBothAllow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(22, 1))
	names := []string{
		"example.org", "a.example.org", "b.example.org", "a.b.example.org", "b.a.example.org",
		"x.a.b.example.org", "org",
	}
	addresses := []string{
		"10.0.0.1", "10.1.0.1", "10.1.9.1", "11.0.0.1", "169.254.1.1", "169.0.0.1", "2001:db8::1",
		"::2",
	}
	for range 20_000 {
		a, b := someEntries(random), someEntries(random)
		met := Meet(a, b)
		one, other, both := New(a, nil), New(b, nil), New(met, nil)
		for _, port := range []uint16{0, 1, 2, 3, 443} {
			for _, name := range names {
				if want := one.Name(name, port) && other.Name(name, port); both.Name(name, port) != want {
					t.Fatalf("%v and %v meet in %v: %s:%d is %v", a, b, met, name, port, !want)
				}
				want := one.OtherName(name, port) && other.OtherName(name, port)
				if both.OtherName(name, port) != want {
					t.Fatalf("%v and %v meet in %v: without TLS %s:%d is %v", a, b, met, name, port, !want)
				}
			}
			for _, text := range addresses {
				addr := netip.MustParseAddr(text)
				if want := one.Address(addr, port) && other.Address(addr, port); both.Address(addr, port) != want {
					t.Fatalf("%v and %v meet in %v: %s port %d is %v", a, b, met, text, port, !want)
				}
				want := one.OtherAddress(addr, port) && other.OtherAddress(addr, port)
				if both.OtherAddress(addr, port) != want {
					t.Fatalf("%v and %v meet in %v: without TLS %s port %d is %v", a, b, met, text, port, !want)
				}
			}
		}
		for _, p := range met {
			if !Covers(a)(p) || !Covers(b)(p) {
				t.Fatalf("%v is in the meet of %v and %v, which do not cover it", p, a, b)
			}
		}
	}
}

func TestRules_OfTenThousandHostsAreFast(t *testing.T) {
	t.Parallel()
	harness.Linear(t, 10_000, func(n int) {
		var texts []string
		for i := range n {
			texts = append(texts, fmt.Sprintf("h%d.example.org", i), fmt.Sprintf("*.w%d.example.org:443", i),
				fmt.Sprintf("10.%d.%d.0/24", i/256, i%256))
		}
		list := patterns(t, ParseAllowed, texts...)
		r, met := New(list, list), Meet(list, list)
		if len(met) != len(list) || !r.DeniedName(fmt.Sprintf("h%d.example.org", n-1), 1) {
			t.Errorf("%d patterns meet in %d", len(list), len(met))
		}
	})
}

func TestFind_NamesThePatternThatDecides(t *testing.T) {
	t.Parallel()
	list := patterns(t, ParseAllowed, "a.example.org", "*.example.org:443", "10.0.0.0/8", "localhost:1")
	for target, want := range map[string]int{"a.example.org": 0, "b.example.org": 1, "10.0.0.1": 2, "c.org": -1} {
		to, err := ParseTargetAt(target, 443)
		if got, _ := Find(list, to); got != want || err != nil {
			t.Errorf("%s: %d, want %d", target, got, want)
		}
	}
	if got, _ := Find(list, Target{Host: HostName, Port: 1, Named: true}); got != 3 {
		t.Errorf("%s: %d", HostName, got)
	}
	list = patterns(t, ParseAllowed, "a.example", "tcp://a.example:443", "tls://a.example:1")
	for to, want := range map[Target]int{
		{Host: "a.example", Port: 443}: 0, {Host: "a.example", Port: 443, Other: true}: 1,
		{Host: "a.example", Port: 1, Other: true}: 0,
	} {
		if got, _ := Find(list, to); got != want {
			t.Errorf("%s: %d, want %d", to, got, want)
		}
	}
}

func TestCanonical_RefusesWhatIsNoName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", ".", "a..b", "1.2.3.4", "127.1", "0x7f.1", "a.0x", "a b", "a\nb", "ä.org",
		"a.org:1",
	} {
		if name, is := Canonical(text); is {
			t.Errorf("%q is %q", text, name)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"*.example.org:443", "[2001:db8::/32]:1", "10.0.0.0/8", "bücher.example",
		"localhost:1", "tcp://ssh.example.org:443", "tls://[2001:db8::/32]:1",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseAllowed(text)
		if err != nil {
			return
		}
		if again, err := ParseAllowed(p.String()); err != nil || again != p {
			t.Errorf("%q is %q, which is %q, %v", text, p, again, err)
		}
		if met := Meet([]Pattern{p}, []Pattern{p}); !slices.Equal(met, []Pattern{p}) {
			t.Errorf("%q meets itself in %v", text, met)
		}
		r := New([]Pattern{p}, nil)
		for _, text := range []string{"127.0.0.1", "::1", "169.254.169.254", "0.0.0.0"} {
			if r.Address(netip.MustParseAddr(text), max(p.port, 1)) && !strings.HasPrefix(text, "169.254") {
				t.Errorf("%q allows %s", p, text)
			}
		}
	})
}

func TestRules_WithOneMore(t *testing.T) {
	t.Parallel()
	more, err := ParseAllowed("new.example:443")
	denied, failed := ParseDenied("denied.example")
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	before := New(nil, []Pattern{denied})
	rules := before.With(more).With(denied)
	if !rules.Name("new.example", 443) || rules.Name("new.example", 80) || rules.Name("denied.example", 443) {
		t.Error("the rules allow something else")
	}
	if before.Name("new.example", 443) || !before.Empty() || rules.Empty() {
		t.Error("the rules before have changed")
	}
	if alone := (*Rules)(nil).With(more); !alone.Name("new.example", 443) || alone.Name("x.example", 443) {
		t.Error("without rules, the pattern alone must count")
	}
}
