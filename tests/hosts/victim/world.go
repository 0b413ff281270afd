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

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// The world's hosts; see machines.go.
const (
	publicHost   = "93.184.216.34"
	privateHost  = "10.9.8.7"
	metadataHost = "169.254.169.254"
	ownAddress   = "93.184.216.1"
	host6        = "2606:2800:220:1::7"
	deniedHost   = "93.184.216.66"
	nameserver   = "127.0.0.53"
)

// zone has the addresses of names. A name that is not there does not exist.
// Nobody answers about silent.example, and about slow.example only after a
// while. flip.example leads to this machine from the second answer on. Answers
// about garbage.example are cut short.
var zone = map[string][]string{
	"allowed.example": {publicHost}, "api.allowed.example": {publicHost}, "evil.example": {publicHost},
	"rebound.example": {"127.0.0.1"}, "metadata.example": {metadataHost}, "private.example": {privateHost},
	"here.example": {ownAddress}, "mixed.example": {privateHost, publicHost}, "six.example": {host6},
	"unreachable.example": {"192.0.2.9"}, "intranet": {publicHost}, "registry.npmjs.org": {publicHost},
	"denied.example": {deniedHost}, "slow.example": {publicHost}, "xn--bcher-kva.example": {publicHost},
	"flip.example": {publicHost}, "garbage.example": {publicHost}, "routed.example": {routed},
}

// hostsFile has names of the machine's own.
const hostsFile = "127.0.0.1 localhost local.example\n" + privateHost + " listed.example\n" + publicHost +
	" public.example\n"

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
		command.SysProcAttr.AmbientCaps = []uintptr{
			unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW,
		}
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
	if err := errors.Join(interfaces(), impatient(), watchPackets(dir), resolver(dir), serve(dir)); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	command := exec.Command(args[1], args[2:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	ended := command.Run()
	return errors.Join(readRest(), exitAs(ended))
}

// resolver directs programs to the world's DNS server and names.
func resolver(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for path, content := range map[string]string{
		"/etc/resolv.conf": "nameserver " + nameserver + "\nsearch corp.example\noptions timeout:1 attempts:1\n",
		"/etc/hosts":       hostsFile,
	} {
		file := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		if err := unix.Mount(file, real, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
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

// mailboxes are where datagrams are noted.
var mailboxes = []string{publicHost + ":9002", "127.0.0.1:9002"}

// lastDatagram is what the world itself sends at its end.
const lastDatagram = "the last"

var readAll = make(chan struct{})

// readRest waits until the datagrams that have come are noted. The world ends
// with its command.
func readRest() error {
	for _, host := range mailboxes {
		conn, err := net.Dial("udp", host)
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte(lastDatagram))
		if err = errors.Join(err, conn.Close()); err != nil {
			return err
		}
		<-readAll
	}
	return nil
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
	for _, host := range mailboxes {
		box, err := listenDatagrams(host)
		if err != nil {
			return err
		}
		go receive(box, visits)
	}
	certificate, err := certify(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return err
	}
	for _, host := range []string{publicHost, privateHost, metadataHost, ownAddress, routed, "127.0.0.1", host6} {
		listener, err := listen(net.JoinHostPort(host, "80"))
		if err != nil {
			return err
		}
		go func() { _ = http.Serve(listener, web(host, visits)) }()
	}
	secure, err := listen(publicHost + ":443")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: web("tls", visits), TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	go func() { _ = server.ServeTLS(secure, "", "") }()
	early, err := listen(privateHost + ":443")
	if err != nil {
		return err
	}
	go accept(early, func(c net.Conn) {
		fmt.Fprint(c, "SSH-2.0-world\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		visits.write("port 443 %s", strings.TrimSpace(line))
		fmt.Fprint(c, "welcome\n")
	})
	shell, err := listen(publicHost + ":2222")
	if err != nil {
		return err
	}
	if err := serveSSH(shell, dir, visits); err != nil {
		return err
	}
	for port, speak := range map[string]func(net.Conn){
		"7": func(c net.Conn) { _, _ = io.Copy(c, c) },
		"22": func(c net.Conn) {
			fmt.Fprint(c, "SSH-2.0-world\r\n")
			_, _ = io.Copy(io.Discard, c)
		},
		"19": func(c net.Conn) { // sends without end
			for line := make([]byte, 64<<10); ; {
				if _, err := c.Write(line); err != nil {
					return
				}
			}
		},
		"9000": func(c net.Conn) { // sums what it gets, and answers after the end
			n, _ := io.Copy(io.Discard, c)
			fmt.Fprintf(c, "%d\n", n)
		},
		"2022": func(c net.Conn) { handOver(c, filepath.Join(dir, "sshd")) },
		"25":   func(c net.Conn) { startTLS(c, certificate) },
		"9001": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
	} {
		listener, err := listen(publicHost + ":" + port)
		if err != nil {
			return err
		}
		go accept(listener, func(c net.Conn) {
			visits.write("port %s", port)
			speak(c)
		})
	}
	return at(publicHost, hole)
}

// receive notes the datagrams that a mailbox gets.
func receive(box net.PacketConn, visits *journal) {
	buffer := make([]byte, 64)
	for {
		n, _, err := box.ReadFrom(buffer)
		if err != nil {
			return
		}
		if text := string(buffer[:n]); text != lastDatagram {
			visits.write("datagram %s", text)
			continue
		}
		readAll <- struct{}{}
	}
}

// listen listens on the machine that has the address.
func listen(address string) (listener net.Listener, err error) {
	err = at(netip.MustParseAddrPort(address).Addr().String(), func() error {
		listener, err = net.Listen("tcp", address)
		return err
	})
	return listener, err
}

// listenDatagrams is listen for UDP.
func listenDatagrams(address string) (conn net.PacketConn, err error) {
	err = at(netip.MustParseAddrPort(address).Addr().String(), func() error {
		conn, err = net.ListenPacket("udp", address)
		return err
	})
	return conn, err
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

// impatient lets the world's kernel give up a connection after 7 s instead of
// two minutes (tcp(7)).
func impatient() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_syn_retries", []byte("2"), 0) }

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
	flips := 0
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) == 0 {
			continue
		}
		name := strings.ToLower(strings.TrimSuffix(m.Questions[0].Name.String(), "."))
		asked.write("%s %s", name, strings.TrimPrefix(m.Questions[0].Type.String(), "Type"))
		addresses := zone[name]
		if name == "flip.example" && m.Questions[0].Type == dnsmessage.TypeA {
			if flips++; flips > 1 {
				addresses = []string{"127.0.0.1"}
			}
		}
		delay := time.Duration(0)
		switch name {
		case "silent.example":
			continue
		case "slow.example":
			delay = time.Second / 2
		}
		packed, err := answer(&m, name, addresses)
		if err != nil {
			continue
		}
		if name == "garbage.example" {
			packed = packed[:len(packed)-3]
		}
		time.AfterFunc(delay, func() { _, _ = conn.WriteTo(packed, from) })
	}
}

// answer turns a question into its answer.
func answer(m *dnsmessage.Message, name string, addresses []string) ([]byte, error) {
	q := m.Questions[0]
	_, known := zone[name]
	m.Response, m.Additionals = true, nil
	switch {
	case name == "broken.example":
		m.RCode = dnsmessage.RCodeServerFailure
	case !known:
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
	return m.Pack()
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
