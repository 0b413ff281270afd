//go:build linux

package syscalls

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// outsideServer is a server at this machine's own address, with a port for
// streams and one for datagrams. It records what arrives.
type outsideServer struct {
	streams   net.Listener
	datagrams *net.UDPConn
	calls     chan struct{}
}

func newOutsideServer(t *testing.T, address string) *outsideServer {
	t.Helper()
	streams, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	datagrams, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address)})
	if err != nil {
		t.Fatal(err)
	}
	v := &outsideServer{streams: streams, datagrams: datagrams, calls: make(chan struct{}, 64)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := streams.Accept()
			if err != nil {
				return
			}
			conn.Close()
			v.calls <- struct{}{}
		}
	}()
	t.Cleanup(func() { streams.Close(); datagrams.Close(); <-done })
	return v
}

// contacted reports whether a session has sent something. If that is expected,
// it waits; otherwise it checks what arrived before a message of the test's
// own.
func (v *outsideServer) contacted(t *testing.T, expected bool) bool {
	t.Helper()
	if expected {
		came := make(chan struct{}, 2)
		go func() { <-v.calls; came <- struct{}{} }()
		go func() {
			if _, _, err := v.datagrams.ReadFromUDP(make([]byte, 64)); err == nil {
				came <- struct{}{}
			}
		}()
		select {
		case <-came:
			return true
		case <-deadline.After(harness.Timeout):
			return false
		}
	}
	own, err := net.Dial("tcp", v.streams.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	own.Close()
	<-v.calls // connections are accepted in their order
	_ = v.datagrams.SetReadDeadline(time.Now())
	_, _, err = v.datagrams.ReadFromUDP(make([]byte, 64))
	return len(v.calls) > 0 || !errors.Is(err, os.ErrDeadlineExceeded)
}

// waysOut are programs that send something to ADDRESS, to the port PORT_T for
// streams or PORT_U for datagrams.
var waysOut = []struct {
	name, address, line string
	// lacking is true if a kernel may be built without it.
	lacking bool
}{
	{"bash", "127.0.0.1", `exec 3<>/dev/tcp/ADDRESS/PORT_T`, false},
	{"tcp", "127.0.0.1", python(`socket.create_connection((A, PORT_T))`), false},
	{"tcp over IPv6", "::1", python(`socket.create_connection((A, PORT_T))`), true},
	{"udp", "127.0.0.1", python(`socket.socket(F, socket.SOCK_DGRAM).sendto(b"x", (A, PORT_U))`), false},
	{"udp over IPv6", "::1", python(`socket.socket(F, socket.SOCK_DGRAM).sendto(b"x", (A, PORT_U))`), true},
	{"udp by connecting", "127.0.0.1", python(
		`s = socket.socket(F, socket.SOCK_DGRAM); s.connect((A, PORT_U)); s.send(b"x")`), false},
	{
		"tcp fast open", "127.0.0.1",
		python(`socket.socket(F, socket.SOCK_STREAM).sendto(b"x", 0x20000000, (A, PORT_T))`), true,
	},
	{"mptcp", "127.0.0.1", python(`socket.socket(F, socket.SOCK_STREAM, 262).connect((A, PORT_T))`), true},
	{"not waiting", "127.0.0.1", python(`s = socket.socket(F, socket.SOCK_STREAM); s.setblocking(False); assert ` +
		`s.connect_ex((A, PORT_T)) in (0, 115)`), false},
	{"a mapped address", "127.0.0.1", python(
		`socket.socket(socket.AF_INET6, socket.SOCK_STREAM).connect(("::ffff:" + A, PORT_T))`), true},
}

func python(line string) string {
	return `/usr/bin/python3 -c '
import socket
A = "ADDRESS"; F = socket.AF_INET6 if ":" in A else socket.AF_INET
` + line + `'`
}

// Sends something to a server outside, by every protocol that reaches one here,
// from a session without network. In a network namespace only the session
// itself has an address. Without one the socket cannot be made.
func TestNothingGetsOutWithoutNetwork(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network")
	machines := harness.Machines(t)
	free, online, without := newScene(t, harness.Off()), newScene(t, everywhere()), []*scene{}
	for _, machine := range machines {
		without = append(without, newSceneOn(t, offline(), machine))
	}
	for i, way := range waysOut {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			probe, err := net.Listen("tcp", net.JoinHostPort(way.address, "0"))
			if err != nil {
				harness.Skip(t, "ipv6", err.Error())
			}
			probe.Close()
			try := func(in *scene, expected bool) (came bool, status int, output string) {
				v := newOutsideServer(t, way.address)
				line := strings.NewReplacer("ADDRESS", way.address, "PORT_T",
					fmt.Sprint(v.streams.Addr().(*net.TCPAddr).Port),
					"PORT_U", fmt.Sprint(v.datagrams.LocalAddr().(*net.UDPAddr).Port)).Replace(way.line)
				output, status = in.For(t).Tool("bash -c " + harness.Quote(line))
				if expected && status != 0 && way.lacking {
					return false, status, output
				}
				return v.contacted(t, expected), status, output
			}
			for name, in := range map[string]*scene{"without a sandbox": free, "with network": online} {
				if came, status, output := try(in, true); status != 0 && way.lacking {
					harness.Skip(t, "protocol_"+strings.ReplaceAll(way.name, " ", "_"), strings.TrimSpace(output))
				} else if !came || status != 0 {
					t.Fatalf("control: %s: somebody came: %t, status %d: %s", name, came, status, output)
				}
			}
			for j, machine := range machines {
				if !harness.Turn(t, i+j, len(machines)) {
					continue
				}
				came, status, output := try(without[j], false)
				if came {
					harness.Breach(t, "THE ATTACK WORKS %s: status %d: %s", machine.Name, status, output)
				}
				if !machine.Namespaces && !strings.Contains(output, "Permission denied") {
					t.Errorf("%s: status %d, want a refusal: %s", machine.Name, status, output)
				}
			}
		})
	}
}

