package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// conn is a connection of package jsonrpc2. Its methods may be called from
// several goroutines. They wait for the editor, unless they say otherwise.
type conn struct {
	stream *objects
	rpc    *jsonrpc2.Conn
	handle func(*conn, *jsonrpc2.Request) error

	last    atomic.Uint64 // the id of the last request to the editor
	sending sync.Mutex    // guards stream.body
}

// newConn makes a connection. After start, one goroutine calls handle for every
// request and notification, in the order of their arrival, until handle fails or
// the stream ends. Then stream.ended receives the reason.
func newConn(s *stream, handle func(*conn, *jsonrpc2.Request) error) *conn {
	c := &conn{handle: handle, stream: &objects{
		stream: s, ready: make(chan struct{}), ended: make(chan error, 1), closed: make(chan struct{}),
	}}
	// The connection ends by close alone: what was read before is answered.
	c.rpc = jsonrpc2.NewConn(context.Background(), c.stream, c, jsonrpc2.OnRecv(c.stream.receiving),
		jsonrpc2.OnSend(c.stream.sending), jsonrpc2.SetLogger(silent{}))
	return c
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// start begins to read. It must be called once.
func (c *conn) start() { close(c.stream.ready) }

// Handle is for jsonrpc2, which calls it on the goroutine that reads.
func (c *conn) Handle(_ context.Context, _ *jsonrpc2.Conn, request *jsonrpc2.Request) {
	c.stream.failed = c.handle(c, request)
}

// send queues the message that give gives to jsonrpc2. It waits for the editor
// if queue does.
func (c *conn) send(queue func(body []byte) error, give func() error) error {
	c.sending.Lock()
	err := give()
	body := c.stream.body
	c.stream.body = nil // free it
	c.sending.Unlock()
	if err != nil {
		return err
	}
	return queue(body)
}

// Call sends a request to the editor and waits for its answer. An error in the
// answer is a *jsonrpc2.Error. If ctx ends first, a cancellation tells the
// editor that nobody waits any more.
func (c *conn) Call(ctx context.Context, method string, params, result any) error {
	if err := c.stream.mayCall(); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	id := strconv.FormatUint(c.last.Add(1), 10)
	var answer jsonrpc2.Waiter
	err := c.send(c.stream.out.send, func() (err error) {
		answer, err = c.rpc.DispatchCall(ctx, method, params, jsonrpc2.PickID(rawID(id)))
		return err
	})
	if err == nil {
		err = answer.Wait(ctx, result)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ctx.Err()):
		c.stream.desert(id)
		return errors.Join(err, c.Notify(ctx, protocol.CancelRequest.Method, protocol.CancelParams{
			ID: protocol.RawJSON(id),
		}))
	default:
		return fmt.Errorf("%s: %w", method, err)
	}
}

// Notify sends a notification to the editor.
func (c *conn) Notify(ctx context.Context, method string, params any) error {
	return c.send(c.stream.out.send, func() error { return c.rpc.Notify(ctx, method, params) })
}

// reply answers a request with a result or an error. queue is the writer's
// answer on the goroutine that reads, and its send on any other.
func (c *conn) reply(queue func(body []byte) error, id jsonrpc2.ID, result any, failure error) error {
	answer := &jsonrpc2.Response{ID: id}
	if failure == nil {
		if err := answer.SetResult(result); err != nil {
			failure = fmt.Errorf("write result: %w", err)
		}
	}
	if failure != nil {
		answer.Error = toWire(failure)
	}
	return c.send(queue, func() error { return c.rpc.SendResponse(context.Background(), answer) })
}

// logLine puts a line into the editor's log. It does not wait. A line that does
// not fit is counted, and the next line that fits mentions the count.
func (c *conn) logLine(level int, text string) {
	text = display.Line(text) // the text may quote a message of any length
	c.stream.out.logLine(func(missed int) []byte {
		if missed > 0 {
			text = fmt.Sprintf("%s (lines missing before this one: %d)", text, missed)
		}
		params := json.RawMessage(mustMarshal(protocol.LogMessageParams{Type: level, Message: text}))
		return requestBody(&jsonrpc2.Request{Method: protocol.LogMessage.Method, Params: &params, Notif: true})
	})
}

// close ends reading, and every Call that waits.
func (c *conn) close() { _ = c.rpc.Close() }
