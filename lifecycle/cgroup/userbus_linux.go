package cgroup

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

// userBus is a socket on which the user's systemd may answer.
type userBus struct {
	socket string // a path, or @ and a name for an abstract socket
	// direct is true for systemd's own socket, which needs no greeting (Hello)
	// as a bus daemon does.
	direct bool
}

// userBuses lists where the user's systemd may be found, best first. Its own
// socket comes first, as for systemctl --user: it needs no bus daemon, and no
// proxy can be taken for us.
func userBuses(env []string) []userBus {
	value := func(name string) string {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
	runtime := value("XDG_RUNTIME_DIR")
	if !filepath.IsAbs(runtime) {
		// Editors started by cron, by a container's exec or by ssh without PAM
		// lack the variable; pam_systemd always makes this directory.
		runtime = "/run/user/" + strconv.Itoa(os.Geteuid())
	}
	buses := []userBus{{socket: filepath.Join(runtime, "systemd", "private"), direct: true}}
	sockets := busSockets(value("DBUS_SESSION_BUS_ADDRESS"))
	if len(sockets) == 0 {
		sockets = []string{filepath.Join(runtime, "bus")}
	}
	for _, socket := range sockets {
		buses = append(buses, userBus{socket: socket})
	}
	return buses
}

// busSockets reads the Unix sockets from a D-Bus address list,
// "unix:path=/run/user/1000/bus,guid=…;…". It ignores the other transports on
// purpose: one starts programs, another leaves the machine, where our process
// id has no meaning.
func busSockets(addresses string) []string {
	var sockets []string
	for address := range strings.SplitSeq(addresses, ";") {
		pairs, ok := strings.CutPrefix(address, "unix:")
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(pairs, ",") {
			key, escaped, _ := strings.Cut(pair, "=")
			value, err := url.PathUnescape(escaped) // the specification escapes as URLs do
			if err != nil || value == "" {
				continue
			}
			switch key {
			case "path":
				sockets = append(sockets, value)
			case "abstract":
				sockets = append(sockets, "@"+value)
			}
		}
	}
	return sockets
}

// dial connects and authenticates; the end of ctx closes the connection at any
// time. The library's own dialling is not used: without an address it starts
// dbus-launch, and it waits forever for a socket that accepts and then stays
// silent.
func (b userBus) dial(ctx context.Context) (*dbus.Conn, error) {
	socket, err := (&net.Dialer{}).DialContext(ctx, "unix", b.socket)
	if err != nil {
		return nil, err // names the socket
	}
	conn, err := dbus.NewConn(socket, dbus.WithContext(ctx))
	if err != nil {
		socket.Close()
		return nil, b.failure(ctx, err)
	}
	err = conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))})
	if err == nil && !b.direct {
		err = conn.Hello()
	}
	if err != nil {
		conn.Close()
		return nil, b.failure(ctx, err)
	}
	return conn, nil
}

// failure describes an error. Once ctx has ended the library only reports that
// its connection is closed.
func (b userBus) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("talk to systemd over %s: %w", b.socket, err)
}
