// Package agent lets a session use the keys of an ssh-agent or a gpg-agent, and
// nothing else of it.
//
// [Listen] and [ListenGPG] make a socket that passes on requests to list keys
// and to sign with those that the session may use. It answers all others itself.
// See docs/design/ssh.md and docs/design/gpg.md.
package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Messages of the protocol (draft-ietf-sshm-ssh-agent, section 6.1).
const (
	failure           = 5
	success           = 6
	requestIdentities = 11
	identitiesAnswer  = 12
	signRequest       = 13
	signResponse      = 14
	extension         = 27
	extensionFailure  = 28
	extensionResponse = 29
)

const (
	// maxMessage is OpenSSH's own bound.
	maxMessage = 256 << 10
	// maxConnections bounds those of a session at one time.
	maxConnections = 32
	// dialTimeout is how long an agent may take to accept a connection.
	dialTimeout = 5 * time.Second
	// sessionBind tells the agent for which server a connection is. A key may
	// be limited to some servers, so this only takes away.
	sessionBind = "session-bind@openssh.com"
)

// refused names requests that are not passed on.
var refused = map[byte]string{
	17: "add a key", 18: "remove a key", 19: "remove all keys", 20: "add a key of a token",
	21: "remove the keys of a token", 22: "lock itself", 23: "unlock itself", 25: "add a key",
	26: "add a key of a token",
}

// Session is what a filter asks of the session that it is for. Its functions are
// called from several goroutines.
type Session struct {
	// Refused is called for each request that was not passed on, unless it was
	// about a key that may not be used.
	Refused func(what string)
	// MayUse reports whether a key may be used. It may take the time to ask the
	// user, until ctx ends because nobody waits for the answer any more.
	MayUse func(ctx context.Context, use Use) bool
}

// Use is one use of a key.
type Use struct {
	// Key is the key as policy.SigningKey has it.
	Key string
	// Purpose says what for: "to log in as" or "to sign for" what is named For,
	// which the session chose; "" if that is not known.
	Purpose, For string
	// Comment returns what the agent calls the key, or "". It may be called until
	// MayUse returns.
	Comment func() string
}

// Filter is a socket for one session.
type Filter struct {
	listener *net.UnixListener
	agent    string
	converse func(client net.Conn) // serves one client until it ends
	session  Session
	slots    chan struct{}

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]bool
	closed bool
	served sync.WaitGroup
}

// Listen makes the socket at a path, for the agent at another.
func Listen(path, agent string, session Session) (*Filter, error) {
	f := newFilter(agent, session)
	f.converse = f.serveSSH
	return f, f.listen(path)
}

func newFilter(agent string, session Session) *Filter {
	return &Filter{
		agent: agent, session: session, slots: make(chan struct{}, maxConnections), open: map[net.Conn]bool{},
	}
}

func (f *Filter) listen(path string) error {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen for clients of an agent: %w", err)
	}
	listener.SetUnlinkOnClose(false) // the directory goes; see usersocket.Listen
	if err := os.Chmod(path, 0o600); err != nil {
		listener.Close()
		return fmt.Errorf("listen for clients of an agent: %w", err)
	}
	f.listener = listener
	f.served.Go(f.accept)
	return nil
}

// Close ends all connections. A nil Filter is closed.
func (f *Filter) Close() {
	if f == nil || f.listener == nil {
		return
	}
	f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.open {
		c.Close()
	}
	f.mu.Unlock()
	f.served.Wait()
}

func (f *Filter) accept() {
	for {
		client, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(dialTimeout / 100) // out of descriptors, for a moment
			continue
		}
		select {
		case f.slots <- struct{}{}:
		default:
			client.Close()
			continue
		}
		f.served.Go(func() {
			defer func() { <-f.slots }()
			f.serve(client)
		})
	}
}

// keep notes an open connection, for Close. It returns false if that was called
// already.
func (f *Filter) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		c.Close()
		return false
	}
	f.open[c] = true
	return true
}

