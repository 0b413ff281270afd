package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// bodies are frames that an editor sends.
func bodies(list ...string) *written {
	var in written
	for _, body := range list {
		in.Write(append(appendHeader(nil, len(body)), body...))
	}
	return &in
}

func TestConn_AnswersInvalidMessages(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{"no JSON", "{", `"id":null,"error":{"code":-32700`},
		{"an empty body", "", `"id":null,"error":{"code":-32700`},
		{"bytes that are no text", "\xff\xfe", `"id":null,"error":{"code":-32700`},
		{"bad UTF-16 escapes are JSON, a word is no message", `"\ud800"`, `"id":null,"error":{"code":-32600`},
		{"a number", "5", `"id":null,"error":{"code":-32600`},
		{"null", "null", `"id":null,"error":{"code":-32600`},
		{"a batch", `[{"id":1,"method":"x"}]`, `"id":null,"error":{"code":-32600`},
		{"an object without a method", `{"id":5}`, `"id":5,"error":{"code":-32600`},
		{"a request that is a response too", `{"id":5,"method":"x","result":1}`, `"id":5,"error":{"code":-32600`},
		{"a method of the wrong type", `{"id":"a","method":[]}`, `"id":"a","error":{"code":-32600`},
		{"a method that is null", `{"id":"a","method":null}`, `"id":"a","error":{"code":-32600`},
		{"members in other letters", `{"ID":5,"Method":"x"}`, `"id":null,"error":{"code":-32600`},
		{"an object as id", `{"id":{},"method":"x"}`, `"id":null,"error":{"code":-32600`},
		{"an array as id", `{"id":[1],"method":"x"}`, `"id":null,"error":{"code":-32600`},
		{"true as id", `{"id":true,"method":"x"}`, `"id":null,"error":{"code":-32600`},
		{"an id of bytes that are no text", "{\"id\":\"\xff\",\"method\":\"x\"}", `"id":null,"error":{"code":-32600`},
		{"an id without end", `{"id":"` + strings.Repeat("x", maxID) +
			`","method":"x"}`, `"id":null,"error":{"code":-32600`},
		{"10000 levels deep", strings.Repeat("[", 20000) +
			strings.Repeat("]", 20000), `"id":null,"error":{"code":-32700`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out written
			var got []string
			c := newConn(newStream(bodies(test.body, `{"jsonrpc":"2.0","id":1,"method":"good"}`), &out),
				func(_ *conn, request *jsonrpc2.Request) error {
					got = append(got, request.Method)
					return nil
				})
			err := readAll(c)
			if !errors.Is(err, io.EOF) || fmt.Sprint(got) != "[good]" {
				t.Errorf("the message behind it: got %q, %v", got, err)
			}
			if !strings.Contains(out.String(), test.want) || strings.Count(out.String(), "Content-Length") != 1 {
				t.Errorf("answer: got %q, want %q in it", out.String(), test.want)
			}
		})
	}
}

// readAll reads to the end of a connection's stream, and returns the reason.
func readAll(c *conn) error {
	c.start()
	reason := <-c.stream.ended
	c.stream.out.close(time.Minute)
	c.close()
	return reason
}

// The reading goroutine notices the end of an editor that does not read,
// however much it had to send to it.
func TestConn_ReadsOnWhileNothingIsWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		most int // how many bodies there are
		want error
	}{
		"log lines":               {`{"method":"x"}`, 100_000, io.EOF},
		"answers that fit":        {"{", readerQueueLength + queueLength, io.EOF},
		"answers that do not fit": {"{", readerQueueLength + queueLength + 2, errUnread},
		"many answers":            {"{", 100_000, errUnread},
		"unsolicited answers":     {`{"id":1,"result":{}}`, 100_000, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				editor := stuck{make(chan struct{})}
				in := bytes.Repeat(bodies(test.body).Bytes(), test.most)
				c := newConn(newStream(io.NopCloser(bytes.NewReader(in)), editor),
					func(c *conn, _ *jsonrpc2.Request) error {
						c.logLine(protocol.LogWarning, "ignored")
						return nil
					})
				begun := time.Now()
				c.start()
				err := <-c.stream.ended
				if elapsed := time.Since(begun); !errors.Is(err, test.want) || elapsed > readerTimeout {
					t.Errorf("reading ended after %v with %v, want %v", elapsed, err, test.want)
				}
				close(editor.closed)
				c.stream.out.close(time.Minute)
				c.close()
			})
		})
	}
}

// Log lines that do not fit are counted, and the next one that fits says how
// many there were.
func TestConn_CountsLogLinesThatDoNotFit(t *testing.T) {
	t.Parallel()
	out := &gate{opened: make(chan struct{})}
	c := newConn(newStream(&written{}, out), nil)
	c.start()
	defer c.close()
	const lines = 2000
	c.logLine(protocol.LogInfo, "line")
	// The writer blocks on that line, and makes no room.
	deadline.Until(timeout, func() bool { return c.stream.out.started.Load() > 0 })
	for range lines - 1 {
		c.logLine(protocol.LogInfo, "line")
	}
	close(out.opened)
	deadline.Until(timeout, func() bool { return len(c.stream.out.fromReader) == 0 })
	c.logLine(protocol.LogInfo, "last")
	c.stream.out.close(timeout)
	sent := strings.Count(out.String(), `"message":"line"`)
	if want := fmt.Sprintf(`"message":"last (lines missing before this one: %d)"`, lines-sent); sent == 0 ||
		sent == lines || !strings.Contains(out.String(), want) {
		t.Errorf("%d of %d lines came, want the last to be %s; got %.300s", sent, lines, want,
			out.String()[max(0, out.Len()-300):])
	}
}

// gate writes nothing until it is opened.
type gate struct {
	written
	opened chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.opened
	return g.written.Write(p)
}
