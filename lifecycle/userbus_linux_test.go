package lifecycle

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
		{"relative directory", []string{"XDG_RUNTIME_DIR=run"}, []userBus{{usual + "/systemd/private", true}, {usual + "/bus", false}}},
		{"runtime directory", []string{"XDG_RUNTIME_DIR=/r"}, []userBus{{"/r/systemd/private", true}, {"/r/bus", false}}},
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

// A socket that takes the connection and then says nothing must not hold up the start of the sidecar.
func TestDial_SilentPeer(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "bus") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	for _, direct := range []bool{true, false} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := startScope(ctx, userBus{socket: path, direct: direct}, "x.scope")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("direct %v: %v, expected a deadline exceeded", direct, err)
		}
		cancel()
	}
}
