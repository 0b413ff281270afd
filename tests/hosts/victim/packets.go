//go:build linux

package main

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// watchPackets logs every packet of the world that begins something, if the
// directory has a file for that: a connection, or a datagram.
func watchPackets(dir string) error {
	file := filepath.Join(dir, "packets")
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	log, err := openJournal(file)
	if err != nil {
		return err
	}
	everything := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(everything))
	if err != nil {
		return err
	}
	go func() {
		packet := make([]byte, 1<<16)
		for {
			n, from, err := unix.Recvfrom(fd, packet, 0)
			if err != nil {
				return
			}
			link, is := from.(*unix.SockaddrLinklayer)
			if what := begins(packet[:n]); what != "" && is && link.Pkttype == unix.PACKET_OUTGOING {
				log.write("%s", what)
			}
		}
	}()
	return nil
}

// begins describes a packet that begins something, as "tcp ADDRESS:PORT"; else
// it is "".
func begins(packet []byte) string {
	const header4, header6 = 20, 40
	var to netip.Addr
	var protocol byte
	switch {
	case len(packet) > header4 && packet[0]>>4 == 4:
		to, protocol = netip.AddrFrom4([4]byte(packet[16:])), packet[9]
		packet = packet[int(packet[0]&0xf)*4:]
	case len(packet) > header6 && packet[0]>>4 == 6:
		to, protocol = netip.AddrFrom16([16]byte(packet[24:])), packet[6]
		packet = packet[header6:]
	default:
		return ""
	}
	const flags, syn, ack = 13, 2, 16
	name := map[byte]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[protocol]
	const firstOfLink, lastOfLink = 133, 137 // ICMPv6 about the neighbours of a link, RFC 4861
	switch {
	case to.IsMulticast(), protocol == unix.IPPROTO_ICMPV6 && len(packet) > 0 &&
		packet[0] >= firstOfLink && packet[0] <= lastOfLink:
		return "" // the kernel's own
	case name == "" || len(packet) < 4:
		return "protocol " + strconv.Itoa(int(protocol)) + " " + to.String()
	case name == "tcp" && (len(packet) <= flags || packet[flags]&(syn|ack) != syn):
		return ""
	}
	return name + " " + net.JoinHostPort(to.String(), strconv.Itoa(int(binary.BigEndian.Uint16(packet[2:]))))
}
