//go:build linux

package syscalls

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// sockets are the kinds of sockets, with the answers to a session with network
// and to one without. In a network namespace of its own, a session without
// network gets the same answers as one with it.
var sockets = []struct {
	name            string
	args            []uint64
	online, offline string
}{
	{"unix", []uint64{unix.AF_UNIX, unix.SOCK_STREAM}, "ok", "ok"},
	{"unix-seqpacket", []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC}, "ok", "ok"},
	{"tcp", []uint64{unix.AF_INET, unix.SOCK_STREAM}, "ok", "EACCES"},
	{"tcp-high", []uint64{high | unix.AF_INET, high | unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, "ok", "EACCES"},
	{"udp", []uint64{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK}, "ok", "EACCES"},
	{"route", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, "ok", "EACCES"},
	{"route-high", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, high | unix.NETLINK_ROUTE}, "ok", "EACCES"},
	{"uevent", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, "EPROTONOSUPPORT", "EACCES"},
	{
		"uevent-high",
		[]uint64{high | unix.AF_NETLINK, unix.SOCK_RAW, high | unix.NETLINK_KOBJECT_UEVENT},
		"EPROTONOSUPPORT", "EACCES",
	},
	// A kernel may lack the following, or reserve them for root.
	{"tcp6", []uint64{unix.AF_INET6, unix.SOCK_STREAM}, "ok", "EACCES"},
	{"mptcp", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, "ok", "EACCES"},
	{"packet", []uint64{unix.AF_PACKET, unix.SOCK_RAW}, "EAFNOSUPPORT", "EACCES"},
	{"packet-oldest", []uint64{unix.AF_INET, unix.SOCK_PACKET}, "EAFNOSUPPORT", "EACCES"},
	{"vsock", []uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, "EAFNOSUPPORT", "EACCES"},
	{"alg", []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, "EAFNOSUPPORT", "EACCES"},
	{"audit", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, "EPROTONOSUPPORT", "EACCES"},
	{"generic", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC}, "EPROTONOSUPPORT", "EACCES"},
	{"netfilter", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, "EPROTONOSUPPORT", "EACCES"},
	{"smc", []uint64{unix.AF_SMC, unix.SOCK_STREAM}, "EAFNOSUPPORT", "EACCES"},
	{"tipc", []uint64{unix.AF_TIPC, unix.SOCK_STREAM}, "EAFNOSUPPORT", "EACCES"},
	{"bluetooth", []uint64{unix.AF_BLUETOOTH, unix.SOCK_RAW, 1}, "EAFNOSUPPORT", "EACCES"},
	{"can", []uint64{unix.AF_CAN, unix.SOCK_RAW, 1}, "EAFNOSUPPORT", "EACCES"},
	{"xdp", []uint64{unix.AF_XDP, unix.SOCK_RAW}, "EAFNOSUPPORT", "EACCES"},
	{"unspec", []uint64{unix.AF_UNSPEC, unix.SOCK_STREAM}, "EAFNOSUPPORT", "EACCES"},
}

// always are those that every kernel and user has, so that a refusal comes from
// the sandbox.
const always = "unix unix-seqpacket tcp tcp-high udp route route-high uevent uevent-high"

func TestSocketsAreThoseOfTheSettings(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls", "network")
	actions := make([]string, len(sockets))
	for i, s := range sockets {
		actions[i] = call(s.name, unix.SYS_SOCKET, s.args...)
	}
	control := newScene(t, harness.Off()).ask(actions...)
	online := newScene(t, everywhere()).ask(actions...)
	for _, machine := range harness.Machines(t) {
		without := newSceneOn(t, offline(), machine).ask(actions...)
		for _, s := range sockets {
			want := s.offline
			if machine.Namespaces {
				want = online[s.name]
			}
			if without[s.name] != want {
				t.Errorf("%s: without network %s is answered with %s, want %s", machine.Name, s.name,
					without[s.name], want)
			}
		}
	}
	for _, s := range sockets {
		if strings.Contains(" "+always+" ", " "+s.name+" ") && control[s.name] != "ok" {
			t.Errorf("control: without a sandbox %s is answered with %s", s.name, control[s.name])
		}
		want := s.online
		if want == "ok" {
			want = control[s.name]
		}
		if online[s.name] != want {
			t.Errorf("with network %s is answered with %s, want %s", s.name, online[s.name], want)
		}
	}
	t.Logf("without a sandbox: %v", control)
}

func TestTheReplySaysHowTheNetworkIsOff(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network")
	for _, machine := range harness.Machines(t) {
		s := newSceneOn(t, offline(), machine)
		for _, kind := range []protocol.Kind{protocol.Tool, protocol.Terminal} {
			reply := s.Spawn(protocol.SpawnParams{Kind: kind, Command: "true"})
			reply.Exit()
			got := reply.Sandbox.Protections["network"]
			mechanism, word, fix := "seccomp", "localhost is off too", true
			if machine.Namespaces {
				mechanism, word, fix = "network namespace, seccomp", "loopback interface of the session's own", false
			}
			if !reply.Sandbox.Applied || got.Status != protocol.Enforced || got.Mechanism != mechanism ||
				!strings.Contains(got.Detail, word) || (got.Fix != "") != fix {
				t.Errorf("%s, %s: %+v", machine.Name, kind, reply.Sandbox)
			}
		}
	}
	got := newScene(t, everywhere()).Spawn(protocol.SpawnParams{
		Kind:    protocol.Tool,
		Command: "true",
	}).Sandbox.Protections["network"]
	if got.Status != protocol.Absent {
		t.Errorf("with network: %+v", got)
	}
}

// A program that gets a network socket as its standard input needs no call to
// make it. Without network nothing is executed with one, whatever
// on_unavailable says.
func TestANetworkSocketIsNotHandedDown(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network")
	for i, test := range []struct {
		name     string
		settings harness.Sandbox
		runs     bool
	}{
		{"online", nil, true},
		{"offline", harness.Sandbox{"allow_network": false}, false},
		{"offline and lenient", harness.Sandbox{"allow_network": false, "on_unavailable": "warn"}, false},
	} {
		for stream := range 3 {
			if !harness.Turn(t, i+stream, 3) {
				continue
			}
			w := harness.NewWorld(t)
			harness.Write(t, w.UserSettings(), harness.Settings(test.settings))
			ctx, cancel := deadline.Context(t.Context(), harness.Timeout)
			defer cancel()
			command := exec.CommandContext(ctx, harness.Binary(t), "exec", "--", "sh", "-c", "echo ran >ran")
			command.Env, command.Dir = harness.Environ(w), w.Project
			socket := udpSocket(t)
			said := &harness.Buffer{}
			command.Stderr = said
			switch stream {
			case 0:
				command.Stdin = socket
			case 1:
				command.Stdout = socket
			case 2:
				command.Stderr = socket
			}
			err := command.Run()
			ran := harness.Read(t, w.Project+"/ran") != ""
			if ran != test.runs || (err == nil) != test.runs {
				t.Errorf("%s, stream %d: ran: %t, %v: %s", test.name, stream, ran, err, said)
			}
			if !test.runs && stream < 2 && !strings.Contains(harness.Unfold(said.String()), "network socket") {
				t.Errorf("%s, stream %d: the reason is not said: %s", test.name, stream, said)
			}
		}
	}
}

func udpSocket(t *testing.T) *os.File {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// Connected to itself, so that a program may write to it.
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	address := &unix.SockaddrInet4{Port: conn.LocalAddr().(*net.UDPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	if err := raw.Control(func(fd uintptr) { err = unix.Connect(int(fd), address) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := conn.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}
