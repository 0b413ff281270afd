package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

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
		return m, errorBody(nil, &responseError{Code: protocol.CodeParseError, Message: "the body is not JSON"})
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

// resultBody is the answer to a request.
func resultBody(id json.RawMessage, result any) ([]byte, error) {
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("write result: %w", err)
	}
	return answerBody(id, "result", raw), nil
}

// responseError is the error in an answer.
type responseError struct {
	Code    protocol.Code       `json:"code"`
	Message string              `json:"message"`
	Data    *protocol.ErrorData `json:"data,omitempty"`
}

func (e *responseError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// errorBody is the answer to a request that failed. An unknown id becomes null,
// as JSON-RPC requires.
func errorBody(id json.RawMessage, failure *responseError) []byte {
	return answerBody(id, "error", mustMarshal(failure))
}

func invalidRequest(id json.RawMessage, message string) []byte {
	return errorBody(id, &responseError{Code: protocol.CodeInvalidRequest, Message: message})
}

// answerBody builds an answer without encoding/json, which would rewrite the
// id.
func answerBody(id json.RawMessage, member string, value []byte) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	body := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	body = append(body, `,"`+member+`":`...)
	return append(append(body, value...), '}')
}

// callBody is a request, or a notification if id is nil.
func callBody(id json.RawMessage, method string, params any) ([]byte, error) {
	body, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  any             `json:"params"`
	}{"2.0", id, method, params})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", method, err)
	}
	return body, nil
}

func mustMarshal(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %T: %v", value, err))
	}
	return raw
}