func (f *Filter) drop(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c)
	c.Close()
}

// serve answers one client until it ends, or something is wrong.
func (f *Filter) serve(client net.Conn) {
	if f.keep(client) {
		defer f.drop(client)
		f.converse(client)
	}
}

func (f *Filter) serveSSH(client net.Conn) {
	var agent net.Conn
	for {
		received, err := read(client)
		if err != nil {
			return
		}
		request, signing, what := judge(received)
		if request == nil {
			if what != "" {
				f.session.Refused(what)
			}
			if write(client, []byte{failure}) != nil {
				return
			}
			continue
		}
		if agent == nil {
			if agent, err = f.dial(); err != nil || !f.keep(agent) {
				return
			}
			defer f.drop(agent)
		}
		answer := []byte{failure}
		if signing == nil || f.maySign(client, agent, *signing) {
			answer, err = ask(agent, request)
		}
		if err != nil || write(client, answer) != nil {
			return
		}
	}
}

// dial connects to the agent. Whoever has taken its place must at least be the
// same user.
func (f *Filter) dial() (net.Conn, error) {
	c, err := net.DialTimeout("unix", f.agent, dialTimeout)
	if err != nil {
		return nil, err
	}
	if owner, err := peer(c.(*net.UnixConn)); err != nil || owner != os.Geteuid() && owner != 0 {
		c.Close()
		return nil, errors.Join(err, errors.New("the agent is another user's"))
	}
	return c, nil
}

// judge returns a request as it may pass: whole, with nothing behind it, and
// encoded here. It returns nil if it may not; what it is about is "" then if
// nobody needs to know. signing is set if the request is to sign.
func judge(received []byte) (request []byte, signing *signing, what string) {
	switch kind, rest := received[0], received[1:]; kind {
	case requestIdentities:
		if len(rest) == 0 {
			request = []byte{requestIdentities}
		}
		return request, nil, ""
	case signRequest:
		asked, ok := parseSigning(rest)
		if !ok {
			return nil, nil, ""
		}
		return asked.request(), &asked, ""
	case extension:
		return bindRequest(rest), nil, ""
	default:
		if what = refused[kind]; what == "" {
			what = fmt.Sprintf("do what is not known (%d)", kind)
		}
		return nil, nil, what
	}
}

// bindRequest is a request to bind a connection to a server (PROTOCOL.agent of
// OpenSSH), encoded anew; nil for other extensions, and for more or less.
func bindRequest(rest []byte) []byte {
	fields, rest, ok := cutStrings(rest, 4) // name, server's key, session, signature
	if !ok || string(fields[0]) != sessionBind || len(rest) != 1 || rest[0] > 1 {
		return nil
	}
	request := []byte{extension}
	for _, field := range fields {
		request = appendString(request, field)
	}
	return append(request, rest[0])
}

// answers are the messages that may follow a request.
var answers = map[byte][]byte{
	requestIdentities: {identitiesAnswer, failure},
	signRequest:       {signResponse, failure},
	extension:         {success, failure, extensionFailure, extensionResponse},
}

// ask passes a request on. The agent may ask the user, so the answer can take
// any time; Close ends it.
func ask(agent net.Conn, request []byte) ([]byte, error) {
	if err := write(agent, request); err != nil {
		return nil, err
	}
	answer, err := read(agent)
	if err != nil {
		return nil, err
	}
	for _, kind := range answers[request[0]] {
		if answer[0] == kind {
			return answer, nil
		}
	}
	return nil, errors.New("the agent answers something else")
}

// read returns the next message, which is not empty.
func read(c net.Conn) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > maxMessage {
		return nil, errors.New("a message of no or too many bytes")
	}
	message := make([]byte, size)
	_, err := io.ReadFull(c, message)
	return message, err
}

func write(c net.Conn, message []byte) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	return err
}

// control calls a function with the connection's descriptor.
func control(c *net.UnixConn, call func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = call(int(fd)) }); err != nil {
		return err
	}
	return failed
}
