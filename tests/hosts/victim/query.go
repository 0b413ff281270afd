//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// queryUDP asks a DNS server as libraries do that use the sockets themselves:
// with and without a connection, by each call, in both modes.
func queryUDP(args []string) error {
	family, server := unix.AF_INET, netip.MustParseAddrPort(nameserver+":53")
	if len(args) > 0 {
		family = unix.AF_INET6
		server = netip.AddrPortFrom(netip.AddrFrom16(server.Addr().As16()), server.Port())
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if family == unix.AF_INET {
		err = unix.Bind(fd, &unix.SockaddrInet4{})
	} else {
		err = unix.Bind(fd, &unix.SockaddrInet6{})
	}
	if err != nil {
		return err
	}
	to := address(family, server)
	question, err := (&dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName("allowed.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
	}}}).Pack()
	if err != nil {
		return err
	}
	var found []string
	buffer := make([]byte, 512)
	answered := func(n int, from unix.Sockaddr, err error) {
		var m dnsmessage.Message
		var errno unix.Errno
		switch {
		case errors.As(err, &errno):
			found = append(found, unix.ErrnoName(errno))
		case m.Unpack(buffer[:n]) != nil || len(m.Answers) != 1:
			found = append(found, fmt.Sprintf("%d bytes", n))
		default:
			found = append(found, "answer from "+text(from).String())
		}
	}
	receive := func() { answered(unix.Recvfrom(fd, buffer, 0)) }
	message := func() {
		n, _, _, from, err := unix.Recvmsg(fd, buffer, make([]byte, 64), 0)
		answered(n, from, err)
	}
	failed := unix.Sendto(fd, question, 0, to)
	receive()
	failed = errors.Join(failed, unix.Sendmsg(fd, question, nil, to, 0))
	message()
	failed = errors.Join(failed, unix.Connect(fd, to))
	_, err = unix.Write(fd, question)
	failed = errors.Join(failed, err)
	receive()
	limit := unix.NsecToTimeval(1e7)
	failed = errors.Join(failed, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	receive()
	failed = errors.Join(failed, unix.SetNonblock(fd, true))
	message()
	own, err := unix.Getsockname(fd)
	failed = errors.Join(failed, err)
	peer, err := unix.Getpeername(fd)
	if failed = errors.Join(failed, err); failed != nil {
		return failed
	}
	found = append(found, "own "+text(own).Addr().String(), "peer "+text(peer).String())
	fmt.Println(strings.Join(found, ", "))
	return nil
}

func text(addr unix.Sockaddr) netip.AddrPort {
	switch a := addr.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}
