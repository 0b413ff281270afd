package credentials

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
)

// Room is the program that has the secrets of one session, or of those that share a
// sandbox. It may be used from several goroutines.
type Room struct {
	channel *Channel
	rules   *hosts.Rules
	report  func(Event)
	process *exec.Cmd
	ended   chan struct{} // closed when the program has

	mu     sync.Mutex // guards what follows
	last   uint64     // number of a connection
	open   map[uint64]chan struct{}
	closed bool
}

// prepareTime is how long the program may take before the session starts. It reads
// files, and runs nothing of the user's.
const prepareTime = 20 * time.Second

// Open starts the program at a path, and returns what a session has in the place of
// the wanted secrets. report is called from one goroutine, and must not block.
func Open(ctx context.Context, path string, order Order, report func(Event)) (*Room, Given, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, Given{}, fmt.Errorf("make a pair of sockets: %w", err)
	}
	for _, fd := range pair {
		unix.CloseOnExec(fd)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "room"), os.NewFile(uintptr(pair[1]), "room")
	channel, err := FromFile(ours)
	if err != nil {
		theirs.Close()
		return nil, Given{}, err
	}
	r := &Room{channel: channel, report: report, ended: make(chan struct{}), open: map[uint64]chan struct{}{}}
	r.process = exec.Command(path)
	r.process.Args, r.process.ExtraFiles = []string{Program}, []*os.File{theirs}
	r.process.Env = []string{}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} { // whom hosts are checked by
		if value, is := os.LookupEnv(name); is {
			r.process.Env = append(r.process.Env, name+"="+value)
		}
	}
	r.process.Dir = "/"
	// The keys that end a terminal's program do not end it.
	r.process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = r.process.Start()
	theirs.Close()
	if err != nil {
		channel.Close()
		return nil, Given{}, fmt.Errorf("start %s: %w", Program, err)
	}
	given, err := r.begin(ctx, order)
	if err == nil {
		_, r.rules, err = ParseHosts(given.Hosts)
	}
	if err != nil {
		r.Close()
		return nil, Given{}, err
	}
	return r, given, nil
}

// begin gives the program its order. From then on a goroutine hears it.
func (r *Room) begin(ctx context.Context, order Order) (Given, error) {
	first := make(chan Given, 1)
	failed := make(chan error, 1)
	go func() {
		defer close(r.ended)
		err := r.hear(first)
		failed <- err
		_ = r.channel.Close()
		_ = r.process.Wait()
	}()
	if err := r.channel.Send(Message{Order: &order}); err != nil {
		return Given{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTime)
	defer cancel()
	select {
	case given := <-first:
		return given, nil
	case err := <-failed:
		return Given{}, fmt.Errorf("%s has ended: %w", Program, err)
	case <-ctx.Done():
		return Given{}, fmt.Errorf("%s does not answer: %w", Program, ctx.Err())
	}
}

// hear receives until the program ends.
func (r *Room) hear(first chan<- Given) error {
	begun := false
	for {
		m, _, err := r.channel.Receive()
		switch {
		case err != nil:
			return err
		case m.Given != nil && !begun:
			begun = true
			first <- *m.Given
		case m.Event != nil && begun:
			r.report(*m.Event)
		case m.Ended != 0 && begun:
			r.forget(m.Ended)
		default:
			return errors.New("it has said something unexpected")
		}
	}
}

func (r *Room) forget(number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ended := r.open[number]; ended != nil {
		close(ended)
		delete(r.open, number)
	}
}

// Opens reports whether the TLS of connections to a host is opened.
func (r *Room) Opens(name string, port uint16) bool { return r.rules.Name(name, port) }

// Serve hands a client's connection and the one to its host over, and returns
// when both have ended, or ctx has. It closes them. If the program has ended,
// the client's is reset.
func (r *Room) Serve(ctx context.Context, client, host *net.TCPConn, name string, port uint16) {
	ended, err := r.pass(client, host, name, port)
	if err != nil {
		_ = client.SetLinger(0)
	}
	client.Close() // the program has copies
	host.Close()
	if err == nil {
		select {
		case <-ended:
		case <-r.ended:
		case <-ctx.Done():
		}
	}
}

func (r *Room) pass(client, host *net.TCPConn, name string, port uint16) (ended chan struct{}, err error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, net.ErrClosed
	}
	r.last++
	number := r.last
	ended = make(chan struct{})
	r.open[number] = ended
	r.mu.Unlock()
	defer func() {
		if err != nil {
			r.forget(number)
		}
	}()
	first, err := client.SyscallConn()
	if err != nil {
		return nil, err
	}
	second, err := host.SyscallConn()
	if err != nil {
		return nil, err
	}
	message := Message{Connection: &Connection{Number: number, Name: name, Port: port}}
	failed := first.Control(func(one uintptr) {
		controlled := second.Control(func(other uintptr) { err = r.channel.Send(message, int(one), int(other)) })
		err = errors.Join(err, controlled)
	})
	return ended, errors.Join(err, failed)
}

// Close ends the program, and with it all connections.
func (r *Room) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	_ = r.channel.Close()
	select {
	case <-r.ended:
		return
	case <-time.After(sendTime):
	}
	_ = r.process.Process.Kill()
	<-r.ended
}
