//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// storm HOLE GOOD N connects N times to a host that never answers, and meanwhile
// to one that does.
func storm(args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	unix.Close(fd)
	var started sync.WaitGroup
	for i := range n {
		started.Add(1)
		go func() {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|(i%2)*unix.SOCK_NONBLOCK, 0)
			started.Done()
			if err == nil {
				_ = unix.Connect(fd, to)
			}
		}()
	}
	started.Wait()
	for range 20 {
		conn, err := net.DialTimeout("tcp", args[1], patience)
		// Go's resolver waits for ten seconds, and a busy machine may need them.
		for try := 1; err != nil && try < 4; try++ {
			conn, err = net.DialTimeout("tcp", args[1], patience)
		}
		if err != nil {
			return err
		}
		conn.Close()
	}
	fmt.Println("connected")
	os.Exit(0) // without a wait for the others
	return nil
}

// lies are first bytes that some servers take for the beginning of TLS.
var lies = map[string]func(first []byte) []byte{
	"2.1": version(2, 1), "0.0": version(0, 0), "4.1": version(4, 1), "3.4": version(3, 4),
	"warning":            before(21, 3, 1, 0, 2, 1, 90), // user_canceled
	"change-cipher-spec": before(20, 3, 3, 0, 1, 1),
}

func version(major, minor byte) func([]byte) []byte {
	return func(first []byte) []byte {
		first[1], first[2] = major, minor
		return first
	}
}

func before(front ...byte) func([]byte) []byte {
	return func(first []byte) []byte { return append(front, first...) }
}

// helloTLS HOST:PORT SNI [long | LIE] asks for a name by TLS.
func helloTLS(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], patience)
	if err != nil {
		return err
	}
	config := &tls.Config{ServerName: args[1], InsecureSkipVerify: true}
	how := ""
	if len(args) > 2 {
		how = args[2]
	}
	if how == "long" { // a greeting of more than a record
		for i := range 150 {
			config.NextProtos = append(config.NextProtos, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 120)))
		}
	}
	client := tls.Client(&pieces{conn, lies[how]}, config)
	if err := client.Handshake(); err != nil && how != "long" {
		return err
	}
	fmt.Println("connected")
	return nil
}

// speak HOST:PORT listens first and then says something, as ssh does.
func speak(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], patience)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	answers := bufio.NewReader(conn)
	if _, err := answers.ReadString('\n'); err != nil {
		return err
	}
	if _, err := fmt.Fprint(conn, "SSH-2.0-client\r\n"); err != nil {
		return err
	}
	answer, err := answers.ReadString('\n')
	fmt.Print(answer)
	return err
}

// pieces writes in several segments, and changes what is written first.
type pieces struct {
	net.Conn
	change func([]byte) []byte // nil for nothing
}

func (p *pieces) Write(data []byte) (n int, err error) {
	if p.change != nil {
		data, p.change = p.change(slices.Clone(data)), nil
	}
	for len(data) > 0 {
		part := data[:min(len(data), 200)]
		if _, err := p.Conn.Write(part); err != nil {
			return n, err
		}
		n, data = n+len(part), data[len(part):]
	}
	return n, nil
}

// manyNames N HOST:PORT looks N names up while a connection lives, and uses that
// afterwards.
func manyNames(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", args[1])
	if err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(args[1])
	before := conn.RemoteAddr().(*net.TCPAddr).IP.String()
	var failed atomic.Int64
	var last atomic.Value // an error of those that failed
	last.Store("")
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < n; i += 8 {
				if err := findAddress(fmt.Sprintf("n%d.example", i)); err != nil {
					failed.Add(1)
					last.Store(fmt.Sprint(" (", err, ")"))
				}
			}
		})
	}
	all.Wait()
	list, err := net.LookupHost(host)
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte("echo")); err != nil {
		return err
	}
	got := make([]byte, 4)
	_, err = io.ReadFull(conn, got)
	fmt.Printf("%s, %d failed%s, same address: %v\n", got, failed.Load(), last.Load(), list[0] == before)
	return err
}

// findAddress looks a name up, again if no answer came in time: on a busy machine
// that says nothing about the sandbox.
func findAddress(name string) error {
	const tries = 20
	for try := 1; ; try++ {
		_, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip4", name)
		var failed *net.DNSError
		if !errors.As(err, &failed) || !failed.IsTimeout || try == tries {
			return err
		}
	}
}

// hear HOST:PORT prints the server's first line.
func hear(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], patience)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	text := make([]byte, 64)
	n, err := conn.Read(text)
	if err == nil {
		fmt.Println(strings.TrimSpace(string(text[:n])))
	}
	return err
}

