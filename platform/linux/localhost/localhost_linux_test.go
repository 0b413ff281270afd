package localhost

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
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
		{"127.0.0.1", []listener{at("127.0.0.1:1"), at("0.0.0.0:1")}, 2},
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

func TestKernel_KnowsListeners(t *testing.T) {
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
	// Only some additions list the sockets. What was noted right now stays.
	listed := 0
	live := func() (map[uint64]bool, error) {
		listed++
		return map[uint64]bool{1: true}, nil
	}
	for cookie := range uint64(4 * maxHeld) {
		one.add("/p", cookie+1, live)
		if _, held := one.held[note{"/p", cookie + 1}]; !held {
			t.Fatalf("%d is not held", cookie+1)
		}
	}
	if listed > 8 {
		t.Errorf("listed %d times", listed)
	}
	// Those of closed sockets go once they are old.
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil || len(files) <= maxHeld {
		t.Fatal(len(files), err)
	}
	long := time.Unix(0, 0)
	for _, file := range files {
		if err := os.Chtimes(file, long, long); err != nil {
			t.Fatal(err)
		}
	}
	for held := range one.held {
		one.held[held] = long
	}
	for cookie := range uint64(4*maxHeld + 1) {
		one.add("/p", 100_000+cookie, live)
	}
	if left, err := os.ReadDir(filepath.Dir(files[0])); err != nil || len(left) > 4*maxHeld+2 ||
		len(one.held) > 4*maxHeld+2 || !other.has("/p", 1) || other.has("/p", 2) {
		t.Errorf("%d files, %d held: %v", len(left), len(one.held), err)
	}
}

func TestNotes_AreAtMostSoMany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	notes, listed, all := NewNotes(func() string { return dir }), 0, map[uint64]bool{}
	for cookie := range uint64(maxNotes + maxHeld) {
		all[cookie] = true
		notes.add("/p", cookie, func() (map[uint64]bool, error) {
			listed++
			return all, nil
		})
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil || len(files) != maxNotes || len(notes.held) != maxNotes || listed > 40 {
		t.Errorf("%d files, %d held, listed %d times: %v", len(files), len(notes.held), listed, err)
	}
}

func TestNotes_OfEarlierStartsAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, recent := filepath.Join(dir, "old"), filepath.Join(dir, "recent")
	for _, start := range []string{old, recent} {
		if err := os.MkdirAll(filepath.Join(start, "project"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * forgotten)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	NewNotes(func() string { return dir }).add("/p", 1, live)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 || slices.Contains(left, old) || !slices.Contains(left, recent) {
		t.Errorf("%v %v", left, err)
	}
}
