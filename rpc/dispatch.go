package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

const (
	// maxConcurrent bounds the requests that are being carried out. An honest
	// editor has one for each waiting session and a few more.
	maxConcurrent = 4096
	// maxComputing bounds those that compute. With thousands at once, nothing
	// else would get a thread to run on: no end, no key.
	maxComputing = 16
)

// dispatcher routes messages to typed handlers. Handlers are registered before
// the first message and not changed after.
type dispatcher struct {
	requests      map[string]requestHandler
	notifications map[string]func(raw json.RawMessage) error
	// inline names requests that run on the reading goroutine, so that
	// everything behind them waits.
	inline map[string]bool
	// waits names requests that wait for sessions and compute little; the
	// others take turns.
	waits map[string]bool
	// admit says whether a message may be handled now.
	admit func(method string, isRequest bool) error
	// ignored is told about every notification that had no effect. It must not
	// block.
	ignored func(method string, err error)
	// handled is told when a message of this many bytes has been dealt with.
	handled func(bytes int)

	slots     chan struct{} // one token for each request in progress
	computing chan struct{} // one token for each that computes
	ongoing   sync.WaitGroup

	mu    sync.Mutex // guards ended
	ended bool       // nothing may be added to ongoing
}

// requestHandler carries a request out. The function it returns, if any, is
// called once the answer was sent.
type requestHandler func(ctx context.Context, raw json.RawMessage) (result any, after func(), err error)

func newDispatcher() *dispatcher {
	return &dispatcher{
		requests: map[string]requestHandler{}, notifications: map[string]func(json.RawMessage) error{},
		inline: map[string]bool{}, waits: map[string]bool{},
		slots: make(chan struct{}, maxConcurrent), computing: make(chan struct{}, maxComputing),
	}
}

// onRequest registers a handler that runs on a goroutine of its own.
func onRequest[P, R any](d *dispatcher, method protocol.Request[P, R], handle func(context.Context, P) (R, error)) {
	onRequestThen(d, method, func(ctx context.Context, params P) (R, func(), error) {
		result, err := handle(ctx, params)
		return result, nil, err
	})
}

// onRequestThen registers a handler with something left to do once its answer
// was sent.
func onRequestThen[P, R any](d *dispatcher, method protocol.Request[P, R],
	handle func(context.Context, P) (R, func(), error)) {
	d.requests[method.Method] = func(ctx context.Context, raw json.RawMessage) (any, func(), error) {
		var params P
		if err := decodeParams(raw, &params); err != nil {
			return nil, nil, err
		}
		return handle(ctx, params)
	}
}

// onNotification registers a handler that runs on the reading goroutine, and so
// must not block.
func onNotification[P any](d *dispatcher, method protocol.Notification[P], handle func(P) error) {
	d.notifications[method.Method] = func(raw json.RawMessage) error {
		var params P
		if err := decodeParams(raw, &params); err != nil {
			return err
		}
		return handle(params)
	}
}

// Handle takes a request or notification. It is called in the order of arrival
// by the goroutine that reads, and does not wait for the editor. An error ends
// the connection.
func (d *dispatcher) Handle(ctx context.Context, c *conn, message incoming) error {
	size := len(message.params)
	if message.kind == isNotification {
		d.notify(message.method, message.params)
		d.handled(size)
		return nil
	}
	method, id := message.method, message.id
	// What is refused is refused in order too: a request right behind an
	// initialize is not before it.
	handle, known := d.requests[method]
	err := d.admit(method, true)
	if err == nil && !known {
		err = &wireError{code: protocol.CodeMethodNotFound,
			message: fmt.Sprintf("method %s: not found", display.Quote(method))}
	}
	raw := message.params
	carryOut := func() (body []byte, after func()) {
		if err != nil {
			return replyBody(id, nil, err), nil
		}
		params := raw
		raw = nil // a request that waits for an hour need not keep them
		result, after, err := handle(ctx, params)
		return replyBody(id, result, err), after
	}
	if d.inline[method] {
		body, after := carryOut()
		if err := c.stream.out.answer(body); err != nil || after == nil {
			return err
		}
		d.begin(after)
		return nil
	}
	answer := func() {
		defer d.handled(size)
		if !d.waits[method] {
			select {
			case d.computing <- struct{}{}:
			case <-c.stream.out.abandoned:
				return // nobody waits for the answer any more
			}
		}
		body, after := carryOut()
		if !d.waits[method] {
			<-d.computing
		}
		_ = c.stream.out.send(body)
		if after != nil {
			after()
		}
	}
	if method == protocol.Shutdown.Method {
		d.begin(answer) // it comes once, and is not refused because others wait
		return nil
	}
	select {
	case d.slots <- struct{}{}:
		d.begin(func() {
			defer func() { <-d.slots }()
			answer()
		})
		return nil
	default:
		d.handled(size)
		return c.stream.out.answer(replyBody(id, nil,
			&wireError{code: protocol.CodeInternalError, message: fmt.Sprintf("more than %d requests at once", maxConcurrent)}))
	}
}

// begin runs a function on a goroutine of its own, which end waits for.
func (d *dispatcher) begin(run func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.ongoing.Go(run)
	}
}

// end takes no more requests, and returns a channel that is closed when none is
// in progress.
func (d *dispatcher) end() <-chan struct{} {
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		d.ongoing.Wait()
	}()
	return idle
}

func (d *dispatcher) notify(method string, raw json.RawMessage) {
	handle, known := d.notifications[method]
	if !known {
		if !strings.HasPrefix(method, "$/") { // LSP: these may be ignored by anybody
			d.ignored(method, fmt.Errorf("method not found"))
		}
		return
	}
	if err := d.admit(method, false); err != nil {
		d.ignored(method, err)
		return
	}
	if err := handle(raw); err != nil {
		d.ignored(method, err)
	}
}