// halves HOST:PORT sends much, ends its half, and prints the answer.
func halves(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], patience)
	if err != nil {
		return err
	}
	if _, err := io.Copy(conn, io.LimitReader(zeros{}, 20<<20)); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	text, err := io.ReadAll(conn)
	fmt.Print(string(text))
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// many HOST:PORT N holds N connections at a time, and uses each.
func many(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	var conns []net.Conn
	for range n {
		conn, err := net.DialTimeout("tcp", args[0], patience)
		if err != nil {
			return fmt.Errorf("connection %d: %w", len(conns), err)
		}
		conns = append(conns, conn)
	}
	for i, conn := range conns {
		if _, err := fmt.Fprintf(conn, "%06d", i); err != nil {
			return err
		}
		got := make([]byte, 6)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != fmt.Sprintf("%06d", i) {
			return fmt.Errorf("connection %d: %q, %w", i, got, err)
		}
	}
	fmt.Println("connected")
	return nil
}

// grab HOST:PORT… connects to each without end and without waiting, until
// nothing more is given. It prints how many connections it has to each, and the
// last error, and keeps them.
func grab(args []string) error {
	for _, target := range args {
		fd, to, err := open(target, unix.AF_INET, 0, 0)
		if err != nil {
			return err
		}
		unix.Close(fd)
		var mu sync.Mutex
		got, last := 0, error(nil)
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 100 {
					fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
					if err == nil {
						err = unix.Connect(fd, to)
					}
					mu.Lock()
					if err == nil || errors.Is(err, unix.EINPROGRESS) {
						got++
					} else {
						last = err
					}
					mu.Unlock()
					if last != nil {
						return
					}
				}
			})
		}
		all.Wait()
		fmt.Printf("%d to %s, then %v\n", got, target, last)
	}
	fmt.Println("holding")
	select {}
}

// hoard HOST:PORT N connects N times, reads so much of each connection that the
// kernel gives it a large buffer, and then nothing more of any.
func hoard(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	connections := make([]net.Conn, n)
	for i := range connections {
		if connections[i], err = net.DialTimeout("tcp", args[0], patience); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, connections[i], 4<<20); err != nil {
			return err
		}
	}
	fmt.Println("hoarding")
	return unix.Pause()
}

// leave HOST:PORT N connects N times to a silent host in non-blocking mode, and
// closes each connection.
func leave(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	unix.Close(fd)
	var failed atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range n / 8 {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
				if err == nil {
					err = unix.Connect(fd, to)
				}
				if !errors.Is(err, unix.EINPROGRESS) {
					failed.Add(1)
				}
				unix.Close(fd)
			}
		})
	}
	all.Wait()
	fmt.Printf("%d failed\n", failed.Load())
	return nil
}

// rounds HOST:PORT connects to an echo many times for each line of its input,
// and prints the median of the microseconds that one round takes.
func rounds(args []string) error {
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for lines.Scan() {
		var took []time.Duration
		for range 101 {
			begun := time.Now()
			conn, err := net.DialTimeout("tcp", args[0], patience)
			if err != nil {
				return err
			}
			_, err = conn.Write([]byte("echo"))
			if err == nil {
				_, err = io.ReadFull(conn, make([]byte, 4))
			}
			conn.Close()
			if err != nil {
				return err
			}
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		fmt.Printf("median %d.\n", took[len(took)/2].Microseconds())
	}
	return lines.Err()
}

// findRelay connects to whatever listens in the session, by Fast Open, which
// needs no connect.
func findRelay([]string) error {
	ports, err := listening()
	if err != nil {
		return err
	}
	tried, answers := 0, 0
	for _, port := range ports {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		tried++
		err = unix.Sendto(fd, []byte("GET / HTTP/1.0\r\n\r\n"), unix.MSG_FASTOPEN,
			&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
		if err == nil {
			if n, _ := unix.Read(fd, make([]byte, 1)); n > 0 {
				answers++
			}
		}
		unix.Close(fd)
	}
	fmt.Printf("%d tried, %d answers\n", tried, answers)
	return nil
}

// upgrade HOST:PORT begins in plain text and goes on by TLS, with a server's
// name that nobody allows.
func upgrade(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], patience)
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(conn)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	fmt.Fprint(conn, "STARTTLS\r\n")
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	secure := tls.Client(conn, &tls.Config{ServerName: "other.example", InsecureSkipVerify: true})
	text, err := io.ReadAll(secure)
	fmt.Print(string(text))
	return err
}

// connectShared HOST:PORT connects in one process, while another has the socket
// too, and waits for it.
func connectShared(args []string) error {
	fd, to, err := open(args[0], unix.AF_INET, 0, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	other := exec.Command("/proc/self/exe", "inherited")
	other.ExtraFiles, other.Stdout = []*os.File{file}, os.Stdout
	if err := other.Start(); err != nil {
		return err
	}
	connected := make(chan error, 1)
	go func() { connected <- unix.Connect(fd, to) }()
	if err := other.Wait(); err != nil {
		return err
	}
	return <-connected
}

// useInherited waits until another process has connected descriptor 3.
func useInherited([]string) error {
	const fd = 3
	for begun := time.Now(); time.Since(begun) < patience; {
		err := await(fd) // at once while nobody connects
		if _, unconnected := unix.Getpeername(fd); err != nil || unconnected == nil {
			return errors.Join(err, greet(fd))
		}
	}
	return errors.New("nobody connects")
}
