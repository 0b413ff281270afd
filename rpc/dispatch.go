package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

const (
	// maxConcurrent bounds the requests in progress. A well-behaved editor has
	// one for each session that it waits for, and a few more.
	maxConcurrent = 4096
	// maxComputing bounds the requests that compute. Thousands at once would
	// leave no thread for keystrokes or for the end of the connection.
	maxComputing = 16
)

// dispatcher routes messages to typed handlers. All handlers are registered
// before the first message.
type dispatcher struct {
	requests      map[string]requestHandler
	notifications map[string]func(raw json.RawMessage) error
	// inline names the requests that run on the reading goroutine, so that every
	// later message waits for them.
	inline map[string]bool
	// waits names the requests that mostly wait for sessions. maxComputing bounds
	// the others.
	waits map[string]bool
	// cancels names the requests that the editor can cancel. Their handlers end with
	// their context.
	cancels map[string]bool
	// admit returns an error if a message may not be handled now.
	admit func(method string, isRequest bool) error
	// ignored is called for every notification that had no effect. It must not
	// block.
	ignored func(method string, err error)
	// strict names the requests in which an unknown field is an error.
	strict map[string]bool
	// unknown is called for each message with fields that nobody knows, with the
	// name of the first. They had no effect. It must not block.
	unknown func(method, field string)
	// handled is called after each message, with the length of its params.
	handled func(bytes int)

	slots     chan struct{} // one token for each request in progress
	computing chan struct{} // one token for each that computes
	ongoing   sync.WaitGroup

	mu     sync.Mutex           // guards the fields below
	ended  bool                 // nothing may be added to ongoing
	asking map[string]*inFlight // requests that can be cancelled, by their ids
}

// inFlight is a request that can be cancelled.
type inFlight struct {
	cancel    context.CancelFunc
	cancelled atomic.Bool
}

// requestHandler carries out a request. The dispatcher calls the function that
// it returns, if any, after it has sent the answer.
type requestHandler func(ctx context.Context, raw json.RawMessage) (result any, after func(), err error)

func newDispatcher() *dispatcher {
	return &dispatcher{
		requests: map[string]requestHandler{}, notifications: map[string]func(json.RawMessage) error{},
		inline: map[string]bool{}, waits: map[string]bool{}, strict: map[string]bool{},
		cancels: map[string]bool{}, asking: map[string]*inFlight{}, unknown: func(string, string) {},
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

// onRequestThen registers a handler that also returns what to do after its
// answer was sent.
func onRequestThen[P, R any](d *dispatcher, method protocol.Request[P, R],
	handle func(context.Context, P) (R, func(), error),
) {
	d.requests[method.Method] = func(ctx context.Context, raw json.RawMessage) (any, func(), error) {
		var params P
		if err := d.decode(method.Method, raw, &params); err != nil {
			return nil, nil, err
		}
		return handle(ctx, params)
	}
}

// onNotification registers a handler. It runs on the reading goroutine, so it
// must not block.
func onNotification[P any](d *dispatcher, method protocol.Notification[P], handle func(P) error) {
	d.notifications[method.Method] = func(raw json.RawMessage) error {
		var params P
		if err := d.decode(method.Method, raw, &params); err != nil {
			return err
		}
		return handle(params)
	}
}

// decode reads the params of a message.
func (d *dispatcher) decode(method string, raw json.RawMessage, params any) error {
	field, err := decodeParams(raw, params)
	switch {
	case err != nil || field == "":
		return err
	case d.strict[method]:
		return invalidParams(display.Text(field),
			"not known to this version, and may restrict; see capabilities.spawnFields")
	}
	d.unknown(method, field)
	return nil
}

// Handle handles a request or a notification. The reading goroutine calls it in
// the order of arrival. It does not wait for the editor. An error ends the
// connection.
func (d *dispatcher) Handle(ctx context.Context, c *conn, request *jsonrpc2.Request) error {
	method, id := request.Method, request.ID
	var raw json.RawMessage
	if request.Params != nil {
		raw = *request.Params
	}
	size := len(raw)
	if request.Notif {
		d.notify(method, raw)
		d.handled(size)
		return nil
	}
	// Admit messages in order too: a request right behind initialize comes after
	// it.
	handle, known := d.requests[method]
	err := d.admit(method, true)
	if err == nil && !known {
		err = &wireError{
			code:    protocol.CodeMethodNotFound,
			message: fmt.Sprintf("method %s: not found", display.Quote(method)),
		}
	}
	carryOut := func() (result any, after func(), _ error) {
		if err != nil {
			return nil, nil, err
		}
		params := raw
		raw = nil // free the params of a request that waits for an hour
		return handle(ctx, params)
	}
	if d.inline[method] {
		result, after, failure := carryOut()
		if err := c.reply(c.stream.out.answer, id, result, failure); err != nil || after == nil {
			return err
		}
		d.begin(after)
		return nil
	}
	cancelled := func() bool { return false }
	if d.cancels[method] {
		ctx, cancelled = d.cancellable(ctx, id.Str)
	}
	answer := func() {
		defer d.handled(size)
		if !d.waits[method] {
			select {
			case d.computing <- struct{}{}:
			case <-c.stream.out.abandoned:
				return // the editor takes no more answers
			}
		}
		result, after, failure := carryOut()
		if !d.waits[method] {
			<-d.computing
		}
		if cancelled() && failure != nil {
			failure = &wireError{code: protocol.CodeRequestCancelled, message: method + ": cancelled"}
		}
		_ = c.reply(c.stream.out.send, id, result, failure)
		if after != nil {
			after()
		}
	}
	if method == protocol.Shutdown.Method {
		d.begin(answer) // it comes once, and needs no slot
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
		cancelled()
		d.handled(size)
		return c.reply(c.stream.out.answer, id, nil, &wireError{
			code: protocol.CodeInternalError, message: fmt.Sprintf("more than %d requests at once", maxConcurrent),
		})
	}
}

// cancellable returns the context of a request that the editor can cancel from now
// on, and a function that reports whether it has. That ends the context, and must be
// called once the request was carried out.
func (d *dispatcher) cancellable(ctx context.Context, id string) (context.Context, func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	request := &inFlight{cancel: cancel}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asking[id] = request
	return ctx, func() bool {
		cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.asking[id] == request { // the editor may have used the id again
			delete(d.asking, id)
		}
		return request.cancelled.Load()
	}
}

// cancel cancels a request that is in flight. It has no effect on any other, as the
// answer may be on its way.
func (d *dispatcher) cancel(params protocol.CancelParams) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if request := d.asking[string(params.ID)]; request != nil {
		request.cancelled.Store(true)
		request.cancel()
	}
	return nil
}

// begin runs a function on a goroutine that end waits for.
func (d *dispatcher) begin(run func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.ongoing.Go(run)
	}
}

// end refuses further requests, and returns a channel that is closed when none
// is in progress.
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

// notify carries out a notification.
func (d *dispatcher) notify(method string, raw json.RawMessage) {
	handle, known := d.notifications[method]
	if !known {
		if !strings.HasPrefix(method, "$/") { // LSP allows every peer to ignore these
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
