package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// frameKind is one of JSON-RPC's three kinds of message.
type frameKind int

const (
	isRequest frameKind = iota
	isNotification
	isResponse
)

// incoming is a message with its members as they arrived. An answer returns the
// id byte for byte, because no Go type holds every JSON number.
type incoming struct {
	kind   frameKind
	id     json.RawMessage
	method string
	params json.RawMessage
	result json.RawMessage
	failed json.RawMessage // the member "error"
}

// maxID bounds an id in bytes. The sidecar holds it until the request is
// answered.
const maxID = 1 << 10

// parseMessage reads a body. If it is no message, refusal is the body that
// answers it.
func parseMessage(body []byte) (m incoming, refusal []byte) {
	members := map[string]json.RawMessage{}
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(body, &members); {
	case errors.As(err, &syntax):
		return m, refusalBody(nil, protocol.CodeParseError, "the body is not JSON")
	case err != nil:
		return m, invalidRequest(nil, "not a request, notification or response")
	}
	m.id, m.params, m.result, m.failed = members["id"], members["params"], members["result"], members["error"]
	if m.id != nil {
		if problem := checkID(m.id); problem != "" {
			return m, invalidRequest(nil, problem)
		}
	}
	if string(m.failed) == "null" {
		m.failed = nil // older clients send both members
	}
	method, called := members["method"]
	answers := m.result != nil || m.failed != nil
	switch {
	case called == answers:
		return m, invalidRequest(m.id, "not a request, notification or response")
	case answers:
		m.kind = isResponse
		return m, nil
	case m.id == nil:
		m.kind = isNotification
	}
	if json.Unmarshal(method, &m.method) != nil || string(method) == "null" {
		return m, invalidRequest(m.id, "the method is not a string")
	}
	return m, nil
}

// checkID says what is wrong with an id; empty for a valid one.
func checkID(id json.RawMessage) string {
	switch c := id[0]; {
	case c == '{' || c == '[' || c == 't' || c == 'f':
		return "the id is neither a string nor a number"
	case len(id) > maxID:
		return fmt.Sprintf("the id is longer than %d bytes", maxID)
	case !utf8.Valid(id):
		return "the id is not UTF-8"
	}
	return ""
}

// invalidRequest is the answer to what is no message. An unknown id becomes
// null, as JSON-RPC requires.
func invalidRequest(id json.RawMessage, message string) []byte {
	return refusalBody(id, protocol.CodeInvalidRequest, message)
}

func refusalBody(id json.RawMessage, code protocol.Code, message string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return responseBody(&jsonrpc2.Response{
		ID: rawID(string(id)), Error: &jsonrpc2.Error{Code: int64(code), Message: message},
	})
}

// rawID is an id as jsonrpc2 holds it here: a string of the id's own bytes,
// because no type of that package holds every JSON number.
func rawID(id string) jsonrpc2.ID { return jsonrpc2.ID{Str: id, IsString: true} }

// responseBody is an answer. It is made without encoding/json, which would
// rewrite the id.
func responseBody(answer *jsonrpc2.Response) []byte {
	member, value := `,"result":`, []byte(nil)
	if answer.Error != nil {
		member, value = `,"error":`, mustMarshal(answer.Error)
	} else {
		value = *answer.Result
	}
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`+answer.ID.Str+member), value, []byte("}"))
}

// requestBody is a request or a notification. The order of its members is a
// promise: clients read the first bytes of a request without a decoder.
func requestBody(r *jsonrpc2.Request) []byte {
	head := `{"jsonrpc":"2.0",`
	if !r.Notif {
		head += `"id":` + r.ID.Str + ","
	}
	return slices.Concat([]byte(head+`"method":`), mustMarshal(r.Method), []byte(`,"params":`), *r.Params, []byte("}"))
}

func mustMarshal(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %T: %v", value, err))
	}
	return raw
}
