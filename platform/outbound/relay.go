package outbound

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Relay copies between a client and a host until both have ended, and closes
// both connections. The end of one direction leaves the other open. The judge
// decides about the client's first bytes. If it refuses them, nothing reaches
// the host, the client's connection is reset, and the result says what was
// refused. Without a judge all bytes are copied. A connection that ends before
// the judge has decided is reset, and the result is nil.
func Relay(client, host *net.TCPConn, judge *Judge) *Refusal {
	r := &relay{client: client, host: host, answered: make(chan struct{}), judged: judge != nil}
	back := make(chan bool, 1)
	go func() { back <- r.download() }()
	var refusal *Refusal
	failed := error(nil)
	if judge != nil {
		refusal, failed = r.greet(judge)
	}
	clean := refusal == nil && failed == nil && r.upload()
	if refusal != nil || failed != nil {
		host.Close() // which ends download
	}
	clean = <-back && clean
	if !clean {
		_ = client.SetLinger(0) // a reset, as the host would have sent
		_ = host.SetLinger(0)
	}
	client.Close()
	host.Close()
	return refusal
}

// Copy does what Relay does, whatever the bytes are.
func Copy(client, host *net.TCPConn) {
	Relay(client, host, nil)
}

type relay struct {
	client, host *net.TCPConn
	judged       bool
	answered     chan struct{} // closed when outcome is set
	outcome      outcome
}

// greet passes the client's first bytes on, unless the judge refuses them. The
// error is one of the connection.
func (r *relay) greet(judge *Judge) (*Refusal, error) {
	var g greeting
	var first *hello
	data, refusal, err := r.gather(nil, func(data []byte) (refusal *Refusal, done bool) {
		first, refusal, done = judge.judge(&g, data)
		return refusal, done
	})
	switch {
	case refusal != nil:
		return refusal, nil
	case len(data) == 0 && errors.Is(err, io.EOF):
		return nil, nil // upload finds the end, too
	case err != nil:
		return nil, err // nobody was asked for
	case first == nil:
		_, _ = r.host.Write(data) // upload finds the same error
		return nil, nil
	}
	// What a client sends before the server's answer is held: it could be a
	// second hello.
	_, _ = r.host.Write(data[:first.size])
	return r.follow(judge, *first, data[first.size:])
}

// follow waits for the server's answer to the hello, once the client sends more,
// and judges what that is.
func (r *relay) follow(judge *Judge, first hello, held []byte) (*Refusal, error) {
	if len(held) == 0 {
		raw, err := r.client.SyscallConn()
		if err != nil {
			return nil, err
		}
		if ended, err := awaitBytes(raw); ended || err != nil {
			return nil, err
		}
	}
	<-r.answered
	if r.outcome == unknown {
		return nil, errNoAnswer
	}
	for {
		var skipped int
		var known bool
		data, refusal, err := r.gather(held, func(data []byte) (refusal *Refusal, done bool) {
			skipped, refusal, known = judge.further(first, r.outcome, data)
			return refusal, known || skipped > 0
		})
		switch {
		case refusal != nil:
			return refusal, nil
		case len(data) == 0 && errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, errTooLong):
			return judge.refuse("in the second hello, " + tooLong), nil
		case err != nil:
			return nil, err
		case known:
			_, _ = r.host.Write(data) // upload finds the same error
			return nil, nil
		}
		if _, err := r.host.Write(data[:skipped]); err != nil {
			return nil, err
		}
		held = data[skipped:]
	}
}

// gather reads from the client until enough reports that the bytes suffice, or
// refuses them. They begin with those that were read before.
func (r *relay) gather(before []byte, enough func([]byte) (*Refusal, bool)) ([]byte, *Refusal, error) {
	buffer := make([]byte, max(typicalHelloBytes, len(before)))
	n := copy(buffer, before)
	for {
		if n > 0 {
			if refusal, done := enough(buffer[:n]); refusal != nil || done {
				return buffer[:n], refusal, nil
			}
		}
		if n == len(buffer) {
			if n >= maxGreeting {
				return nil, nil, errTooLong
			}
			buffer = append(buffer, make([]byte, n)...)
		}
		read, err := r.client.Read(buffer[n:])
		if n += read; read == 0 && err != nil {
			return buffer[:n], nil, err
		}
	}
}

