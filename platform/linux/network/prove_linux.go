package network

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// canaryName is a name that no list can allow, and that has no address.
const canaryName = "canary.invalid"

// Prove checks that a connector and a resolver serve the calling thread: a name
// gets an address, and a connection to it is denied. The kernel alone would
// answer ECONNREFUSED.
func Prove() error {
	addr, err := lookUp(canaryName)
	if err != nil {
		return fmt.Errorf("ask the session's resolver: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return notify.Expect("connect to a host that is not allowed",
		unix.Connect(fd, &unix.SockaddrInet4{Port: 1, Addr: addr}), unix.EACCES)
}

// ProveShared checks that a session in the machine's network can neither bind
// nor listen. The kernel alone would let it do both.
func ProveShared() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := notify.Expect("bind a socket of TCP", unix.Bind(fd, loopback), unix.EACCES); err != nil {
		return err
	}
	return notify.Expect("listen on a socket of TCP", unix.Listen(fd, 1), unix.EACCES)
}

// answerTimeout is far above what an answer takes.
const answerTimeout = 10 * time.Second

func lookUp(name string) (addr [4]byte, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return addr, err
	}
	defer unix.Close(fd)
	timeout := unix.NsecToTimeval(int64(answerTimeout))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return addr, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: Port, Addr: ResolverAddr.As4()}); err != nil {
		return addr, err
	}
	asked := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName(name + "."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}}}
	message, err := asked.Pack()
	if err != nil {
		return addr, err
	}
	if _, err := unix.Write(fd, message); err != nil {
		return addr, err
	}
	buffer := make([]byte, mostUDP)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return addr, err
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(buffer[:n]); err != nil {
		return addr, err
	}
	for _, resource := range answer.Answers {
		if a, is := resource.Body.(*dnsmessage.AResource); is && hosts.Own.Contains(netip.AddrFrom4(a.A)) {
			return a.A, nil
		}
	}
	return addr, fmt.Errorf("no address in the answer (%s)", answer.RCode)
}
