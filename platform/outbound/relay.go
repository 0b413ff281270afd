package outbound

import (
	"io"
	"net"
	"slices"
	"time"
)

// Relay copies between a client and a host until both have ended, and closes
// both connections. The end of one direction leaves the other open. If the
// client begins with TLS, allowed is asked about the server's name in it; the
// name is empty if there is none. Without consent, or if the name cannot be
// read, nothing reaches the host, and the client's connection is reset. The
// result is the refused name then.
func Relay(client, host *net.TCPConn, allowed func(name string) bool) (refused string, ok bool) {
	r := &relay{client: client, host: host}
	back := make(chan bool, 1)
	go func() { back <- r.download() }()
	refused, ok = r.greet(allowed)
	clean := ok && r.upload()
	if !ok {
		host.Close() // which ends download
	}
	clean = <-back && clean
	if !clean {
		_ = client.SetLinger(0) // a reset, as the host would have sent
		_ = host.SetLinger(0)
	}
	client.Close()
	host.Close()
	return refused, ok
}

type relay struct{ client, host *net.TCPConn }

// greet passes the client's first bytes on. It returns false if it must not.
func (r *relay) greet(allowed func(string) bool) (name string, ok bool) {
	buffer := make([]byte, typicalHelloBytes)
	n, need := 0, 0
	for {
		read, err := r.client.Read(buffer[n:])
		n += read
		if n == 0 {
			return "", true // upload finds the same
		}
		if n < need && err == nil {
			continue
		}
		var what greeting
		what, name, need = greet(buffer[:n])
		switch {
		case what == tlsMalformed, what == tlsHello && !allowed(name), need > maxGreeting, what == unfinished && err != nil:
			return name, false
		case what == unfinished:
			buffer = slices.Grow(buffer[:n], need-n)[:need]
		default:
			_, _ = r.host.Write(buffer[:n]) // upload finds the same error
			return name, true
		}
	}
}

// upload copies from the client to the host. It returns false after an error.
func (r *relay) upload() bool {
	_, err := io.Copy(r.host, r.client)
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
	_, err := io.Copy(r.client, r.host)
	if err == nil {
		err = r.client.CloseWrite()
	}
	if err != nil {
		_ = r.client.SetLinger(0)
		r.client.Close() // which ends upload
	}
	return err == nil
}
