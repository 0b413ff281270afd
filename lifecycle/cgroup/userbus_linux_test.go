package cgroup

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestUserBuses(t *testing.T) {
	t.Parallel()
	usual := "/run/user/" + strconv.Itoa(os.Geteuid())
	for _, test := range []struct {
		name string
		env  []string
		want []userBus
	}{
		{"nothing set", []string{}, []userBus{{usual + "/systemd/private", true}, {usual + "/bus", false}}},
		{
			"relative directory",
			[]string{"XDG_RUNTIME_DIR=run"},
			[]userBus{{usual + "/systemd/private", true}, {usual + "/bus", false}},
		},
		{"runtime directory", []string{"XDG_RUNTIME_DIR=/r"}, []userBus{
			{"/r/systemd/private", true}, {"/r/bus", false},
		}},
		{
			"address",
			[]string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/tmp/b,guid=0f", "XDG_RUNTIME_DIR=/r"},
			[]userBus{{"/r/systemd/private", true}, {"/tmp/b", false}},
		},
		{
			"address of no use",
			[]string{"DBUS_SESSION_BUS_ADDRESS=autolaunch:", "XDG_RUNTIME_DIR=/r"},
			[]userBus{{"/r/systemd/private", true}, {"/r/bus", false}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := userBuses(test.env); !slices.Equal(got, test.want) {
				t.Errorf("userBuses(%q) = %v, expected %v", test.env, got, test.want)
			}
		})
	}
}

func TestBusSockets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		addresses string
		want      []string
	}{
		{"", nil},
		{"unix:path=/run/user/1000/bus", []string{"/run/user/1000/bus"}},
		{"unix:guid=0f,path=/a;unix:path=/b", []string{"/a", "/b"}},
		{"unix:abstract=/tmp/dbus-x,guid=0f", []string{"@/tmp/dbus-x"}},
		{"unix:path=/with%20blank%2ccomma", []string{"/with blank,comma"}},
		{"unix:path=/bad%zz", nil},
		{"unix:path=", nil},
		{"unix:runtime=yes", nil},
		{"tcp:host=evil,port=1;unixexec:path=/bin/sh;autolaunch:;launchd:env=X", nil},
	} {
		if got := busSockets(test.addresses); !slices.Equal(got, test.want) {
			t.Errorf("busSockets(%q) = %q, expected %q", test.addresses, got, test.want)
		}
	}
}

// A socket that accepts the connection and then stays silent must not delay the
// start of the sidecar.
func TestStartScope_SilentPeer(t *testing.T) {
	t.Parallel()
	bus := listen(t, func(net.Conn) {})
	for _, direct := range []bool{true, false} {
		bus.direct = direct
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := startScope(ctx, bus, "x.scope"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("direct %v: %v, expected a deadline exceeded", direct, err)
		}
		cancel()
	}
}

// A connection that breaks in the padding of a message's header made godbus 5.1
// panic, and the sidecar with it.
func TestStartScope_BrokenMessage(t *testing.T) {
	t.Parallel()
	bus := listen(t, func(peer net.Conn) {
		lines := bufio.NewReader(peer)
		for {
			line, err := lines.ReadString('\n')
			switch line = strings.Trim(line, "\x00\r\n"); {
			case err != nil:
				return
			case line == "AUTH":
				_, _ = io.WriteString(peer, "REJECTED EXTERNAL\r\n")
			case strings.HasPrefix(line, "AUTH EXTERNAL"):
				_, _ = io.WriteString(peer, "OK 0123456789abcdef0123456789abcdef\r\n")
			case line == "BEGIN":
				// A message from "a", with ten bytes of header fields; six
				// bytes of padding must follow.
				_, _ = io.WriteString(peer, "l\x02\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x0a\x00\x00\x00"+
					"\x07\x01s\x00\x01\x00\x00\x00a\x00")
				peer.Close()
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := startScope(ctx, bus, "x.scope"); err == nil || ctx.Err() != nil {
		t.Errorf("%v, expected an error at once", err)
	}
}

// listen makes a bus that treats each connection with serve. Connections stay
// open until the test ends, or serve closes them.
func listen(t *testing.T, serve func(net.Conn)) userBus {
	t.Helper()
	dir, err := os.MkdirTemp("", "bus") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			peer, err := listener.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(t.Context(), func() { peer.Close() })
			running.Go(func() { serve(peer) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
		os.RemoveAll(dir)
	})
	return userBus{socket: path, direct: true}
}
