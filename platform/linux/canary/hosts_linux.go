package canary

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts/loopback"
)

// unknownHost is a name that no list can allow, and that has no address.
const unknownHost = "canary.invalid"

// ProveHosts checks that a connector and a resolver serve the calling thread: a name
// gets an address, and a connection to it is denied. The kernel alone would
// answer ECONNREFUSED.
func ProveHosts() error {
	addr, err := lookUp(unknownHost)
	if err != nil {
		return fmt.Errorf("ask the session's resolver: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return expect("connect to a host that is not allowed",
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
	local := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := expect("bind a socket of TCP", unix.Bind(fd, local), unix.EACCES); err != nil {
		return err
	}
	return expect("listen on a socket of TCP", unix.Listen(fd, 1), unix.EACCES)
}

// answerTimeout is far above what an answer takes.
const answerTimeout = 10 * time.Second

// maxAnswer is the length of an answer to a question that names no other (RFC
// 1035).
const maxAnswer = 512

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
	resolver := &unix.SockaddrInet4{Port: loopback.ResolverPort, Addr: loopback.Resolver.As4()}
	if err := unix.Connect(fd, resolver); err != nil {
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
	buffer := make([]byte, maxAnswer)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		return addr, err
	}
	var answer dnsmessage.Message
	if err := answer.Unpack(buffer[:n]); err != nil {
		return addr, err
	}
	for _, resource := range answer.Answers {
		if a, is := resource.Body.(*dnsmessage.AResource); is && loopback.Own.Contains(netip.AddrFrom4(a.A)) {
			return a.A, nil
		}
	}
	return addr, fmt.Errorf("no address in the answer (%s)", answer.RCode)
}
