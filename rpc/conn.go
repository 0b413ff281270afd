package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// conn is JSON-RPC over a stream. Only read belongs to one goroutine; the
// other methods may be called from several, and wait for the editor, but for
// those that say that they do not.
type conn struct {
	stream *stream
	closed chan struct{} // closed by close: nobody answers any more

	mu      sync.Mutex // guards the fields below
	last    uint64
	pending map[string]chan incoming // questions to the editor, by id
}

func newConn(s *stream) *conn {
	return &conn{stream: s, closed: make(chan struct{}), pending: map[string]chan incoming{}}
}

// read hands every request and notification to handle, in the order of their
// arrival, until one of them fails or the stream ends, and returns why.
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

// settle gives an answer to whoever asked. One that nobody waits for any more
// is dropped.
func (c *conn) settle(answer incoming) {
	c.mu.Lock()
	asked := c.pending[string(answer.id)]
	delete(c.pending, string(answer.id))
	c.mu.Unlock()
	if asked != nil {
		asked <- answer // it has room for one
	}
}

// Call asks the editor and waits for its answer. A refusal is a *responseError.
func (c *conn) Call(ctx context.Context, method string, params, result any) error {
	answered := make(chan incoming, 1)
	c.mu.Lock()
	c.last++
	id := strconv.FormatUint(c.last, 10)
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
		return ctx.Err()
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

// Notify tells the editor something.
func (c *conn) Notify(_ context.Context, method string, params any) error {
	body, err := callBody(nil, method, params)
	if err != nil {
		return err
	}
	return c.stream.out.send(body)
}

// replyBody answers a request.
func replyBody(id json.RawMessage, result any, err error) []byte {
	if err == nil {
		var body []byte
		if body, err = resultBody(id, result); err == nil {
			return body
		}
	}
	return errorBody(id, toWire(err))
}

// logLine puts a line into the editor's log. It does not wait: what does not
// fit is counted, and the count goes with the next line that does.
func (c *conn) logLine(level int, text string) {
	text = display.Line(text) // it may quote a message of any length
	c.stream.out.logLine(func(missed int) []byte {
		if missed > 0 {
			text = fmt.Sprintf("%s (%d lines before this one are missing)", text, missed)
		}
		body, err := callBody(nil, protocol.LogMessage.Method, protocol.LogMessageParams{Type: level, Message: text})
		if err != nil {
			panic(fmt.Sprintf("BUG(sandbox-sidecar): %v", err))
		}
		return body
	})
}

// close frees everybody who waits for the editor to answer. It must be called
// once at most.
func (c *conn) close() { close(c.closed) }
