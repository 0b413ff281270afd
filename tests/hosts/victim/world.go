//go:build linux

package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// The world's hosts. No interface has the first address itself, so it counts as
// that of another machine.
const (
	publicHost   = "93.184.216.34"
	privateHost  = "10.9.8.7"
	metadataHost = "169.254.169.254"
	ownAddress   = "93.184.216.1"
	host6        = "2606:2800:220:1::7"
	nameserver   = "127.0.0.53"
)

// zone has the addresses of names. A name that is not there does not exist, and
// nobody answers about silent.example.
var zone = map[string][]string{
	"allowed.example": {publicHost}, "api.allowed.example": {publicHost}, "evil.example": {publicHost},
	"rebound.example": {"127.0.0.1"}, "metadata.example": {metadataHost}, "private.example": {privateHost},
	"here.example": {ownAddress}, "mixed.example": {privateHost, publicHost}, "six.example": {host6},
	"unreachable.example": {"192.0.2.9"}, "intranet": {publicHost}, "registry.npmjs.org": {publicHost},
}

// world DIR COMMAND… runs a command in a network namespace with the hosts. In
// the directory are the certificate, and logs of what was asked and visited.
func world(args []string) error {
	command := exec.Command("/proc/self/exe", append([]string{"inside"}, args...)...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL,
	}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		command.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_NET_BIND_SERVICE}
	}
	return exitAs(command.Run())
}

func exitAs(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	return err
}

func inside(args []string) error {
	runtime.LockOSThread()
	dir := args[0]
	if err := errors.Join(interfaces(), resolver(dir), serve(dir)); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	command := exec.Command(args[1], args[2:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return exitAs(command.Run())
}

// interfaces gives the loopback interface whole networks: all their addresses
// are this machine's, but it has only the first.
func interfaces() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		return err
	}
	for i, first := range []string{ownAddress, "10.9.8.1", "169.254.169.1"} {
		if err := set(fd, fmt.Sprintf("lo:%d", i+1), unix.SIOCSIFADDR, first); err != nil {
			return err
		}
		if err := set(fd, fmt.Sprintf("lo:%d", i+1), unix.SIOCSIFNETMASK, "255.255.255.0"); err != nil {
			return err
		}
	}
	return addV6()
}

func set(fd int, name string, command uint, text string) error {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := request.SetInet4Addr(net.ParseIP(text).To4()); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, command, request)
}

// addV6 gives the loopback interface an IPv6 address (struct in6_ifreq).
func addV6() error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // no IPv6 here
	}
	defer unix.Close(fd)
	request := struct {
		addr   [16]byte
		prefix uint32
		index  int32
	}{netip.MustParseAddr(host6).As16(), 64, 1}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}

// resolver directs programs to the world's DNS server.
func resolver(dir string) error {
	file := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver "+nameserver+"\nsearch corp.example\n"), 0o644); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	return errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(file, real, "", unix.MS_BIND, ""))
}

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func (j *journal) write(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.file, format+"\n", args...)
}

func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	return &journal{file: file}, err
}

func serve(dir string) error {
	asked, err := openJournal(filepath.Join(dir, "asked"))
	if err != nil {
		return err
	}
	visits, err := openJournal(filepath.Join(dir, "visits"))
	if err != nil {
		return err
	}
	conn, err := net.ListenPacket("udp", nameserver+":53")
	if err != nil {
		return err
	}
	go serveNames(conn, asked)
	certificate, err := certify(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return err
	}
	hello := func(where string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			visits.write("%s %s", where, r.Host)
			fmt.Fprintf(w, "hello from %s\n", where)
		})
	}
	for _, host := range []string{publicHost, privateHost, metadataHost, ownAddress, "127.0.0.1", host6} {
		listener, err := listen(net.JoinHostPort(host, "80"))
		if err != nil {
			return err
		}
		go func() { _ = http.Serve(listener, hello(host)) }()
	}
	secure, err := net.Listen("tcp", publicHost+":443")
	if err != nil {
		return err
	}
	go func() {
		_ = http.Serve(tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{certificate}}), hello("tls"))
	}()
	for port, speak := range map[string]func(net.Conn){
		"7": func(c net.Conn) { _, _ = io.Copy(c, c) },
		"22": func(c net.Conn) {
			fmt.Fprint(c, "SSH-2.0-world\r\n")
			_, _ = io.Copy(io.Discard, c)
		},
		"9000": func(c net.Conn) { // sums what it gets, and answers after the end
			n, _ := io.Copy(io.Discard, c)
			fmt.Fprintf(c, "%d\n", n)
		},
		"9001": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
	} {
		listener, err := net.Listen("tcp", publicHost+":"+port)
		if err != nil {
			return err
		}
		go accept(listener, func(c net.Conn) {
			visits.write("port %s", port)
			speak(c)
		})
	}
	return hole()
}

