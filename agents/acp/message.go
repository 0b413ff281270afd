package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// member is a member of a JSON object, whose value keeps its bytes.
type member struct {
	key   string
	value json.RawMessage
}

// object is a JSON object in the order of its text.
type object []member

var errNotObject = errors.New("expected a JSON object")

// parseObject reads one JSON object, and nothing behind it. A key that is there
// twice is an error: parsers disagree which of both counts.
func parseObject(text []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, errNotObject
	}
	var list object
	seen := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // or the decoder would have failed
		if seen[name] {
			return nil, fmt.Errorf("the key %q is there twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		list = append(list, member{name, value})
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text behind the JSON object")
	}
	return list, nil
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
func (o object) text(key string) string {
	var text string
	if json.Unmarshal(o.get(key), &text) != nil {
		return ""
	}
	return text
}

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

// without returns the object without a key.
func (o object) without(key string) object {
	var rest object
	for _, m := range o {
		if m.key != key {
			rest = append(rest, m)
		}
	}
	return rest
}

func (o object) bytes() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(m.key))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
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
	method string          // "" for a response
	id     json.RawMessage // nil for a notification
}

// parseMessage reads a message. What parsers read in different ways is an error,
// such as "Method" beside "method": both ends must mean the same by it.
func parseMessage(text []byte) (message, error) {
	fields, err := parseObject(text)
	if err != nil {
		return message{}, err
	}
	for _, m := range fields {
		for _, name := range []string{"jsonrpc", "method", "id", "params", "result", "error"} {
			if m.key != name && strings.EqualFold(m.key, name) {
				return message{}, fmt.Errorf("the key %q is not %q", m.key, name)
			}
		}
	}
	msg := message{object: fields, id: fields.get("id")}
	if method := fields.get("method"); method != nil {
		if json.Unmarshal(method, &msg.method) != nil || msg.method == "" {
			return message{}, errors.New("the method is not a name")
		}
	}
	return msg, nil
}

// each calls change with every message of a line: one, or those of a batch.
// change returns what takes the message's place; nil removes it. A line that
// nothing changes keeps its bytes.
func each(line []byte, change func(text []byte) []byte) []byte {
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 || trimmed[0] != '[' {
		return change(trimmed)
	}
	var batch []json.RawMessage
	if json.Unmarshal(trimmed, &batch) != nil {
		return change(trimmed) // reports it
	}
	changed := len(batch) == 0
	var kept []json.RawMessage
	for _, text := range batch {
		now := change(text)
		changed = changed || !bytes.Equal(now, text)
		if now != nil {
			kept = append(kept, now)
		}
	}
	switch {
	case !changed:
		return trimmed
	case kept == nil:
		return nil
	}
	return encode(kept)
}
