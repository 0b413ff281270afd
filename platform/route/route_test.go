package route

import (
	"net"
	"net/netip"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestIsOwn_IsTrueOfThisMachinesAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "0.0.0.0": true, "::1": true, "::": true, "::ffff:127.0.0.1": true,
		"192.0.2.1": false, "::ffff:192.0.2.1": false, "2001:db8::1": false,
	} {
		if got, err := IsOwn(netip.MustParseAddr(text)); err != nil || got != want {
			t.Errorf("%s: %t %v", text, got, err)
		}
	}
	interfaces, err := net.InterfaceAddrs()
	harness.Must(t, err)
	for _, a := range interfaces {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if own, err := IsOwn(prefix.Addr()); err != nil || !own {
			t.Errorf("an address of this machine, %s: %t %v", prefix.Addr(), own, err)
		}
	}
}
