package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
)

func TestQuota_BoundsOpenAndPendingConnections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		most, sidecar, pending, open, buffer int
		shared                               bool
	}{
		{256, 10_000, 64, 256, 256 << 10, false},
		{1024, 10_000, 256, 1024, 64 << 10, false},
		{256, 400, 25, 100, 256 << 10, true},
		{0, 64, 4, 16, 0, true}, // the first 16 are not bounded
		{1, 3, 1, 1, 0, false},
	} {
		refused, shared := 0, false
		q := NewQuota(test.most, test.sidecar, func(most int, less bool) { refused, shared = most, less })
		var places []*Place
		take := func() int {
			for len(places) < 10_000 {
				place := q.Take()
				if place == nil {
					return len(places)
				}
				places = append(places, place)
			}
			return len(places)
		}
		if got := take(); got != test.pending || refused != test.pending || shared != test.shared {
			t.Errorf("%+v: %d pending, told %d, %v", test, got, refused, shared)
		}
		for len(places) < test.open {
			places[len(places)-1].Made()
			places[len(places)-1].Made() // twice is once
			take()
		}
		for _, place := range places {
			place.Made()
		}
		if got := take(); got != test.open || refused != test.open || q.Buffer() != test.buffer {
			t.Errorf("%+v: %d open, told %d, %d bytes each", test, got, refused, q.Buffer())
		}
		for _, place := range places {
			place.Release()
			place.Release()
		}
		places = nil
		if got := take(); got != test.pending {
			t.Errorf("%+v: %d pending at the second time", test, got)
		}
	}
}

// The kernel raises the buffer of a connection whose program reads much. The
// control is a connection without a bound.
func TestDialer_BoundsBuffers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.CopyN(conn, endless{}, 8<<20)
			}()
		}
	}()
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	grown := func(buffer int) (bytes int) {
		d := Dialer{Rules: rules(t, fmt.Sprintf("localhost:%d", port))}
		if buffer > 0 {
			d.Quota = &Quota{most: mostBuffers / buffer, open: unbounded + 1}
		}
		conn, err := d.Dial(t.Context(), Target{Name: hosts.HostName, Port: port})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Fatal(err)
		}
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			bytes, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		})
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	const buffer = 32 << 10 // below what the kernel begins with
	const most = 2 * buffer // it adds as much for itself (socket(7))
	if bytes := grown(buffer); bytes > most {
		t.Errorf("a bounded connection has %d bytes", bytes)
	}
	if bytes := grown(0); bytes <= most {
		t.Errorf("the control: a connection without a bound has only %d bytes", bytes)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// New names wait, those that are known do not, and the end of the session ends
// the wait.
func TestQuota_BoundsTheRateOfNewNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := NewQuota(1, 100, nil)
		begun := time.Now()
		ask := func(first, last int) time.Duration {
			for i := first; i < last; i++ {
				if err := q.Name(t.Context(), fmt.Sprint("name", i)); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(begun)
		}
		if took := ask(0, namesAtOnce); took != 0 {
			t.Errorf("the first names took %v", took)
		}
		if took := ask(0, namesAtOnce); took != 0 {
			t.Errorf("the same names took %v again", took)
		}
		if took := ask(namesAtOnce, namesAtOnce+3*namesPerSecond); took.Round(time.Millisecond) != 3*time.Second {
			t.Errorf("more names took %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if err := q.Name(ctx, "other"); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
		if q.names.known["other"] {
			t.Error("a name that was never asked is known")
		}
		if n := len(q.names.known); n > maxNames {
			t.Errorf("%d are remembered", n)
		}
	})
}
