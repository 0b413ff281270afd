package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// member is a member of a JSON object, whose value keeps its bytes.
type member struct {
	key   string
	value json.RawMessage
}

// object is a JSON object in the order of its text.
type object []member

// split returns the members of an object, or the elements of an array, which
// have no key. It returns false for anything else. The text is one that strict
// has written; the values share its bytes.
func split(text []byte) (list object, isObject, ok bool) {
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return nil, false, false
	}
	isObject = text[0] == '{'
	for at := 1; at < len(text)-1; at++ {
		key := ""
		if isObject {
			to := at + valueSize(text[at:])
			key, at = unquote(text[at:to]), to+len(":")
		}
		to := at + valueSize(text[at:])
		list = append(list, member{key, text[at:to:to]})
		at = to
	}
	return list, isObject, true
}

// objectOf returns the members of an object. It returns false for anything else.
func objectOf(text []byte) (object, bool) {
	list, isObject, _ := split(text)
	return list, isObject
}

// valueSize is the length of the value at the beginning of a text.
func valueSize(text []byte) int {
	depth, quoted := 0, false
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case quoted && c == '\\':
			at++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth < 0 {
				return at
			}
		case depth == 0 && (c == ',' || c == ':'):
			return at
		}
	}
	return len(text)
}

// unquote is the value of a string that strict has written.
func unquote(text []byte) string {
	var value string
	if json.Unmarshal(text, &value) != nil {
		return ""
	}
	return value
}

// get is the value of a key, or nil.
func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// text is the value of a key if that is a string, else "".
func (o object) text(key string) string { return unquote(o.get(key)) }

// with returns the object with another value of a key.
func (o object) with(key string, value json.RawMessage) object {
	changed := append(object{}, o...)
	for i := range changed {
		if changed[i].key == key {
			changed[i].value = value
			return changed
		}
	}
	return append(changed, member{key, value})
}

// withoutFold returns the object without what some parser takes for a key.
func (o object) withoutFold(key string) object {
	var rest object
	for _, m := range o {
		if !strings.EqualFold(m.key, key) {
			rest = append(rest, m)
		}
	}
	return rest
}

func (o object) bytes() json.RawMessage {
	size := len("{}")
	for _, m := range o {
		size += len(m.key) + len(m.value) + len(`"":,`)
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted(m.key))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// encodeList is the JSON of a list.
func encodeList(values []json.RawMessage) json.RawMessage {
	list := []byte{'['}
	for i, value := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, value...)
	}
	return append(list, ']')
}

// encode is the JSON of a value that always has one.
func encode(value any) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): encode %T: %v", value, err))
	}
	return data
}

// message is a message of JSON-RPC.
type message struct {
	object
	bytes  []byte          // as it passes
	method string          // "" for a response
	id     json.RawMessage // nil for a notification
	left   bool            // something was left out
}

// What is no message of ACP.
var (
	errMessage = errors.New("it is no object")
	errVersion = errors.New("its version is not that of JSON-RPC 2.0")
	errID      = errors.New("its id is neither a whole number that all parsers can hold, nor a short text")
	errMethod  = errors.New("its method is no name")
	errForm    = errors.New("it is not exactly one of a request, a result and an error")
	errParams  = errors.New("its parameters are no object")
	errResult  = errors.New("its result is no object")
	errError   = errors.New("its error has not the form of JSON-RPC")
)

// aMethod has no character that a parser could drop or fold.
var aMethod = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_$][A-Za-z0-9_$./:+-]{0,255}$`)
})

// parse reads a message, and encodes it anew. Of one that may not pass it
// returns what is needed to answer: whether it asks something, by its method or
// a name for one, and its id.
func parse(s *strict) (msg message, asks bool, err error) {
	leave := s.leave
	s.leave = func(key string, depth int) bool {
		if depth == 1 { // JSON-RPC has no others
			return !slices.Contains(names, key)
		}
		return leave != nil && leave(key, depth)
	}
	err = s.read()
	if len(s.ids) == 1 && validID(s.ids[0]) {
		msg.id = s.ids[0]
	}
	if err != nil {
		return msg, s.called, err
	}
	msg.bytes, msg.left = s.out, s.left
	var is bool
	if msg.object, is = objectOf(s.out); !is {
		return msg, false, errMessage
	}
	return msg, s.called, msg.check()
}

// check says why a message may not pass.
func (m *message) check() error {
	if version := m.get("jsonrpc"); version != nil && string(version) != `"2.0"` { // some agents leave it out
		return errVersion
	}
	method, params, result, failed := m.get("method"), m.get("params"), m.get("result"), m.get("error")
	given := 0
	for _, value := range []json.RawMessage{method, result, failed} {
		if value != nil {
			given++
		}
	}
	id := m.get("id")
	switch {
	case given != 1 || method == nil && (params != nil || id == nil):
		return errForm
	case id != nil && m.id == nil && (failed == nil || string(id) != "null"):
		return errID
	case method != nil:
		if m.method = unquote(method); method[0] != '"' || !aMethod().MatchString(m.method) {
			m.method = ""
			return errMethod
		}
		if params != nil && !objectOrNull(params) {
			return errParams
		}
	// Some parsers read an object from a list of its values.
	case result != nil && !objectOrNull(result):
		return errResult
	case failed != nil:
		fields, is := objectOf(failed)
		if _, err := strconv.ParseInt(string(fields.get("code")), 10, 32); !is || err != nil {
			return errError
		}
		if text := fields.get("message"); text == nil || text[0] != '"' {
			return errError
		}
		if data := fields.get("data"); data != nil && data[0] == '[' {
			return errError
		}
	}
	return nil
}

func objectOrNull(value json.RawMessage) bool { return value[0] == '{' || string(value) == "null" }

// maxID bounds an id in bytes.
const maxID = 256

// validID reports whether an id is one that every parser reads alike.
func validID(id []byte) bool {
	if id[0] == '"' {
		return len(id) <= maxID
	}
	const mostExact = 1<<53 - 1
	number, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && number >= -mostExact && number <= mostExact && string(id) != "-0"
}
