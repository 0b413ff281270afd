//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience bounds every wait of a client.
const patience = 60 * time.Second

// lookUp finds the address of "host:port" as every program does.
func lookUp(text string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return netip.AddrPort{}, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(addr, uint16(number)), nil
	}
	list, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip4", host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(list[0].Unmap(), uint16(number)), nil
}

// address is an address for an IPv4 or an IPv6 socket.
func address(family int, to netip.AddrPort) unix.Sockaddr {
	if family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
}

// open makes a socket for "host:port" and its address.
func open(text string, family, flags, protocol int) (int, unix.Sockaddr, error) {
	to, err := lookUp(text)
	if err != nil {
		return -1, nil, err
	}
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|flags, protocol)
	return fd, address(family, to), err
}

func done(err error) error {
	if err == nil {
		fmt.Println("connected")
	}
	return err
}

// connect HOST:PORT connects in blocking mode.
func connect(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	return done(unix.Connect(fd, to))
}

// connectPolled HOST:PORT connects in non-blocking mode and prints how: what
// connect answers, and then SO_ERROR or what a read answers.
func connectPolled(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	begun := time.Now()
	err = unix.Connect(fd, to)
	const soon = 5 * time.Second // far above what is promised
	if took := time.Since(begun); took > soon {
		fmt.Printf("held for %v\n", took)
	}
	if !errors.Is(err, unix.EINPROGRESS) {
		return done(err)
	}
	fmt.Print("EINPROGRESS ")
	if err := await(fd); err != nil {
		return err
	}
	if number, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || number != 0 {
		return errors.Join(err, unix.Errno(number))
	}
	if again := unix.Connect(fd, to); again != nil {
		return again
	}
	return done(nil)
}

func await(fd int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(patience/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return errors.New("nothing happens")
		default:
			return nil
		}
	}
}

// connectInterrupted HOST:PORT gets a signal while it connects.
func connectInterrupted(args []string) error {
	runtime.LockOSThread() // or another thread might get the signal
	thread := unix.Gettid()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR1)
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	time.AfterFunc(300*time.Millisecond, func() { _ = unix.Tgkill(os.Getpid(), thread, unix.SIGUSR1) })
	begun := time.Now()
	err = unix.Connect(fd, to)
	const soon = 20 * time.Second
	if took := time.Since(begun); took > soon {
		fmt.Printf("held for %v\n", took)
	}
	if !errors.Is(err, unix.EINTR) {
		return done(err)
	}
	fmt.Print("EINTR ")
	return unix.Connect(fd, to) // which goes on meanwhile
}

// again HOST:PORT connects twice.
func again(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return unix.Connect(fd, to)
}

// unspec HOST:PORT OTHER connects, dissolves that, and connects to another.
func unspec(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	raw := [16]byte{}
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw)), 16); errno != 0 {
		return errno
	}
	_, other, err := open(args[1], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	return done(unix.Connect(fd, other))
}

// connectV6 HOST:PORT connects an IPv6 socket to an IPv4 address in IPv6's form.
func connectV6(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET6, 0, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return greet(fd)
}

// connectV6Only ADDRESS:PORT connects a socket that knows IPv6 alone.
func connectV6Only(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET6, 0, 0)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
		return err
	}
	return done(unix.Connect(fd, to))
}

func connectMPTCP(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, 0, unix.IPPROTO_MPTCP)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return greet(fd)
}

// greet sends a request to an HTTP server and prints the body.
func greet(fd int) error {
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	if _, err := file.WriteString("GET / HTTP/1.0\r\nHost: allowed.example\r\n\r\n"); err != nil {
		return err
	}
	text, err := io.ReadAll(file)
	if _, body, found := bytes.Cut(text, []byte("\r\n\r\n")); found {
		fmt.Print(string(body))
	}
	return err
}

// fastOpen HOST:PORT connects by sendto and sendmsg.
func fastOpen(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	if args[1] == "sendmsg" {
		return done(unix.Sendmsg(fd, []byte("GET / HTTP/1.0\r\n\r\n"), nil, to, unix.MSG_FASTOPEN))
	}
	return done(unix.Sendto(fd, []byte("GET / HTTP/1.0\r\n\r\n"), unix.MSG_FASTOPEN, to))
}

// deferConnect HOST:PORT connects only when it writes.
func deferConnect(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	const noCookie = 34 // TCP_FASTOPEN_NO_COOKIE
	if err := errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, noCookie, 1)); err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	return greet(fd)
}

// connectPassed HOST:PORT lets another thread of another open file connect, and
// uses the socket that was passed over a Unix socket meanwhile.
func connectPassed(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0); err != nil {
		return err
	}
	unix.Close(fd)
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), control, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return err
	}
	passed, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	if err := errors.Join(await(passed[0]), unix.SetNonblock(passed[0], false)); err != nil {
		return err
	}
	return greet(passed[0])
}

// datagram HOST:PORT sends one, and waits for the answer.
func datagram(args []string) error {
	conn, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(patience / 3))
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// raw makes raw sockets.
func raw([]string) error {
	if _, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0); err == nil {
		fmt.Println("packets")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	packet := make([]byte, 28)
	packet[0], packet[8], packet[9] = 0x45, 64, unix.IPPROTO_UDP
	to := &unix.SockaddrInet4{Addr: netip.MustParseAddr(publicHost).As4()}
	copy(packet[16:], to.Addr[:])
	return done(unix.Sendto(fd, packet, 0, to))
}

// peer HOST:PORT prints whether the peer's address is the one that was dialled.
func peer(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	got, err := unix.Getpeername(fd)
	if err != nil {
		return err
	}
	fmt.Println(got.(*unix.SockaddrInet4).Addr == to.(*unix.SockaddrInet4).Addr)
	return nil
}

// eager HOST:PORT connects in non-blocking mode, and sends a request as soon as
// it believes to be connected.
func eager(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := unix.Connect(fd, to); !errors.Is(err, unix.EINPROGRESS) {
		return done(err)
	}
	const soon = 5 * time.Second // far above what is promised
	if took := time.Since(begun); took > soon {
		fmt.Printf("held for %v\n", took)
	}
	if err := await(fd); err != nil {
		return err
	}
	fmt.Println("begun")
	return greet(fd)
}

// crowd HOST:PORT N connects N times at once, half of them in non-blocking mode,
// and prints how many were connected in blocking mode, and how many refused.
func crowd(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	_, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	var connected, refused atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|(i%2)*unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return
			}
			switch err := unix.Connect(fd, to); {
			case err == nil && i%2 == 0:
				connected.Add(1)
			case errors.Is(err, unix.EACCES):
				refused.Add(1)
			}
		})
	}
	all.Wait()
	fmt.Printf("%d connected, %d refused\n", connected.Load(), refused.Load())
	return nil
}
