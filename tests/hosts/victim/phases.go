//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// phase is a command, and what the servers for names were asked while it ran.
type phase struct {
	Name     string
	UID, GID uint32
	Args     []string

	Output, Errors string
	Failed         string // why the command has not succeeded
	Asked          []string
}

// otherServer is a DNS server that the machine's configuration does not name.
const otherServer = "93.184.216.53"

// daemons are the sockets of programs that look names up for others.
var daemons = map[string]string{
	"resolved": "/run/systemd/resolve/io.systemd.Resolve", "nscd": "/run/nscd/socket",
}

// phases PHASES [DAEMON…] runs commands one after the other in this network
// namespace, and prints with each what the servers for names were asked meanwhile.
// The argument and the output are JSON. Names of the commands' arguments exist if
// they end in .evil.example.
func phases(args []string) error {
	runtime.LockOSThread() // the commands end with this thread
	var list []phase
	if err := json.Unmarshal([]byte(args[0]), &list); err != nil {
		return err
	}
	for _, p := range list {
		for _, name := range p.Args {
			if strings.HasSuffix(name, ".evil.example") {
				zone[name] = []string{publicHost}
			}
		}
	}
	if err := interfaces(); err != nil {
		return err
	}
	d := &desk{ended: make(chan struct{})}
	if err := d.open(args[1:]); err != nil {
		return err
	}
	for i := range list {
		if err := d.run(&list[i]); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(list)
}

// desk has the servers for names, and notes what they are asked.
type desk struct {
	servers []net.Addr
	ended   chan struct{} // gets one element for each lastQuestion

	mu    sync.Mutex // guards asked
	asked []string   // each "WAY NAME"
}

// lastQuestion is what each server is asked at the end of a phase. Each answers one
// question after the other, so it has noted all others then.
const lastQuestion = "the phase has ended"

func (d *desk) note(way, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, way+" "+name)
}

func (d *desk) open(names []string) error {
	for _, port := range []string{"53", "853", "5353"} {
		for prefix, host := range map[string]string{"": nameserver, "public-": otherServer} {
			conn, err := listenDatagrams(net.JoinHostPort(host, port))
			if err != nil {
				return err
			}
			go d.serveDatagrams(conn, prefix+"udp-"+port)
			listener, err := listen(net.JoinHostPort(host, port))
			if err != nil {
				return err
			}
			go d.serveStreams(listener, prefix+"tcp-"+port, d.answerStream)
			d.servers = append(d.servers, conn.LocalAddr(), listener.Addr())
		}
	}
	for _, name := range names {
		path := daemons[name]
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		listener, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
		go d.serveStreams(listener, name, d.answerText)
		d.servers = append(d.servers, listener.Addr())
	}
	web, err := listen(publicHost + ":80")
	if err != nil {
		return err
	}
	go accept(web, d.greetVisitor)
	return nil
}

// run runs the command of a phase, and notes what was asked until it ended.
func (d *desk) run(p *phase) error {
	command := exec.Command(p.Args[0], p.Args[1:]...)
	var output, failures bytes.Buffer
	command.Stdout, command.Stderr = &output, &failures
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if p.UID != 0 {
		command.SysProcAttr.Credential = &syscall.Credential{Uid: p.UID, Gid: p.GID}
	}
	if err := command.Run(); err != nil {
		p.Failed = err.Error()
	}
	p.Output, p.Errors = output.String(), failures.String()
	for _, server := range d.servers {
		if err := d.end(server); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p.Asked, d.asked = d.asked, nil
	return nil
}

// end asks a server the last question of a phase.
func (d *desk) end(server net.Addr) error {
	conn, err := net.DialTimeout(server.Network(), server.String(), patience)
	if err != nil {
		return err
	}
	question := []byte(lastQuestion)
	if server.Network() == "tcp" {
		question = framed(question)
	}
	if _, err = conn.Write(question); err == nil {
		<-d.ended
	}
	return errors.Join(err, conn.Close())
}

// framed puts the length in front of a message, as over TCP.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

// readFramed reads such a message.
func readFramed(in io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(in, message)
	return message, err
}

func (d *desk) serveDatagrams(conn net.PacketConn, way string) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if packed := d.answer(way, buffer[:n]); packed != nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

// serveStreams serves one connection after the other.
func (d *desk) serveStreams(listener net.Listener, way string, speak func(net.Conn, string)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		speak(conn, way)
		conn.Close()
	}
}

// answerStream answers one question by TCP. It also notes a connection without one.
func (d *desk) answerStream(conn net.Conn, way string) {
	message, _ := readFramed(conn)
	if packed := d.answer(way, message); packed != nil {
		_, _ = conn.Write(framed(packed))
	}
}

// answer notes a message to a DNS server, and returns the answer; nil for none.
func (d *desk) answer(way string, message []byte) []byte {
	if string(message) == lastQuestion {
		d.ended <- struct{}{}
		return nil
	}
	var m dnsmessage.Message
	if m.Unpack(message) != nil || len(m.Questions) == 0 {
		d.note(way, fmt.Sprintf("%q", message))
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(m.Questions[0].Name.String(), "."))
	d.note(way, name)
	packed, err := answer(&m, name, zone[name])
	if err != nil {
		return nil
	}
	return packed
}

// hostName finds the name of a host in a request to a daemon.
var hostName = regexp.MustCompile(`[a-z0-9-]+(\.[a-z0-9-]+)*\.example`)

// heard is what a daemon answers. No program takes it for an answer, so it asks
// the DNS servers next.
const heard = "heard"

// answerText notes a request to a daemon that looks names up. Requests about users
// have no name of a host, and are not noted.
func (d *desk) answerText(conn net.Conn, way string) {
	buffer := make([]byte, 4096)
	n, _ := conn.Read(buffer)
	text := string(buffer[:n])
	if text == lastQuestion {
		d.ended <- struct{}{}
		return
	}
	if name := hostName.FindString(text); name != "" {
		d.note(way, name)
		_, _ = conn.Write([]byte(heard))
	}
}

// welcome is what the host says to those who say whom they wanted to visit.
const welcome = "welcome\n"

// greetVisitor notes a visit. A client waits for the answer, so that is before its
// phase ends.
func (d *desk) greetVisitor(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(patience))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	d.note("tcp-80", strings.TrimSpace(line))
	_, _ = conn.Write([]byte(welcome))
}
