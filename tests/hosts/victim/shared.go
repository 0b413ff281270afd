//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listenTCP listens without bind, which lets the kernel choose a port at all
// addresses.
func listenTCP([]string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Listen(fd, 1); err != nil {
		return err
	}
	fmt.Println("listening")
	return nil
}

// bindTCP binds to a port of any number.
func bindTCP([]string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	fmt.Println("bound")
	return nil
}

// unixPair DIR serves a Unix socket and connects to it.
func unixPair(args []string) error {
	listener, err := net.Listen("unix", filepath.Join(args[0], "own.sock"))
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			fmt.Fprint(conn, "hello")
			conn.Close()
		}
	}()
	conn, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		return err
	}
	text := make([]byte, 5)
	_, err = conn.Read(text)
	fmt.Println(string(text))
	return err
}

// scatter HOST:PORT sends datagrams without connect, in every way.
func scatter(args []string) error {
	to, err := lookUp(args[0])
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	addr := address(unix.AF_INET, to)
	var failed []error
	failed = append(failed, unix.Sendto(fd, []byte("sendto"), 0, addr),
		unix.Sendmsg(fd, []byte("sendmsg"), nil, addr, 0))
	name := sockaddr(to.Addr().As4(), to.Port())
	text := []byte("sendmmsg")
	piece := unix.Iovec{Base: &text[0], Len: uint64(len(text))}
	message := struct {
		unix.Msghdr
		length uint32
		_      [4]byte
	}{Msghdr: unix.Msghdr{Name: &name[0], Namelen: uint32(len(name)), Iov: &piece, Iovlen: 1}}
	if _, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), 1, 0, 0,
		0); errno != 0 {
		failed = append(failed, errno)
	}
	// A peer whose name would be taken from the connection. The kernel sends nothing
	// from there to another machine.
	if unix.Connect(fd, &unix.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 53}}) == nil {
		err := unix.Sendto(fd, []byte("connected"), 0, addr)
		if !errors.Is(err, unix.EINVAL) || to.Addr().IsLoopback() {
			failed = append(failed, err)
		}
		_, err = unix.Write(fd, []byte("written"))
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	fmt.Println("sent")
	return nil
}

// sockaddr is a struct sockaddr_in (ip(7)).
func sockaddr(addr [4]byte, port uint16) []byte {
	raw := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
	raw = append(binary.BigEndian.AppendUint16(raw, port), addr[:]...)
	return append(raw, make([]byte, 8)...)
}

// shortAddress ADDRESS:PORT connects with the shortest address that the kernel
// takes for IPv6: it ends before the scope (SIN6_LEN_RFC2133).
func shortAddress(args []string) error {
	const shortest = 24
	fd, to, err := open(args[0], unix.AF_INET6, 0, 0)
	if err != nil {
		return err
	}
	v6 := to.(*unix.SockaddrInet6)
	raw := binary.BigEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, unix.AF_INET6), uint16(v6.Port))
	raw = append(append(raw, 0, 0, 0, 0), v6.Addr[:]...)
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])), shortest)
	if errno != 0 {
		return errno
	}
	return done(nil)
}

// sourceRoute HOST:PORT VIA connects to an allowed host by way of another, whose
// address is in the options of each packet. Silence means that the packet went
// there.
func sourceRoute(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	via := net.ParseIP(args[1]).To4()
	const looseRoute, length, first = 0x83, 7, 4 // RFC 791
	options := append([]byte{looseRoute, length, first}, via...)
	if err := unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string(append(options, 1))); err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	fmt.Println("sent")
	return nil
}

// otherDevice binds a socket to an interface, and by its index.
func otherDevice([]string) error {
	for _, do := range []func(int) error{
		func(fd int) error { return unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo") },
		func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, 1) },
	} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := do(fd); err != nil {
			return err
		}
	}
	fmt.Println("bound")
	return nil
}