// Without network a server inside is reached from inside, by IPv4 and by name,
// and the session can list its addresses. Two sessions have two networks.
func TestLocalhostIsTheSessionsOwn(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network")
	if !harness.Namespaces(t) {
		harness.Skip(t, "user_namespaces", "sessions have no network of their own")
	}
	const server = `/usr/bin/python3 -c '
import socket, threading
server = socket.create_server(("127.0.0.1", 7070))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
assert socket.create_connection(("localhost", 7070)).recv(5) == b"hello"
assert [name for _, name in socket.if_nameindex()][0] == "lo"
assert socket.getaddrinfo("127.0.0.1", 80)
print("served"); input()'`
	s := newScene(t, offline())
	first := s.Spawn(shell(server))
	first.Await("served")
	second := s.Spawn(shell(server)) // the same port, while the first holds it
	second.Await("served")
	for _, session := range []*harness.Session{first, second} {
		session.Type("\n")
		session.Exit()
	}
}

// Tries ways round the filter of socket families in a network namespace:
// families without namespaces, raw sockets, and interfaces that the session
// makes.
func TestANetworkOfItsOwnHasNoBackDoor(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network")
	if !harness.Namespaces(t) {
		harness.Skip(t, "user_namespaces", "sessions have no network of their own")
	}
	// A /proc that hides the processes of others has nothing to join.
	_, err := os.Stat("/proc/1")
	hides := errors.Is(err, os.ErrNotExist)
	s := newScene(t, offline())
	for name, line := range map[string]string{
		"raw":     `socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)`,
		"packet":  `socket.socket(socket.AF_PACKET, socket.SOCK_RAW)`,
		"vsock":   `socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)`,
		"generic": `socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)`,
		"an interface": `s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((0, 0)); ` +
			`s.send(struct.pack("=IHHII", 32, 16, 0x605, 1, 0) + struct.pack("=BxHiII", 0, 0, 0, 0, ` +
			`0)); import errno; code = -struct.unpack_from("=i", s.recv(4096), 16)[0]; raise OSError(code, ` +
			`os.strerror(code))`,
		"join": `fd = os.open("/proc/1/ns/net", os.O_RDONLY); libc = ctypes.CDLL(None, use_errno=True); raise ` +
			`OSError(0, "joined") if libc.setns(fd, 0) == 0 else OSError(ctypes.get_errno(), "setns")`,
	} {
		output, status := s.Tool(`/usr/bin/python3 -c ` +
			harness.Quote("import socket, struct, os, ctypes\n"+line))
		refused := strings.Contains(output, "Operation not permitted") ||
			strings.Contains(output, "Permission denied") || strings.Contains(output, "not supported") ||
			name == "join" && hides && strings.Contains(output, "No such file or directory")
		if status == 0 || !refused {
			t.Errorf("%s: status %d: %s", name, status, output)
		}
	}
}
