package rpc

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

func TestDecodeParams_Lenient(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, params string
		into, want   any
	}{
		{"absent params", "", &protocol.Empty{}, protocol.Empty{}},
		{"null", "null", &protocol.SessionParams{}, protocol.SessionParams{}},
		{"[] for an empty object", "[]", &protocol.Empty{}, protocol.Empty{}},
		{"[] with blanks", " [ ] ", &protocol.Empty{}, protocol.Empty{}},
		{
			"[] for an object inside", `{"cwd":"/","env":[],"cols":7}`, &protocol.SpawnParams{},
			protocol.SpawnParams{Cwd: "/", Env: map[string]string{}, Cols: 7},
		},
		{
			"[] for an object behind a pointer", `{"cwd":"/","shell":[]}`, &protocol.SpawnParams{},
			protocol.SpawnParams{Cwd: "/", Shell: &protocol.Shell{}},
		},
		{
			"[] for two of them", `{"processId":null,"capabilities":[],"initializationOptions":[]}`,
			&protocol.InitializeParams{},
			protocol.InitializeParams{InitializationOptions: &protocol.InitializationOptions{}},
		},
		{
			"[] stays an array if one is expected", `{"cwd":"/","args":[]}`, &protocol.SpawnParams{},
			protocol.SpawnParams{Cwd: "/", Args: []string{}},
		},
		{
			"unknown fields", `{"sessionId":"a","colour":{"red":[1]}}`, &protocol.SessionParams{},
			protocol.SessionParams{SessionID: "a"},
		},
		{
			"base64", `{"sessionId":"a","data":"aGk="}`, &protocol.InputParams{},
			protocol.InputParams{SessionID: "a", Data: []byte("hi")},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, err := decodeParams([]byte(test.params), test.into); err != nil {
				t.Fatal(err)
			}
			if got := reflect.ValueOf(test.into).Elem().Interface(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestDecodeParams_NamesTheField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, params string
		into         any
		want         string
	}{
		{
			"a number for a string", `{"sessionId":5}`, &protocol.SessionParams{},
			"params.sessionId: expected a string, found number",
		},
		{
			"a string for an integer", `{"cols":"80"}`, &protocol.ResizeParams{},
			"params.cols: expected an integer, found string",
		},
		{
			"a fraction for an integer", `{"cols":1.5}`, &protocol.ResizeParams{},
			"params.cols: expected an integer, found number 1.5",
		},
		{
			"an integer that is too large", `{"cols":1e30}`, &protocol.ResizeParams{},
			"params.cols: expected an integer, found number 1e30",
		},
		{
			"an object for an array", `{"args":{}}`, &protocol.SpawnParams{},
			"params.args: expected an array, found object",
		},
		{
			"a filled array for an object", `{"env":["A=b"]}`, &protocol.SpawnParams{},
			"params.env: expected an object, found array",
		},
		{
			"a word for a flag", `{"capabilities":{"flowControl":"yes"}}`, &protocol.InitializeParams{},
			"params.capabilities.flowControl: expected true or false, found string",
		},
		{
			"a field of an object inside", `{"shell":{"program":[]}}`, &protocol.SpawnParams{},
			"params.shell.program: expected a string, found array",
		},
		{
			"a field of an array", `{"workspaceFolders":[{"path":"/"},{"path":1}]}`, &protocol.InitializeParams{},
			"params.workspaceFolders.path: expected a string, found number",
		},
		{"a number for bytes", `{"data":5}`, &protocol.InputParams{}, "params.data: expected a base64 string, " +
			"found number"},
		{
			"no base64", `{"data":"%%%"}`, &protocol.InputParams{},
			"params.data: expected base64, found an invalid character at byte 0",
		},
		{"a word for everything", `"words"`, &protocol.SpawnParams{}, "params: expected an object, found string"},
		{"a filled array for everything", `[1]`, &protocol.SpawnParams{}, "params: expected an object, found array"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := decodeParams([]byte(test.params), test.into)
			var wire *wireError
			if !errors.As(err, &wire) || wire.code != protocol.CodeInvalidParams || wire.message != test.want {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// Decoding never panics, and every error has CodeInvalidParams and names
// params.
func FuzzDecodeParams(f *testing.F) {
	for _, seed := range []string{
		"", "null", "[]", `{"env":[]}`, `{"shell":[],"env":{"a":[]}}`, `[[]]`, `{"args":[[]]}`,
		`{"cols":1e999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		for _, into := range []any{&protocol.SpawnParams{}, &protocol.InitializeParams{}, &protocol.InputParams{}} {
			_, err := decodeParams(params, into)
			var wire *wireError
			if err != nil && (!errors.As(err, &wire) || wire.code != protocol.CodeInvalidParams ||
				!strings.HasPrefix(fmt.Sprint(err), "params")) {
				t.Fatalf("%q: %v", params, err)
			}
		}
	})
}
