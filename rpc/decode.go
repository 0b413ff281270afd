package rpc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// decodeParams reads params into p. It returns the name of the first field that
// nobody knows; "" if all are known. Newer editors may send such fields.
func decodeParams(raw json.RawMessage, p any) (unknown string, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	unknown, err = unmarshal(raw, p)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Value == "array" {
		// Lua encodes an empty table as [], even if it means an object.
		if lenient, changed := emptyObjects(raw, reflect.TypeOf(p)); changed {
			reflect.ValueOf(p).Elem().SetZero()
			unknown, err = unmarshal(lenient, p)
		}
	}
	if err == nil {
		return unknown, nil
	}
	var corrupt base64.CorruptInputError
	switch {
	case errors.As(err, &corrupt):
		return "", invalidParams("data", "expected base64, found an invalid character at byte %d", int64(corrupt))
	case errors.As(err, &mismatch) && mismatch.Field == "":
		return "", &wireError{
			code:    protocol.CodeInvalidParams,
			message: fmt.Sprintf("params: expected an object, found %s", mismatch.Value),
		}
	case errors.As(err, &mismatch):
		return "", invalidParams(mismatch.Field, "expected %s, found %s", jsonKind(mismatch.Type), mismatch.Value)
	default:
		return "", &wireError{code: protocol.CodeInvalidParams, message: fmt.Sprintf("params: %v", err)}
	}
}

// unmarshal is json.Unmarshal, and names the first unknown field.
func unmarshal(raw []byte, p any) (unknown string, err error) {
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	err = strict.Decode(p)
	if err == nil {
		return "", nil
	}
	quoted, is := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !is {
		return "", err
	}
	if unknown, err = strconv.Unquote(quoted); err != nil {
		unknown = quoted
	}
	// The error hides any other.
	reflect.ValueOf(p).Elem().SetZero()
	return unknown, json.Unmarshal(raw, p)
}

// jsonKind is the JSON name of a Go type.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonKind(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint8:
		return "an integer"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a base64 string"
		}
		return "an array"
	default:
		return "an object"
	}
}

// emptyObjects replaces [] by {} wherever t has an object, and reports whether
// it replaced any.
func emptyObjects(raw json.RawMessage, t reflect.Type) (json.RawMessage, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct && t.Kind() != reflect.Map {
		return raw, false
	}
	if elements := []json.RawMessage(nil); json.Unmarshal(raw, &elements) == nil && elements != nil &&
		len(elements) == 0 {
		return json.RawMessage("{}"), true
	}
	members := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &members) != nil {
		return raw, false
	}
	changed := false
	for name, member := range members {
		if typ, ok := memberType(t, name); ok {
			lenient, memberChanged := emptyObjects(member, typ)
			members[name], changed = lenient, changed || memberChanged
		}
	}
	if !changed {
		return raw, false
	}
	out, err := json.Marshal(members)
	return bytes.TrimSpace(out), err == nil
}

// memberType is the type of a member of an object.
func memberType(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), true
	}
	for field := range t.Fields() {
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name {
			return field.Type, true
		}
	}
	return nil, false
}
