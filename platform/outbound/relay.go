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
// refused. Without a judge all bytes are copied.
func Relay(client, host *net.TCPConn, judge *Judge) *Refusal {
	r := &relay{client: client, host: host}
	back := make(chan bool, 1)
	go func() { back <- r.download() }()
	var refusal *Refusal
	if judge != nil {
		refusal = r.greet(judge)
	}
	clean := refusal == nil && r.upload()
	if refusal != nil {
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

type relay struct{ client, host *net.TCPConn }

// greet passes the client's first bytes on, unless the judge refuses them.
func (r *relay) greet(judge *Judge) *Refusal {
	var g greeting
	buffer := make([]byte, typicalHelloBytes)
	n := 0
	for {
		read, err := r.client.Read(buffer[n:])
		n += read
		if n == 0 {
			return nil // upload finds the same
		}
		refusal, done := judge.judge(&g, buffer[:n])
		switch {
		case refusal != nil:
			return refusal
		case done:
			_, _ = r.host.Write(buffer[:n]) // upload finds the same error
			return nil
		case err != nil:
			return &Refusal{Target: judge.To.String(), Greeting: "a hello without its end"}
		case n == len(buffer):
			buffer = append(buffer, make([]byte, n)...)
		}
	}
}

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
	err := pump(r.client, r.host)
	if err == nil {
		err = r.client.CloseWrite()
	}
	if err != nil {
		_ = r.client.SetLinger(0)
		r.client.Close() // which ends upload
	}
	return err == nil
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
		if err := awaitBytes(raw); err != nil {
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
func awaitBytes(raw syscall.RawConn) error {
	var failed error
	err := raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, failed = unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return !errors.Is(failed, unix.EAGAIN)
	})
	return errors.Join(err, failed)
}