// listen waits until a new IPv6 address can be used.
func listen(address string) (net.Listener, error) {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		listener, err := net.Listen("tcp", address)
		if !errors.Is(err, unix.EADDRNOTAVAIL) || time.Since(begun) > patience {
			return listener, err
		}
	}
}

func accept(listener net.Listener, speak func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			speak(conn)
		}()
	}
}

// hole is a port that never answers: nobody accepts, and the queue is full.
func hole() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	addr := &unix.SockaddrInet4{Port: 81, Addr: [4]byte(net.ParseIP(publicHost).To4())}
	if err := errors.Join(unix.Bind(fd, addr), unix.Listen(fd, 0)); err != nil {
		return err
	}
	for range 4 {
		caller, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_ = unix.Connect(caller, addr)
	}
	return nil
}

func serveNames(conn net.PacketConn, asked *journal) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) == 0 {
			continue
		}
		q := m.Questions[0]
		name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
		asked.write("%s %s", name, strings.TrimPrefix(q.Type.String(), "Type"))
		if name == "silent.example" {
			continue
		}
		m.Response, m.Additionals = true, nil
		addresses, known := zone[name]
		if !known {
			m.RCode = dnsmessage.RCodeNameError
		}
		add := func(body dnsmessage.ResourceBody) {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}, Body: body,
			})
		}
		for _, text := range addresses {
			switch addr := netip.MustParseAddr(text); {
			case addr.Is4() && q.Type == dnsmessage.TypeA:
				add(&dnsmessage.AResource{A: addr.As4()})
			case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
				add(&dnsmessage.AAAAResource{AAAA: addr.As16()})
			}
		}
		switch {
		case known && q.Type == dnsmessage.TypeTXT:
			add(&dnsmessage.TXTResource{TXT: []string{"text of " + name}})
		case known && q.Type == dnsmessage.TypeMX:
			add(&dnsmessage.MXResource{Pref: 1, MX: dnsmessage.MustNewName("mail.example.")})
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

func certify(file string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "world"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"allowed.example", "*.allowed.example", "evil.example"}, IsCA: true,
		BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, os.WriteFile(file, text, 0o644)
}

// ask NAME TYPE asks the session's resolver over TCP, and prints the answer.
func ask(args []string) error {
	kinds := map[string]dnsmessage.Type{
		"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "TXT": dnsmessage.TypeTXT, "MX": dnsmessage.TypeMX,
		"PTR": dnsmessage.TypePTR, "HTTPS": 65, "CNAME": dnsmessage.TypeCNAME,
	}
	name, err := dnsmessage.NewName(args[0] + ".")
	if err != nil {
		return err
	}
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: name, Type: kinds[args[1]],
		Class: dnsmessage.ClassINET,
	}}}
	packed, err := m.Pack()
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", "198.18.0.2:53")
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...)); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	var length [2]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return err
	}
	answer := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(in, answer); err != nil {
		return err
	}
	if err := m.Unpack(answer); err != nil {
		return err
	}
	fmt.Print(strings.TrimPrefix(m.RCode.String(), "RCode"))
	for _, a := range m.Answers {
		switch body := a.Body.(type) {
		case *dnsmessage.AResource:
			fmt.Print(" ", netip.AddrFrom4(body.A))
		case *dnsmessage.AAAAResource:
			fmt.Print(" ", netip.AddrFrom16(body.AAAA))
		case *dnsmessage.TXTResource:
			fmt.Print(" ", strings.Join(body.TXT, ""))
		case *dnsmessage.MXResource:
			fmt.Print(" ", body.MX)
		case *dnsmessage.PTRResource:
			fmt.Print(" ", body.PTR)
		}
	}
	fmt.Println()
	return nil
}
