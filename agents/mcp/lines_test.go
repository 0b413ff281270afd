//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
)

// What is no message is answered, and what follows arrives.
func TestReadable(t *testing.T) {
	t.Parallel()
	const request, notification = `{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","method":"b"}`
	for name, test := range map[string]struct {
		in, passed string
		refused    string
	}{
		"messages":        {request + "\n" + notification + "\r\n", request + "\n" + notification + "\n", ""},
		"the last line":   {request, request + "\n", ""},
		"nothing":         {"", "", ""},
		"empty lines":     {"\n \r\n" + request + "\n", request + "\n", ""},
		"a batch":         {"[" + request + "," + notification + "]\n", request + "\n" + notification + "\n", ""},
		"no JSON":         {"hello\n" + request + "\n", request + "\n", "-32700"},
		"two on a line":   {request + request + "\n" + request + "\n", request + "\n", "-32700"},
		"half a message":  {request[:9] + "\n" + request + "\n", request + "\n", "-32700"},
		"no UTF-8":        {"\"\xff\n" + request + "\n", request + "\n", "-32700"},
		"NUL":             {"\x00\n" + request + "\n", request + "\n", "-32700"},
		"an empty batch":  {"[]\n" + request + "\n", request + "\n", "-32600"},
		"a bad batch":     {`[1,` + request + "]\n", request + "\n", "-32600"},
		"no object":       {"5\n\"text\"\nnull\n" + request + "\n", request + "\n", "-32600 -32600 -32600"},
		"another version": {`{"jsonrpc":"1.0","id":1,"method":"a"}` + "\n" + request + "\n", request + "\n", "-32600"},
		"an odd id": {
			`{"jsonrpc":"2.0","id":[1],"method":"a"}` + "\n" + request + "\n", request + "\n", "-32600",
		},
		"an odd method":    {`{"jsonrpc":"2.0","id":1,"method":5}` + "\n" + request + "\n", request + "\n", "-32600"},
		"no id, no method": {`{"jsonrpc":"2.0"}` + "\n" + request + "\n", request + "\n", "-32600"},
		"a deep one": {
			strings.Repeat("[", 20_000) + "\n" + request + "\n", request + "\n", "-32700",
		},
		"a long line":      {strings.Repeat("x", maxLine+1) + "\n" + request + "\n", request + "\n", "-32600"},
		"a long last line": {request + "\n" + strings.Repeat("x", maxLine+1), request + "\n", "-32700"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answers bytes.Buffer
			passed, err := io.ReadAll(readable(io.NopCloser(strings.NewReader(test.in)), &answers))
			if err != nil || string(passed) != test.passed {
				t.Errorf("passed on: %q, %v", passed, err)
			}
			var codes []string
			for lines := bufio.NewScanner(&answers); lines.Scan(); {
				_, code, _ := strings.Cut(lines.Text(), `"code":`)
				code, _, _ = strings.Cut(code, ",")
				codes = append(codes, code)
				if !strings.Contains(lines.Text(), `"id":null`) {
					t.Errorf("the answer has an id: %s", lines.Text())
				}
			}
			if got := strings.Join(codes, " "); got != test.refused {
				t.Errorf("answers: %q, want %q", got, test.refused)
			}
		})
	}
}
