package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// The numbers of SOCKS (RFC 1928, RFC 1929).
const (
	socksVersion     = 5
	passwordMethod   = 2
	passwordVersion  = 1
	noMethod         = 0xff
	commandConnect   = 1
	typeIPv4         = 1
	typeName         = 3
	typeIPv6         = 4
	replySucceeded   = 0
	replyNotAllowed  = 2
	replyUnreachable = 4
	replyRefused     = 5
	replyExpired     = 6
	replyCommand     = 7
	replyType        = 8
)

// serveSOCKS serves a client of SOCKS 5, whose first byte was read already.
func (s *Server) serveSOCKS(conn *net.TCPConn) {
	methods, ok := readCounted(conn)
	if !ok {
		return
	}
	if !slices.Contains(methods, passwordMethod) {
		_, _ = conn.Write([]byte{socksVersion, noMethod})
		return
	}
	if _, err := conn.Write([]byte{socksVersion, passwordMethod}); err != nil {
		return
	}
	var version [1]byte
	if _, err := io.ReadFull(conn, version[:]); err != nil || version[0] != passwordVersion {
		return
	}
	if _, ok = readCounted(conn); !ok { // the user's name, which does not count
		return
	}
	token, ok := readCounted(conn)
	if !ok {
		return
	}
	session := s.find(string(token))
	if session == nil {
		_, _ = conn.Write([]byte{passwordVersion, 1})
		return
	}
	if _, err := conn.Write([]byte{passwordVersion, 0}); err != nil {
		return
	}
	to, reply := readCommand(conn)
	if reply != replySucceeded {
		sendReply(conn, reply)
		return
	}
	_ = conn.SetDeadline(time.Time{})
	there, release, err := session.dial(to)
	if err != nil {
		sendReply(conn, replyFor(err))
		return
	}
	defer release()
	if sendReply(conn, replySucceeded) {
		session.relay(conn, there, session.judge(to))
	}
}

// readCounted reads a text after a byte with its length.
func readCounted(conn *net.TCPConn) ([]byte, bool) {
	var length [1]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, false
	}
	text := make([]byte, length[0])
	_, err := io.ReadFull(conn, text)
	return text, err == nil
}

// readCommand reads what the client wants. reply is not replySucceeded if it
// cannot have that.
func readCommand(conn *net.TCPConn) (to outbound.Target, reply byte) {
	var head [4]byte // version, command, 0, type
	if _, err := io.ReadFull(conn, head[:]); err != nil || head[0] != socksVersion || head[2] != 0 {
		return to, replyNotAllowed
	}
	var host string
	switch head[3] {
	case typeName:
		text, ok := readCounted(conn)
		if !ok {
			return to, replyNotAllowed
		}
		host = string(text)
	case typeIPv4, typeIPv6:
		raw := make([]byte, map[byte]int{typeIPv4: net.IPv4len, typeIPv6: net.IPv6len}[head[3]])
		if _, err := io.ReadFull(conn, raw); err != nil {
			return to, replyNotAllowed
		}
		addr, _ := netip.AddrFromSlice(raw)
		host = addr.String()
	default:
		return to, replyType
	}
	var port [2]byte
	if _, err := io.ReadFull(conn, port[:]); err != nil {
		return to, replyNotAllowed
	}
	if head[1] != commandConnect {
		return to, replyCommand
	}
	to, ok := targetOf(host, strconv.Itoa(int(binary.BigEndian.Uint16(port[:]))))
	if !ok {
		return to, replyUnreachable
	}
	return to, replySucceeded
}

func replyFor(err error) byte {
	switch outbound.Errno(err) {
	case syscall.EACCES:
		return replyNotAllowed
	case syscall.ECONNREFUSED:
		return replyRefused
	case syscall.ETIMEDOUT:
		return replyExpired
	}
	return replyUnreachable
}

// sendReply sends a reply without an address, which no client needs.
func sendReply(conn *net.TCPConn, reply byte) bool {
	_, err := conn.Write([]byte{socksVersion, reply, 0, typeIPv4, 0, 0, 0, 0, 0, 0})
	return err == nil
}
