package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// conn is JSON-RPC over a stream. One goroutine calls read; the other methods
// may be called from several. They wait for the editor, unless they say
// otherwise.
type conn struct {
	stream *stream
	closed chan struct{} // closed by close: the editor sends no more answers

	mu      sync.Mutex // guards the fields below
	last    uint64
	pending map[string]chan incoming // requests to the editor, by id
}

func newConn(s *stream) *conn {
	return &conn{stream: s, closed: make(chan struct{}), pending: map[string]chan incoming{}}
}

// read calls handle for every request and notification, in the order of their
// arrival, until handle fails or the stream ends. It returns the reason.
func (c *conn) read(handle func(incoming) error) error {
	for {
		body, err := c.stream.readFrame()
		if err != nil {
			return err
		}
		message, refusal := parseMessage(body)
		switch {
		case refusal != nil:
			err = c.stream.out.answer(refusal)
		case message.kind == isResponse:
			c.settle(message)
		default:
			err = handle(message)
		}
		if err != nil {
			return err
		}
	}
}

// settle delivers the answer to a request. It drops an answer to a request that
// no longer waits.
func (c *conn) settle(answer incoming) {
	c.mu.Lock()
	waiting := c.pending[string(answer.id)]
	delete(c.pending, string(answer.id))
	c.mu.Unlock()
	if waiting != nil {
		waiting <- answer // the channel has room for one
	}
}

// Call sends a request to the editor and waits for its answer. An error in the
// answer is a *responseError. If ctx ends first, the editor is told that nobody
// waits any more.
func (c *conn) Call(ctx context.Context, method string, params, result any) error {
	answered := make(chan incoming, 1)
	c.mu.Lock()
	c.last++
	number := c.last
	id := strconv.FormatUint(number, 10)
	c.pending[id] = answered
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	body, err := callBody(json.RawMessage(id), method, params)
	if err != nil {
		return err
	}
	if err := c.stream.out.send(body); err != nil {
		return err
	}
	select {
	case answer := <-answered:
		return readAnswer(answer, method, result)
	case <-ctx.Done():
		return errors.Join(ctx.Err(), c.Notify(ctx, protocol.CancelRequest.Method, protocol.CancelParams{ID: number}))
	case <-c.closed:
		return errClosed
	}
}

func readAnswer(answer incoming, method string, result any) error {
	if answer.failed != nil {
		var refused responseError
		if err := json.Unmarshal(answer.failed, &refused); err != nil {
			return fmt.Errorf("%s: read error: %w", method, err)
		}
		return &refused
	}
	if err := json.Unmarshal(answer.result, result); err != nil {
		return fmt.Errorf("%s: read answer: %w", method, err)
	}
	return nil
}

// Notify sends a notification to the editor.
func (c *conn) Notify(_ context.Context, method string, params any) error {
	body, err := callBody(nil, method, params)
	if err != nil {
		return err
	}
	return c.stream.out.send(body)
}

// replyBody is the answer to a request: a result or an error.
func replyBody(id json.RawMessage, result any, err error) []byte {
	if err == nil {
		var body []byte
		if body, err = resultBody(id, result); err == nil {
			return body
		}
	}
	return errorBody(id, toWire(err))
}

// logLine puts a line into the editor's log. It does not wait. A line that does
// not fit is counted, and the next line that fits mentions the count.
func (c *conn) logLine(level int, text string) {
	text = display.Line(text) // the text may quote a message of any length
	c.stream.out.logLine(func(missed int) []byte {
		if missed > 0 {
			text = fmt.Sprintf("%s (lines missing before this one: %d)", text, missed)
		}
		body, err := callBody(nil, protocol.LogMessage.Method, protocol.LogMessageParams{Type: level, Message: text})
		if err != nil {
			panic(fmt.Sprintf("BUG(sandbox-sidecar): %v", err))
		}
		return body
	})
}

// close ends every Call that waits. It must be called once at most.
func (c *conn) close() { close(c.closed) }
