package rpc

import (
	"encoding/json"
	"errors"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// objects is a stream as package jsonrpc2 reads and writes it. That package
// gets the envelope of each message: its kind and its id. It would decode and
// encode what is inside, so receiving attaches that unchanged. See
// docs/design/jsonrpc2.md.
type objects struct {
	*stream
	ready  chan struct{} // closed once handlers may run
	ended  chan error    // receives why no further message comes, once
	closed chan struct{} // closed by Close

	// These fields belong to the goroutine that reads.
	inside incoming // what belongs into the envelope that was read last
	failed error    // why no further message is read

	body []byte // what jsonrpc2 has sent; guarded by conn.sending

	mu       sync.Mutex // guards the field below
	deserted []string   // ids of calls that nobody waits for and jsonrpc2 holds
}

// ReadObject reads the envelope of the next message. It refuses what is no
// message, and reads on. At the end it waits for Close, because jsonrpc2 sends
// nothing after an error.
func (o *objects) ReadObject(envelope any) error {
	<-o.ready
	for o.failed == nil {
		message, refusal, err := o.next()
		switch {
		case err != nil:
			o.failed = err
		case refusal != nil:
			o.failed = o.out.answer(refusal)
		default:
			o.inside = message
			if o.failed = json.Unmarshal(envelopeOf(message), envelope); o.failed == nil {
				return nil
			}
		}
	}
	o.ended <- o.failed
	<-o.closed
	return o.failed
}

// next reads a message. For a deserted call it makes an answer, because
// jsonrpc2 forgets no call before its answer.
func (o *objects) next() (message incoming, refusal []byte, err error) {
	o.mu.Lock()
	if last := len(o.deserted) - 1; last >= 0 {
		defer o.mu.Unlock()
		message = incoming{kind: isResponse, id: json.RawMessage(o.deserted[last])}
		o.deserted = o.deserted[:last]
		return message, nil, nil
	}
	o.mu.Unlock()
	body, err := o.readFrame()
	if err == nil {
		message, refusal = parseMessage(body)
	}
	return message, refusal, err
}

// errUnanswered means that the editor lets calls wait until they are given up,
// and sends nothing else.
var errUnanswered = errors.New("the editor sends nothing")

// maxDeserted bounds the calls that jsonrpc2 holds for nobody.
const maxDeserted = 1024

// mayCall is an error if so many calls are deserted that no other may be made.
func (o *objects) mayCall() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.deserted) >= maxDeserted {
		return errUnanswered
	}
	return nil
}

// desert ends a call for which nobody waits, before the next message is read.
func (o *objects) desert(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deserted = append(o.deserted, id)
}

// envelopeOf is a message without what is inside. The id is a string that holds
// the id's own bytes, because no type of jsonrpc2 holds every JSON number.
func envelopeOf(m incoming) []byte {
	switch id := mustMarshal(string(m.id)); m.kind {
	case isRequest:
		return append(append([]byte(`{"method":"","id":`), id...), '}')
	case isResponse:
		return append(append([]byte(`{"result":null,"id":`), id...), '}')
	default:
		return []byte(`{"method":""}`)
	}
}

// receiving attaches what was inside an envelope. jsonrpc2 calls it for every
// message, between ReadObject and what follows from the message.
func (o *objects) receiving(request *jsonrpc2.Request, response *jsonrpc2.Response) {
	inside := o.inside
	o.inside = incoming{} // free it
	switch {
	case response == nil:
		request.Method = inside.method
		if inside.params != nil {
			request.Params = &inside.params
		}
	case inside.failed == nil:
		response.Result = &inside.result
	default:
		response.Error = &jsonrpc2.Error{}
		if json.Unmarshal(inside.failed, response.Error) != nil {
			response.Error = &jsonrpc2.Error{
				Code: int64(protocol.CodeInvalidRequest), Message: "the answer's error is none",
			}
		}
	}
}

// sending takes what jsonrpc2 is about to write.
func (o *objects) sending(request *jsonrpc2.Request, response *jsonrpc2.Response) {
	if response != nil {
		o.body = responseBody(response)
	} else {
		o.body = requestBody(request)
	}
}

// WriteObject writes nothing, because jsonrpc2 holds a lock meanwhile: whoever
// waited here for the editor would hold up all others. conn writes the body.
func (*objects) WriteObject(any) error { return nil }

// Close ends reading. writer.close ends writing.
func (o *objects) Close() error {
	close(o.closed)
	return o.stream.Close()
}