var (
	errTooLong  = errors.New("too many bytes before the end of a hello")
	errNoAnswer = errors.New("the host has ended before its answer")
)

// upload copies from the client to the host. It returns false after an error.
func (r *relay) upload() bool {
	err := pump(r.host, r.client)
	if err == nil {
		err = r.host.CloseWrite()
	}
	if err != nil {
		// The host may have answered before it refused the rest.
		_ = r.host.SetReadDeadline(time.Now().Add(lastWords))
	}
	return err == nil
}

// lastWords is the time for an answer after the client's bytes cannot be passed
// on any more.
const lastWords = 5 * time.Second

// download copies from the host to the client.
func (r *relay) download() bool {
	err := r.observe()
	if err == nil {
		err = pump(r.client, r.host)
	}
	if err == nil {
		err = r.client.CloseWrite()
	}
	if err != nil {
		_ = r.client.SetLinger(0)
		r.client.Close() // which ends upload
	}
	return err == nil
}

// observe passes the server's first bytes on until they say what the client may
// send next.
func (r *relay) observe() error {
	if !r.judged {
		return nil
	}
	defer close(r.answered)
	raw, err := r.host.SyscallConn()
	if err != nil {
		return err
	}
	var a answer
	for r.outcome == unknown {
		if ended, err := awaitBytes(raw); ended || err != nil {
			return err // pump finds the end
		}
		piece, free := borrow(false)
		n, err := r.host.Read(piece)
		r.outcome = a.next(piece[:n])
		if _, failed := r.client.Write(piece[:n]); failed != nil {
			err = failed
		}
		free()
		if err != nil {
			return err
		}
	}
	return nil
}

// buffers are for what is on its way. A connection that is idle has none, and
// one whose receiver does not read has one for each direction.
var buffers = sync.Pool{New: func() any { return new([pieceSize]byte) }}

const pieceSize = 32 << 10

// A direction that fills its piece gets a large one for the next, if one is
// free. They are bounded, since a receiver that does not read keeps its own.
var largePieces = make(chan *[largeSize]byte, mostLarge)

const largeSize, mostLarge = 256 << 10, 32

func init() {
	for range mostLarge {
		largePieces <- nil // made when it is needed
	}
}

// borrow returns a buffer, and what to call once it is not needed any more.
func borrow(large bool) (piece []byte, free func()) {
	if large {
		select {
		case big := <-largePieces:
			if big == nil {
				big = new([largeSize]byte)
			}
			return big[:], func() { largePieces <- big }
		default:
		}
	}
	small := buffers.Get().(*[pieceSize]byte)
	return small[:], func() { buffers.Put(small) }
}

// pump copies until from has ended. splice(2) takes as much time as copying
// large pieces, and two more descriptors for each direction.
func pump(to, from *net.TCPConn) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	filled := false
	for {
		if _, err := awaitBytes(raw); err != nil {
			return err
		}
		piece, free := borrow(filled)
		n, err := from.Read(piece)
		filled = n >= pieceSize
		if n > 0 {
			if _, failed := to.Write(piece[:n]); failed != nil {
				err = failed
			}
		}
		free()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// awaitBytes waits until a connection can be read, or has ended. The error is
// the connection's own, which the kernel reports only once.
func awaitBytes(raw syscall.RawConn) (ended bool, err error) {
	var failed error
	n := 0
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		n, _, failed = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(failed, unix.EAGAIN)
	})
	err = errors.Join(err, failed)
	return err == nil && n == 0, err
}
