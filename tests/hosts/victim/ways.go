//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// lookups [WAY NAME]… looks each name up in that way. It prints the way, the name,
// and what was found: "none" is no such name, "silence" no answer.
func lookups(args []string) error {
	for pair := range slices.Chunk(args, 2) {
		way, name := pair[0], pair[1]
		found, err := find(way, name)
		var unknown *net.DNSError
		var errno unix.Errno
		switch {
		case errors.As(err, &unknown):
			found = "none"
		case errors.As(err, &errno):
			found = unix.ErrnoName(errno)
		case errors.Is(err, os.ErrDeadlineExceeded):
			found = "silence"
		case err != nil:
			found = "error: " + err.Error()
		case found == "":
			found = "nothing"
		}
		fmt.Println(way, name, found)
	}
	return nil
}

const pythonLookup = `import socket, sys
print(*sorted({a[4][0] for a in socket.getaddrinfo(sys.argv[1], 80)}))`

func find(way, name string) (string, error) {
	ctx := context.Background()
	switch way {
	case "getent":
		text, err := printed(way, "ahosts", name)
		var list []string
		for line := range strings.Lines(text) {
			list = append(list, strings.Fields(line)[0])
		}
		slices.Sort(list)
		return strings.Join(slices.Compact(list), " "), err
	case "python3":
		return printed(way, "-c", pythonLookup, name)
	case "go":
		list, err := net.DefaultResolver.LookupHost(ctx, name)
		return strings.Join(list, " "), err
	case "txt":
		list, err := net.DefaultResolver.LookupTXT(ctx, name)
		return strings.Join(list, " "), err
	case "connect":
		return visit(name)
	case "raw":
		return askRaw(name)
	case "resolved":
		return askDaemon(daemons[way], `{"method":"io.systemd.Resolve.ResolveHostname","parameters":{"name":"`+
			name+`","family":2}}`+"\x00")
	case "nscd":
		const version, getAI = 2, 14 // nscd/nscd-client.h of glibc
		request := binary.NativeEndian.AppendUint32(nil, version)
		request = binary.NativeEndian.AppendUint32(request, getAI)
		request = binary.NativeEndian.AppendUint32(request, uint32(len(name)+1))
		return askDaemon("/var"+daemons[way], string(request)+name+"\x00") // as glibc names it
	}
	server := nameserver
	rest, public := strings.CutPrefix(way, "public-")
	if public {
		server = otherServer
	}
	network, port, _ := strings.Cut(rest, "-")
	return askServer(network, net.JoinHostPort(server, port), name)
}

// printed is what a program prints. One that fails has found no such name.
func printed(program string, args ...string) (string, error) {
	output, err := exec.Command(program, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "none", nil
	}
	return strings.TrimSpace(string(output)), err
}

// question asks for the IPv4 addresses of a name.
func question(name string) ([]byte, error) {
	host, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 1, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: host, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	return m.Pack()
}

// reading bounds the wait for an answer that may not come.
const reading = patience / 3

// askServer asks a DNS server itself.
func askServer(network, server, name string) (string, error) {
	message, err := question(name)
	if err != nil {
		return "", err
	}
	conn, err := net.DialTimeout(network, server, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(reading))
	var answer []byte
	if network == "tcp" {
		if _, err := conn.Write(framed(message)); err != nil {
			return "", err
		}
		answer, err = readFramed(conn)
	} else {
		if _, err := conn.Write(message); err != nil {
			return "", err
		}
		answer = make([]byte, 4096)
		var n int
		n, err = conn.Read(answer)
		answer = answer[:n]
	}
	if err != nil {
		return "", err
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		return "", err
	}
	var list []string
	for _, one := range m.Answers {
		if body, is := one.Body.(*dnsmessage.AResource); is {
			list = append(list, netip.AddrFrom4(body.A).String())
		}
	}
	if len(list) == 0 {
		return strings.TrimPrefix(m.RCode.String(), "RCode"), nil
	}
	return strings.Join(list, " "), nil
}

// askRaw asks the machine's DNS server by a packet of a raw socket, and waits for
// the answer.
func askRaw(name string) (string, error) {
	message, err := question(name)
	if err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	const own, dns, header = 40053, 53, 8
	packet := binary.BigEndian.AppendUint16(nil, own)
	packet = binary.BigEndian.AppendUint16(packet, dns)
	packet = binary.BigEndian.AppendUint16(packet, uint16(header+len(message)))
	packet = append(append(packet, 0, 0), message...) // without a checksum
	limit := unix.NsecToTimeval(reading.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return "", err
	}
	to := &unix.SockaddrInet4{Addr: netip.MustParseAddr(nameserver).As4()}
	if err := unix.Sendto(fd, packet, 0, to); err != nil {
		return "", err
	}
	for buffer := make([]byte, 4096); ; { // the socket gets every packet of UDP
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return "", err
		}
		at := int(buffer[0]&0xf) * 4
		if n >= at+header && binary.BigEndian.Uint16(buffer[at:]) == dns &&
			binary.BigEndian.Uint16(buffer[at+2:]) == own {
			return "answered", nil
		}
	}
}

// askDaemon sends a request to a daemon's socket, and reads all that it answers.
func askDaemon(path, request string) (string, error) {
	conn, err := net.DialTimeout("unix", path, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(reading))
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// visit connects to a host by its name.
func visit(name string) (string, error) {
	conn, err := net.DialTimeout("tcp4", net.JoinHostPort(name, "80"), patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintln(conn, name); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != welcome {
		err = fmt.Errorf("the host says %q", line)
	}
	return "connected", err
}
