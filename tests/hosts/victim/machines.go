//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// The world has two machines: this one, where the command runs, and one with all
// other hosts. Each is a network namespace, and has one end of a link (veth(4)).
const link = "net0"

// Their addresses. otherServer is a DNS server that no configuration names, and
// nothing listens at the last two of the other machine.
var (
	addressesHere  = []string{ownAddress + "/24", "10.9.8.1/24", "169.254.169.1/24", "2606:2800:220:1::1/64"}
	addressesThere = []string{
		publicHost + "/24", privateHost + "/24", metadataHost + "/24", host6 + "/64", otherServer + "/24",
		deniedHost + "/24", "93.184.216.77/24",
	}
)

// routed is an address of this machine that no interface has: a route alone says
// so, as for a whole network that a load balancer or a container's host takes.
const routed, routedNetwork = "203.0.113.7", "203.0.113.0/24"

// interfaces makes the other machine, and connects it.
func interfaces() error {
	thread, err := startOther()
	if err != nil {
		return fmt.Errorf("make another machine: %w", err)
	}
	if err := makeLink(thread); err != nil {
		return fmt.Errorf("make a link to another machine: %w", err)
	}
	if err := errors.Join(up("lo"), up(link), addAddresses(addressesHere), routeHere(routedNetwork)); err != nil {
		return fmt.Errorf("this machine's addresses: %w", err)
	}
	return there(func() error { return errors.Join(up("lo"), up(link), addAddresses(addressesThere)) })
}

// forThere are what the other machine's thread does.
var forThere = make(chan func())

// startOther makes the other machine, and returns the thread that is in it.
func startOther() (thread int, err error) {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: no other goroutine may run in the namespace
		thread = unix.Gettid()
		started <- unix.Unshare(unix.CLONE_NEWNET)
		for do := range forThere {
			do()
		}
	}()
	err = <-started
	return thread, err
}

// there runs a function on the other machine: the sockets that it opens are that
// one's.
func there(do func() error) (err error) {
	done := make(chan struct{})
	forThere <- func() {
		defer close(done)
		err = do()
	}
	<-done
	return err
}

// at runs a function on the machine that has an address.
func at(host string, do func() error) error {
	if slices.ContainsFunc(addressesThere, func(prefix string) bool {
		return netip.MustParsePrefix(prefix).Addr() == netip.MustParseAddr(host)
	}) {
		return there(do)
	}
	return do()
}

// up switches an interface on.
func up(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// makeLink makes the link. Its other end is in the network namespace of a thread.
func makeLink(thread int) error {
	const peer = 1 // VETH_INFO_PEER, linux/veth.h
	name := attribute(unix.IFLA_IFNAME, []byte(link+"\x00"))
	where := attribute(unix.IFLA_NET_NS_PID, binary.NativeEndian.AppendUint32(nil, uint32(thread)))
	anyLink := make([]byte, unix.SizeofIfInfomsg)
	return change(unix.RTM_NEWLINK, anyLink, name, attribute(unix.IFLA_LINKINFO, slices.Concat(
		attribute(unix.IFLA_INFO_KIND, []byte("veth")),
		attribute(unix.IFLA_INFO_DATA, attribute(peer, slices.Concat(anyLink, name, where))),
	)))
}

// addAddresses gives the link's end addresses with their networks. A kernel
// without IPv6 gets none of that.
func addAddresses(prefixes []string) error {
	end, err := net.InterfaceByName(link)
	if err != nil {
		return err
	}
	for _, text := range prefixes {
		prefix := netip.MustParsePrefix(text)
		const global = unix.RT_SCOPE_UNIVERSE
		message := []byte{family(prefix.Addr()), byte(prefix.Bits()), unix.IFA_F_NODAD, global}
		message = binary.NativeEndian.AppendUint32(message, uint32(end.Index))
		raw := prefix.Addr().AsSlice()
		err := change(unix.RTM_NEWADDR, message, attribute(unix.IFA_LOCAL, raw), attribute(unix.IFA_ADDRESS, raw))
		if err != nil && (prefix.Addr().Is4() || !errors.Is(err, unix.EOPNOTSUPP)) {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// routeHere has this machine take a whole network for itself.
func routeHere(network string) error {
	const loopback = 1 // the index of lo
	prefix := netip.MustParsePrefix(network)
	return change(unix.RTM_NEWROUTE, []byte{
		family(prefix.Addr()), byte(prefix.Bits()), 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST,
		unix.RTN_LOCAL, 0, 0, 0, 0,
	}, attribute(unix.RTA_DST, prefix.Addr().AsSlice()),
		attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopback)))
}

func family(addr netip.Addr) byte {
	if addr.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// attribute is one of a message of rtnetlink(7).
func attribute(kind uint16, value []byte) []byte {
	length := unix.SizeofRtAttr + len(value)
	text := binary.NativeEndian.AppendUint16(nil, uint16(length))
	text = binary.NativeEndian.AppendUint16(text, kind)
	return append(append(text, value...), make([]byte, -length&3)...)
}

// change asks the kernel to make something, with a message of rtnetlink(7).
func change(kind uint16, parts ...[]byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	body := slices.Concat(parts...)
	message := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	message = binary.NativeEndian.AppendUint16(message, kind)
	message = binary.NativeEndian.AppendUint16(message,
		unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	message = append(message, make([]byte, 8)...) // its number, and the kernel's port
	if err := unix.Sendto(fd, append(message, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 {
		return errors.New("the kernel's answer is cut off")
	}
	if errno := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}
