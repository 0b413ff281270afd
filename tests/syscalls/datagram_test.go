//go:build linux

package syscalls

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Makes Unix sockets that send datagrams, by each of their names, alone and as
// a pair. A datagram can be addressed to any socket, even from the end of a
// pair. If Landlock cannot restrict that, none can be made.
func TestNoDatagramSocketsPastTheSupervisor(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	supervised := newScene(t, sandboxed())
	reply := supervised.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true"})
	reply.Exit()
	want := "EACCES"
	if strings.Contains(reply.Sandbox.Protections["unix_sockets"].Mechanism, "landlock") {
		want = "ok"
	}
	const pair = 0 // where the kernel writes descriptors to; nothing is mapped there
	actions := []string{
		call("datagram", unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM),
		call("datagram-high", unix.SYS_SOCKET, high|unix.AF_UNIX,
			high|unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK),
		call("raw", unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_RAW),
		call("pair", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM, 0, pair),
		call("pair-raw", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0, pair),
		call("pair-streams", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, pair),
		call("pair-packets", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, pair),
	}
	control := newScene(t, harness.Off()).ask(actions...)
	for _, s := range []*scene{supervised, newScene(t, offline())} {
		for name, answer := range s.ask(actions...) {
			expected := control[name]
			if want != "ok" && !strings.HasSuffix(name, "streams") && !strings.HasSuffix(name, "packets") {
				expected = want
			}
			if answer != expected {
				t.Errorf("%s is answered with %s, want %s", name, answer, expected)
			}
		}
	}
	for name, answer := range control {
		if answer == "EACCES" {
			t.Errorf("control: without a sandbox %s is refused too", name)
		}
	}
}