// kinds makes every kind of socket that is not for streams of TCP, and prints
// those that can be made. An ordinary user can make most of them, where the
// kernel has them.
func kinds([]string) error {
	const smc, udpLite, dccp, sctp, smcOverIP = 43, 136, 33, 132, 256
	var made []string
	for name, kind := range map[string][3]int{
		"mptcp": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, "sctp": {unix.AF_INET, unix.SOCK_STREAM, sctp},
		"sctp-many": {unix.AF_INET, unix.SOCK_SEQPACKET, sctp}, "udp-lite": {unix.AF_INET, unix.SOCK_DGRAM, udpLite},
		"icmp":  {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP},
		"raw":   {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW},
		"icmp6": {unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6}, "dccp": {unix.AF_INET, 6, dccp},
		"smc": {smc, unix.SOCK_STREAM, 0}, "smc-ip": {unix.AF_INET, unix.SOCK_STREAM, smcOverIP},
		"packet": {unix.AF_PACKET, unix.SOCK_RAW, 0}, "vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		"netlink": {unix.AF_NETLINK, unix.SOCK_RAW, 0}, "socket-packet": {unix.AF_INET, unix.SOCK_PACKET, 0},
	} {
		if fd, err := unix.Socket(kind[0], kind[1]|unix.SOCK_CLOEXEC, kind[2]); err == nil {
			unix.Close(fd)
			made = append(made, name)
		}
	}
	fmt.Println(len(made), strings.Join(made, " "))
	return nil
}

// swap HOST:PORT OTHER SECONDS connects to an allowed host, while other threads
// put another address into the memory and another socket in the place of the
// first, dissolve connections, and listen. Only the servers know whether one of
// the connections arrived at the other host.
func swap(args []string) error {
	seconds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	good, err := lookUp(args[0])
	if err != nil {
		return err
	}
	bad, err := lookUp(args[1])
	if err != nil {
		return err
	}
	const target = 900 // a number that no other descriptor gets
	name := sockaddr(good.Addr().As4(), good.Port())
	other := sockaddr(bad.Addr().As4(), bad.Port())
	unspec := make([]byte, len(name))
	local, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var all sync.WaitGroup
	var tried, listening atomic.Int64
	fresh := func() {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err == nil {
			_ = unix.Dup3(fd, target, unix.O_CLOEXEC)
			unix.Close(fd)
		}
	}
	fresh()
	for _, act := range []func(){
		func() {
			tried.Add(1)
			_, _, _ = unix.Syscall(unix.SYS_CONNECT, target, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)))
		},
		func() {
			_, _, _ = unix.Syscall(unix.SYS_CONNECT, target, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)))
		},
		func() { copy(name, other); copy(name, sockaddr(good.Addr().As4(), good.Port())) },
		func() {
			_, _, _ = unix.Syscall(unix.SYS_CONNECT, target, uintptr(unsafe.Pointer(&unspec[0])), uintptr(len(unspec)))
		},
		fresh,
		func() { _ = unix.Dup3(local[0], target, unix.O_CLOEXEC) },
		func() {
			if unix.Listen(target, 1) == nil {
				if domain, err := unix.GetsockoptInt(target, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil &&
					domain == 1 {
					listening.Add(1)
				}
			}
		},
	} {
		all.Go(func() {
			for time.Now().Before(end) {
				act()
			}
		})
	}
	all.Wait()
	fmt.Printf("tried: %v, listening: %v\n", tried.Load() > 0, listening.Load() > 0)
	return nil
}

// knock PORTS… connects to ports of this machine, and prints how many of them
// answer a request. It is for a program outside of the sandbox.
func knock(args []string) error {
	tried, answers := 0, 0
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "0A" || !strings.HasPrefix(fields[1], "0100007F:") {
			continue // not listening at 127.0.0.1
		}
		port, err := strconv.ParseUint(strings.TrimPrefix(fields[1], "0100007F:"), 16, 16)
		if err != nil {
			return err
		}
		if strconv.Itoa(int(port)) == args[0] {
			continue
		}
		tried++
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
		if n, _ := conn.Read(make([]byte, 1)); n > 0 {
			answers++
		}
		conn.Close()
	}
	fmt.Printf("%d tried, %d answers\n", tried, answers)
	return nil
}
