package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// Client is one connection to a sidecar. Its methods may be called from several
// goroutines.
type Client struct {
	conn    *jsonrpc2.Conn
	process *exec.Cmd     // nil for a client of New
	last    atomic.Uint64 // the id of the last request

	mu       sync.Mutex // guards the fields below
	handlers map[string]func(json.RawMessage)
	output   func(protocol.OutputParams) // the handler of terminal/output, if there is one
	answers  map[string]func(json.RawMessage) any
}

// Error is the error in an answer.
type Error struct {
	Code    protocol.Code
	Message string
	Data    protocol.ErrorData
}

// Error is the message with the code, and the hint if there is one.
func (e *Error) Error() string {
	if e.Data.Hint == "" {
		return fmt.Sprintf("%s (%d)", e.Message, e.Code)
	}
	return fmt.Sprintf("%s (%d); %s", e.Message, e.Code, e.Data.Hint)
}

// Start runs the command and connects to it. The command must not have a stdin
// or a stdout yet.
func Start(command *exec.Cmd) (*Client, error) {
	in, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start sidecar: %w", err)
	}
	c := New(in, out)
	c.process = command
	return c, nil
}

// New connects over existing pipes: in carries what the sidecar writes.
func New(in io.ReadCloser, out io.WriteCloser) *Client {
	c := &Client{handlers: map[string]func(json.RawMessage){}, answers: map[string]func(json.RawMessage) any{}}
	ready := make(chan struct{})
	output := func(p protocol.OutputParams) {
		<-ready
		c.takeOutput(p)
	}
	stream := jsonrpc2.NewBufferedStream(pipes{in, out}, codec{body: new([]byte), output: output})
	c.conn = jsonrpc2.NewConn(context.Background(), stream, handler(func(conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
		<-ready
		if req.Notif {
			c.take(req)
			return
		}
		go c.answer(conn, req) // the user may take a while to decide
	}), jsonrpc2.SetLogger(silent{}))
	close(ready)
	return c
}

type pipes struct {
	io.ReadCloser
	out io.WriteCloser
}

func (p pipes) Write(data []byte) (int, error) { return p.out.Write(data) }
func (p pipes) Close() error                   { return errors.Join(p.out.Close(), p.ReadCloser.Close()) }

type silent struct{}

func (silent) Printf(string, ...any) {}

type handler func(*jsonrpc2.Conn, *jsonrpc2.Request)

func (h handler) Handle(_ context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) { h(conn, req) }

// answer answers a request from the sidecar.
func (c *Client) answer(conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	c.mu.Lock()
	answer := c.answers[req.Method]
	c.mu.Unlock()
	if answer == nil || req.Params == nil {
		_ = conn.ReplyWithError(context.Background(), req.ID,
			&jsonrpc2.Error{Code: int64(protocol.CodeMethodNotFound), Message: "not a method of this client"})
		return
	}
	_ = conn.Reply(context.Background(), req.ID, answer(*req.Params))
}

// take handles a notification.
func (c *Client) take(req *jsonrpc2.Request) {
	c.mu.Lock()
	handle := c.handlers[req.Method]
	c.mu.Unlock()
	if handle != nil && req.Params != nil {
		handle(*req.Params)
	}
}

// takeOutput handles a terminal/output.
func (c *Client) takeOutput(params protocol.OutputParams) {
	c.mu.Lock()
	handle := c.output
	c.mu.Unlock()
	if handle != nil {
		handle(params)
	}
}

// On sets the handler of a notification. The reading goroutine calls it in the
// order of arrival, and reads nothing else meanwhile.
func On[P any](c *Client, method protocol.Notification[P], handle func(P)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if typed, is := any(handle).(func(protocol.OutputParams)); is && method.Method == protocol.Output.Method {
		c.output = typed
	}
	c.handlers[method.Method] = func(raw json.RawMessage) {
		var params P
		if json.Unmarshal(raw, &params) == nil {
			handle(params)
		}
	}
}

// OnRequest sets the handler of a request from the sidecar. Each call has a
// goroutine of its own.
func OnRequest[P, R any](c *Client, method protocol.Request[P, R], answer func(P) R) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[method.Method] = func(raw json.RawMessage) any {
		var params P
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil
		}
		return answer(params)
	}
}

// Call sends a request and waits for its answer. An error in the answer is an
// *Error. If ctx ends first, the request is cancelled; see protocol.CancelRequest.
func Call[P, R any](ctx context.Context, c *Client, method protocol.Request[P, R], params P) (R, error) {
	var result R
	err := c.call(ctx, method.Method, params, &result)
	return result, convert(err)
}

func (c *Client) call(ctx context.Context, method string, params, result any) error {
	id := c.last.Add(1)
	err := c.conn.Call(ctx, method, params, result, jsonrpc2.PickID(jsonrpc2.ID{Num: id}))
	if err != nil && errors.Is(err, ctx.Err()) {
		// A sidecar that does not read must not hold up the caller.
		go func() {
			_ = Notify(c, protocol.CancelRequest, protocol.CancelParams{
				ID: strconv.AppendUint(nil, id, 10),
			})
		}()
	}
	return err
}

// Notify sends a notification.
func Notify[P any](c *Client, method protocol.Notification[P], params P) error {
	return c.conn.Notify(context.Background(), method.Method, params)
}

// CallRaw sends a request of any shape, for tests of invalid ones.
func (c *Client) CallRaw(ctx context.Context, method string, params any) (json.RawMessage, error) {
	var result json.RawMessage
	err := c.call(ctx, method, params, &result)
	return result, convert(err)
}

func convert(err error) error {
	var refused *jsonrpc2.Error
	if !errors.As(err, &refused) {
		return err
	}
	out := &Error{Code: protocol.Code(refused.Code), Message: refused.Message}
	if refused.Data != nil {
		_ = json.Unmarshal(*refused.Data, &out.Data)
	}
	return out
}

// Gone is closed when the connection has ended.
func (c *Client) Gone() <-chan struct{} { return c.conn.DisconnectNotify() }

// Quit ends the conversation with shutdown and exit, and waits for the
// sidecar's process. The error is that of its exit status.
func (c *Client) Quit(ctx context.Context) error {
	if _, err := Call(ctx, c, protocol.Shutdown, protocol.Empty{}); err != nil {
		return fmt.Errorf("shut sidecar down: %w", err)
	}
	if err := Notify(c, protocol.Exit, protocol.Empty{}); err != nil {
		return fmt.Errorf("end sidecar: %w", err)
	}
	if c.process == nil {
		return nil
	}
	return c.process.Wait()
}

// HangUp closes the pipes without shutdown, as an editor that crashes does, and
// waits for the sidecar's process.
func (c *Client) HangUp() error {
	_ = c.conn.Close()
	if c.process == nil {
		return nil
	}
	return c.process.Wait()
}

// Process is the sidecar's process id; 0 for a client of New.
func (c *Client) Process() int {
	if c.process == nil {
		return 0
	}
	return c.process.Process.Pid
}
