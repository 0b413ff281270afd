package localhost

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReached_IsWhatTheKernelMayChoose(t *testing.T) {
	t.Parallel()
	at := func(text string) listener { return listener{at: netip.MustParseAddrPort(text)} }
	only6 := at("[::]:1")
	only6.only6 = true
	for _, test := range []struct {
		to   string
		all  []listener
		want int
	}{
		{"127.0.0.1", []listener{at("127.0.0.1:1"), at("0.0.0.0:1")}, 1},
		{"127.0.0.2", []listener{at("127.0.0.1:1")}, 0},
		{"127.0.0.2", []listener{at("127.0.0.1:1"), at("0.0.0.0:1"), at("[::]:1")}, 2},
		{"127.0.0.1", []listener{only6}, 0},
		{"::1", []listener{only6, at("0.0.0.0:1")}, 1},
		{"0.0.0.0", []listener{at("127.0.0.1:1")}, 1},
		{"::", []listener{at("[::1]:1"), at("127.0.0.1:1")}, 1},
	} {
		if got := reached(test.all, netip.MustParseAddr(test.to)); len(got) != test.want {
			t.Errorf("%s of %v: %v, want %d", test.to, test.all, got, test.want)
		}
	}
}

func TestKernel_KnowsListenersAndAddresses(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	at := server.Addr().(*net.TCPAddr).AddrPort()
	all, err := listeners(at.Port())
	if err != nil || !slices.ContainsFunc(all, func(l listener) bool { return l.at == at && l.cookie != 0 }) {
		t.Errorf("%v %v", all, err)
	}
	for text, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "0.0.0.0": true, "::1": true, "::": true, "192.0.2.1": false,
		"2001:db8::1": false,
	} {
		if got, err := isOwn(netip.MustParseAddr(text)); err != nil || got != want {
			t.Errorf("%s: %t %v", text, got, err)
		}
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range interfaces {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if own, err := isOwn(prefix.Addr()); err != nil || !own {
			t.Errorf("an address of this machine, %s: %t %v", prefix.Addr(), own, err)
		}
	}
}

func TestNotes_AreSharedAndBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	share := func() string { return dir }
	one, other := NewNotes(share), NewNotes(share)
	none := func() (map[uint64]bool, error) { return map[uint64]bool{}, nil }
	one.add("/p", 1, none)
	if !one.has("/p", 1) || !other.has("/p", 1) {
		t.Error("not shared")
	}
	if other.has("/q", 1) || other.has("/p", 2) || (&Notes{}).has("/p", 1) {
		t.Error("another project's, another socket or other notes")
	}
	for cookie := range uint64(2 * maxHeld) {
		one.add("/p", cookie+1, func() (map[uint64]bool, error) {
			return map[uint64]bool{1: true, cookie + 1: true}, nil
		})
	}
	if len(one.held) > maxHeld+1 || !one.has("/p", 1) {
		t.Errorf("%d notes", len(one.held))
	}
	// Files of closed sockets go once they are old.
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil || len(files) <= maxHeld {
		t.Fatal(len(files), err)
	}
	long := unix.NsecToTimespec(1)
	for _, file := range files {
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, file, []unix.Timespec{long, long}, 0); err != nil {
			t.Fatal(err)
		}
	}
	one.add("/p", 9999, func() (map[uint64]bool, error) { return map[uint64]bool{1: true}, nil })
	if left, err := os.ReadDir(filepath.Dir(files[0])); err != nil || len(left) != 2 || !other.has("/p", 1) {
		t.Errorf("%d files: %v", len(left), err)
	}
}
