//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// serving starts a session with a server at the given address.
func serving(t *testing.T, settings harness.Sandbox, address string) (*harness.Editor, *harness.Session) {
	t.Helper()
	if settings["allow_network"] == false {
		harness.Require(t, "network_hosts") // which takes a localhost of the session's own
	}
	s := harness.NewScene(t, "tests/hosts/victim")
	e := s.Start(harness.Defaults(settings))
	session := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Cwd: s.Project, Command: s.Victim + " serve " + harness.Quote(address),
	})
	session.Await("serving")
	return e, session
}

// echoes reports whether somebody answers with what was sent, up to its end.
func echoes(address string, size int) error {
	conn, err := net.DialTimeout("tcp", address, time.Minute)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	sent := strings.Repeat("0123456789abcdef", size/16)
	go func() {
		_, _ = io.WriteString(conn, sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err == nil && string(got) != sent {
		err = fmt.Errorf("sent %d bytes, got %d", len(sent), len(got))
	}
	return err
}

func forward(e *harness.Editor, session *harness.Session, port, local int) (protocol.ForwardPortResult, error) {
	return harness.Try(e, protocol.ForwardPort, protocol.ForwardPortParams{
		SessionID: session.SessionID, Port: port, LocalPort: local,
	})
}

// A session's server is seen outside once the editor asks for it, and as long as
// the session lives.
func TestPorts_ShowAServerUntilTheSessionEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		turn     int
		address  string
		settings harness.Sandbox
	}{
		"IPv4":       {0, "127.0.0.1:3000", harness.Sandbox{"allow_network": false}},
		"IPv6":       {1, "[::1]:3000", harness.Sandbox{"allow_network": false}},
		"everywhere": {0, ":3000", harness.Sandbox{"allow_network": false}},
		"with hosts": {1, "127.0.0.1:3000", allowed("example.org")},
	} {
		if !harness.Turn(t, test.turn, 2) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, session := serving(t, test.settings, test.address)
			local := harness.FreePort(t)
			address := fmt.Sprintf("127.0.0.1:%d", local)
			if err := echoes(address, 16); !errors.Is(err, unix.ECONNREFUSED) {
				t.Fatalf("nobody has asked, and %s answers: %v", address, err)
			}
			for range 2 { // the second has no effect
				result, err := forward(e, session, 3000, local)
				if err != nil || result.Address != address || result.Shared {
					t.Fatalf("%+v: %v", result, err)
				}
			}
			for _, size := range []int{16, 4 << 20, 16} {
				if err := echoes(address, size); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
			}
			open, err := net.Dial("tcp", address)
			harness.Must(t, err)
			defer open.Close()
			session.Close(0)
			if err := echoes(address, 16); !errors.Is(err, unix.ECONNREFUSED) {
				harness.Breach(t, "after the session's end: %v", err)
			}
			_ = open.SetDeadline(time.Now().Add(time.Minute))
			if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, unix.ETIMEDOUT) {
				harness.Breach(t, "a connection outlives the session: %v", err)
			}
		})
	}
}

func TestPorts_OfManyConnections(t *testing.T) {
	t.Parallel()
	e, session := serving(t, harness.Sandbox{"allow_network": false}, "127.0.0.1:3000")
	result, err := forward(e, session, 3000, harness.FreePort(t))
	harness.Must(t, err)
	failures := make(chan error)
	const many = 100
	for range many {
		go func() { failures <- echoes(result.Address, 1<<16) }()
	}
	for range many {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	// Where nobody listens inside, nobody seems to listen outside.
	nothing, err := forward(e, session, 3001, harness.FreePort(t))
	harness.Must(t, err)
	if err := echoes(nothing.Address, 16); !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Errorf("a port without a server: %v", err)
	}
}

// A session that connects to what the sidecar needs for this harms only itself.
func TestPorts_OfAHostileSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network_hosts")
	s := harness.NewScene(t, "tests/hosts/victim")
	e := s.Start(harness.Defaults(harness.Sandbox{"allow_network": false}))
	session := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Cwd: s.Project, Command: s.Victim + " serve 127.0.0.1:3000 & exec " +
			s.Victim + " flood",
	})
	session.Await("serving")
	result, err := forward(e, session, 3000, harness.FreePort(t))
	harness.Must(t, err)
	for range 20 {
		_ = echoes(result.Address, 16) // which lets the sidecar listen
	}
	session.Await("flooded")
	if got, _ := e.Tool("echo alive"); !strings.Contains(got, "alive") {
		t.Errorf("the sidecar: %s", got)
	}
	other := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Cwd: s.Project, Command: s.Victim + " serve 127.0.0.1:3000",
	})
	other.Await("serving")
	shown, err := forward(e, other, 3000, harness.FreePort(t))
	harness.Must(t, err)
	if err := echoes(shown.Address, 16); err != nil {
		harness.Breach(t, "another session: %v", err)
	}
}

func TestPorts_ThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	e, session := serving(t, harness.Sandbox{"allow_network": false}, "127.0.0.1:3000")
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	harness.Must(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	for name, test := range map[string]struct {
		port, local int
		want        string
	}{
		"in use":   {3000, port, fmt.Sprintf("open port %d of this machine: another program uses it", port)},
		"no port":  {0, 0, "expected 1 to 65535"},
		"too high": {3000, 65536, "params.localPort: expected 1 to 65535, found 65536"},
	} {
		_, err := forward(e, session, test.port, test.local)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
		var answer *client.Error
		if name == "in use" && (!errors.As(err, &answer) || answer.Code != protocol.CodePortNotForwarded ||
			answer.Data.Hint == "") {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}

// With the network on, a session's servers are at this machine's localhost.
func TestPorts_OfASharedLocalhost(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	e, session := serving(t, harness.Sandbox{"allow_network": true}, fmt.Sprintf("127.0.0.1:%d", port))
	result, err := forward(e, session, port, 0)
	if err != nil || !result.Shared {
		t.Fatalf("%+v: %v", result, err)
	}
	if err := echoes(result.Address, 16); err != nil {
		t.Error(err)
	}
	if _, err := forward(e, session, port, harness.FreePort(t)); err == nil ||
		!strings.Contains(err.Error(), "shares this machine's localhost") {
		t.Errorf("another port: %v", err)
	}
}
