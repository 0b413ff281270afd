//go:build unix

package control

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

const (
	// maxConnections bounds the connections at once, unless Options say more.
	maxConnections = 32
	// maxFull bounds those beyond that, on which no command is started. More are
	// closed at once.
	maxFull = 32
	// requestTimeout bounds the wait for a request.
	requestTimeout = 5 * time.Second
	// acceptPause keeps a failing accept(2) from taking all time.
	acceptPause = 100 * time.Millisecond
)

// Options say who listens.
type Options struct {
	// By is the command that this process was started with.
	By string
	// Client returns the name of the program that is served; nil if there is none.
	Client func() string
	// Spawner starts the sessions.
	Spawner *spawn.Spawner
	// Logger gets who was refused.
	Logger *slog.Logger
	// Connections bounds the connections at once that start commands; 0 is for few.
	Connections int
	// Admit refuses the commands of some links, by the error: of a process, which
	// has found this one at a place. Narrate returns who describes one that is about
	// to start. If they are nil, links are refused.
	Admit   func(pid int, place string) error
	Narrate func(spawn.Joining) Narrator
	// Retire has a shared sandbox end once nothing runs in it. If idle is true, it
	// ends now, or the error says that something runs in it. The error may also be
	// that it is none which is kept for links. If Retire is nil, none is.
	Retire func(sandbox string, idle bool) error
	// Silent is called once nothing more can be started in a shared sandbox, as the
	// process there that would do so does not answer; nil: nothing is done.
	Silent func(sandbox string)

	patience time.Duration // in place of requestTimeout, for tests
}

// Narrator describes a command to the user who has started it, once it has started
// and once it has ended. Its texts are lines that are ready to be printed.
type Narrator interface {
	Began(*spawn.Background) string
	Ended(*spawn.Background) string
}

// Listener answers other processes of the user.
type Listener struct {
	options Options
	socket  string
	net     *net.UnixListener
	remove  func()

	serving sync.WaitGroup
	mu      sync.Mutex // guards the fields below
	conns   map[*usersocket.Conn]bool
	joining int           // commands whose end was not answered yet
	drained chan struct{} // closed once there is none; nil if Finish does not wait
	closed  bool
}

// Listen makes the socket in a private directory just below the state directory,
// which remove removes, and answers there until Close.
func Listen(dir string, remove func(), options Options) (*Listener, error) {
	socket, err := usersocket.Listen(dir, name)
	if err != nil {
		return nil, fmt.Errorf("listen for other processes: %w", err)
	}
	l := &Listener{
		options: options, socket: filepath.Join(dir, name), net: socket, remove: remove,
		conns: map[*usersocket.Conn]bool{},
	}
	l.serving.Go(l.accept)
	return l, nil
}

// Socket is the path of the socket, for At.
func (l *Listener) Socket() string { return l.socket }

// Finish takes no more connections, and waits until the end of every command was
// answered, or until it is too late. A sandbox may end with its last command, which
// says only then how it has ended and what it was refused.
func (l *Listener) Finish(atMost time.Duration) {
	l.net.Close()
	drained := make(chan struct{})
	l.mu.Lock()
	if l.joining == 0 {
		close(drained)
	} else {
		l.drained = drained
	}
	l.mu.Unlock()
	late := time.NewTimer(atMost)
	defer late.Stop()
	select {
	case <-drained:
	case <-late.C:
	}
}

// begin counts a command whose end is to be answered, until end is called.
func (l *Listener) begin() (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joining++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.joining--; l.joining == 0 && l.drained != nil {
			close(l.drained)
			l.drained = nil
		}
	})
}

// Close ends every connection, and removes the socket.
func (l *Listener) Close() {
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.net.Close()
	l.serving.Wait()
	l.remove()
}

func (l *Listener) accept() {
	for {
		c, err := l.net.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.options.Logger.Warn("other processes are not answered", "error", err)
			time.Sleep(acceptPause) // such as too many open files
			continue
		}
		l.admit(c)
	}
}

func (l *Listener) admit(c *net.UnixConn) {
	pid, err := usersocket.Peer(c)
	if err != nil {
		c.Close()
		l.options.Logger.Info("a process was not answered", "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	most := cmp.Or(l.options.Connections, maxConnections)
	if l.closed || len(l.conns) >= most+maxFull {
		c.Close()
		return
	}
	full := 0
	if len(l.conns) >= most {
		full = most
	}
	conn := usersocket.NewConn(c, maxMessage)
	conn.TakeFiles(streams)
	l.conns[conn] = true
	l.serving.Go(func() {
		defer func() {
			conn.Close()
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.conns, conn)
		}()
		l.serve(conn, pid, full)
	})
}

// serve answers the one request of a connection of a process. If full is not 0, so
// many others have a connection, and no command is started.
func (l *Listener) serve(c *usersocket.Conn, pid, full int) {
	_ = c.ReceiveBefore(time.Now().Add(cmp.Or(l.options.patience, requestTimeout)))
	var message json.RawMessage
	err := c.Receive(&message)
	var asked request
	if err == nil {
		asked, err = parse(message)
	}
	if err != nil {
		l.options.Logger.Info("a process was not answered", "error", err)
		return
	}
	switch {
	case asked.List != nil: // of any version: it is the same in all
		_ = c.Send(reply{Runs: l.runs()})
	case asked.Version != version:
		refusal := fmt.Sprintf("it speaks version %d, and this program version %d", version, asked.Version)
		_ = c.Send(reply{Refused: refusal})
	case asked.Join != nil && full > 0:
		_ = c.Send(reply{Refused: fmt.Sprintf("it has no room: %d others are connected", full)})
	case asked.Join != nil:
		l.join(c, pid, asked.Join)
	case asked.Retire != nil:
		err := ErrNoLinks
		if l.options.Retire != nil {
			err = l.options.Retire(asked.Retire.Sandbox, asked.Retire.Idle)
		}
		answer := reply{Retired: err == nil}
		if err != nil {
			answer.Refused = err.Error()
		}
		_ = c.Send(answer)
	default:
		_ = c.Send(reply{Refused: "the request asks for nothing"})
	}
}

// runs describes what runs, oldest first. What does not fit into a message is
// counted.
func (l *Listener) runs() *Supervisor {
	s := &Supervisor{PID: os.Getpid(), By: l.options.By, Sessions: []Session{}}
	if l.options.Client != nil {
		s.Client = l.options.Client()
	}
	listed := l.options.Spawner.List()
	slices.SortFunc(listed, func(a, b spawn.Listed) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	size := 0
	for i, one := range listed {
		described := describe(one)
		text, err := json.Marshal(described)
		if size += len(text) + 1; err != nil || size > maxMessage/2 {
			s.More = len(listed) - i
			break
		}
		s.Sessions = append(s.Sessions, described)
	}
	return s
}

func describe(l spawn.Listed) Session {
	kind := protocol.Terminal
	if l.Tool {
		kind = protocol.Tool
	}
	return Session{
		ID: l.ID, Kind: kind, Shared: l.Shared, Sandbox: l.In, Joined: l.Joined, Group: l.Group,
		ProjectDir: l.Project, Cwd: l.Dir,
		Argv: l.Argv, PID: l.PID, StartedAt: l.StartedAt, Background: l.Background,
		Status: presentation.Sandbox(l.Restricted, l.Outcome, nil).Status,
	}
}
