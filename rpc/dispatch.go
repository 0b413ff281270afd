package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// maxConcurrent bounds the requests that are being carried out. An honest editor has one for each waiting session and a few more.
const maxConcurrent = 4096

// dispatcher routes messages to typed handlers. Handlers are registered before the first message and not changed after.
type dispatcher struct {
	requests      map[string]requestHandler
	notifications map[string]func(raw json.RawMessage) error
	// inline names requests that run on the reading goroutine, so that everything behind them waits.
	inline map[string]bool
	// admit says whether a message may be handled now.
	admit func(method string, isRequest bool) error
	// ignored is told about every notification that had no effect.
	ignored func(method string, err error)

	slots   chan struct{} // one token for each request in progress
	ongoing sync.WaitGroup
}

// requestHandler carries a request out. The function it returns, if any, is called once the answer was sent.
type requestHandler func(ctx context.Context, raw json.RawMessage) (result any, after func(), err error)

func newDispatcher() *dispatcher {
	return &dispatcher{
		requests: map[string]requestHandler{}, notifications: map[string]func(json.RawMessage) error{},
		inline: map[string]bool{},
		slots:  make(chan struct{}, maxConcurrent),
	}
}

// onRequest registers a handler that runs on a goroutine of its own.
func onRequest[P, R any](d *dispatcher, method protocol.Request[P, R], handle func(context.Context, P) (R, error)) {
	onRequestThen(d, method, func(ctx context.Context, params P) (R, func(), error) {
		result, err := handle(ctx, params)
		return result, nil, err
	})
}

// onRequestThen registers a handler with something left to do once its answer was sent.
func onRequestThen[P, R any](d *dispatcher, method protocol.Request[P, R], handle func(context.Context, P) (R, func(), error)) {
	d.requests[method.Method] = func(ctx context.Context, raw json.RawMessage) (any, func(), error) {
		var params P
		if err := decodeParams(raw, &params); err != nil {
			return nil, nil, err
		}
		return handle(ctx, params)
	}
}

// onNotification registers a handler that runs on the reading goroutine, and so must not block.
func onNotification[P any](d *dispatcher, method protocol.Notification[P], handle func(P) error) {
	d.notifications[method.Method] = func(raw json.RawMessage) error {
		var params P
		if err := decodeParams(raw, &params); err != nil {
			return err
		}
		return handle(params)
	}
}

// Handle implements jsonrpc2.Handler. It is called in the order of arrival.
func (d *dispatcher) Handle(ctx context.Context, conn *jsonrpc2.Conn, req *jsonrpc2.Request) {
	var raw json.RawMessage
	if req.Params != nil {
		raw = *req.Params
	}
	if req.Notif {
		d.notify(req.Method, raw)
		return
	}
	reply := func(result any, err error) {
		if err != nil {
			_ = conn.ReplyWithError(ctx, req.ID, toWire(err))
		} else if err := conn.Reply(ctx, req.ID, result); err != nil {
			_ = conn.ReplyWithError(ctx, req.ID, toWire(fmt.Errorf("write result: %w", err)))
		}
	}
	// What is refused is refused in order too: a request right behind an initialize is not before it.
	handle, known := d.requests[req.Method]
	err := d.admit(req.Method, true)
	if err == nil && !known {
		err = &wireError{code: protocol.CodeMethodNotFound, message: fmt.Sprintf("method %s: not found", display.Quote(req.Method))}
	}
	carryOut := func() {
		if err != nil {
			reply(nil, err)
			return
		}
		result, after, err := handle(ctx, raw)
		reply(result, err)
		if after != nil {
			after()
		}
	}
	if d.inline[req.Method] {
		carryOut()
		return
	}
	select {
	case d.slots <- struct{}{}:
		d.ongoing.Go(func() {
			defer func() { <-d.slots }()
			carryOut()
		})
	default:
		// Answering from here can hold the reader up while the editor does not read; an editor that sends so much must.
		reply(nil, &wireError{code: protocol.CodeInternalError, message: fmt.Sprintf("more than %d requests at once", maxConcurrent)})
	}
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
