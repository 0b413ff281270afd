package namespace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// startLoopback starts the loopback interface of a new network namespace, where
// it is down at first (network_namespaces(7)).
func startLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// ProveIsolated returns an error unless the loopback interface works, no other
// interface is up, and no route leads out.
func ProveIsolated() error {
	if err := onlyLoopback(); err != nil {
		return err
	}
	reach := func(family int, to unix.Sockaddr) error {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, to) // a datagram socket finds a route and sends nothing
	}
	const port = 9
	if err := reach(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("reach the session's own loopback interface: %w", err)
	}
	// These addresses are for documentation, and no network has them (RFC 5737,
	// RFC 3849). A kernel may have no IPv6.
	out4 := reach(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{192, 0, 2, 1}})
	out6 := reach(unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}})
	switch {
	case !errors.Is(out4, unix.ENETUNREACH):
		return fmt.Errorf("find a route out by IPv4: expected none: %w", orReachable(out4))
	case !errors.Is(out6, unix.ENETUNREACH) && !errors.Is(out6, unix.EAFNOSUPPORT) &&
		!errors.Is(out6, unix.EADDRNOTAVAIL):
		return fmt.Errorf("find a route out by IPv6: expected none: %w", orReachable(out6))
	}
	return nil
}

var errReachable = errors.New("there is one, so the network is not off")

func orReachable(err error) error {
	if err == nil {
		return errReachable
	}
	return err
}

// onlyLoopback returns an error if another interface is up. There may be some
// that are down: tunnels of loaded modules.
func onlyLoopback() error {
	dump, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return fmt.Errorf("list network interfaces: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(dump)
	if err != nil {
		return fmt.Errorf("list network interfaces: %w", err)
	}
	for i := range messages {
		if messages[i].Header.Type != unix.RTM_NEWLINK || len(messages[i].Data) < unix.SizeofIfInfomsg {
			continue
		}
		flags := binary.NativeEndian.Uint32(messages[i].Data[8:]) // struct ifinfomsg: family, type, index, flags
		if flags&unix.IFF_UP != 0 && flags&unix.IFF_LOOPBACK == 0 {
			return errors.New("list network interfaces: another than the loopback interface is up, so the " +
				"network is not off")
		}
	}
	return nil
}
