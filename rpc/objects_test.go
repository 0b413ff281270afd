package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// Every test here is about something that package jsonrpc2 does otherwise. The
// control is that package by itself: if it fails, the package has changed, and
// what we do about it may go.

// ours is what a connection writes that answers every request with {}.
func ours(t *testing.T, in *written) string {
	t.Helper()
	var out written
	c := newConn(newStream(in, &out), func(c *conn, request *jsonrpc2.Request) error {
		if request.Notif {
			return nil
		}
		return c.reply(c.stream.out.answer, request.ID, protocol.Empty{}, nil)
	})
	if err := readAll(c); !errors.Is(err, io.EOF) {
		t.Errorf("reading ended with %v", err)
	}
	return out.String()
}

// theirs is the same of jsonrpc2 by itself.
func theirs(in *written, options ...jsonrpc2.ConnOpt) string {
	var out bytes.Buffer
	stream := jsonrpc2.NewBufferedStream(pipes{in, &out}, jsonrpc2.VSCodeObjectCodec{})
	c := jsonrpc2.NewConn(context.Background(), stream, handlerFunc(func(c *jsonrpc2.Conn, request *jsonrpc2.Request) {
		if !request.Notif {
			_ = c.Reply(context.Background(), request.ID, protocol.Empty{})
		}
	}), options...)
	<-c.DisconnectNotify()
	return out.String()
}

type pipes struct {
	io.Reader
	io.Writer
}

func (pipes) Close() error { return nil }

type handlerFunc func(*jsonrpc2.Conn, *jsonrpc2.Request)

func (h handlerFunc) Handle(_ context.Context, c *jsonrpc2.Conn, request *jsonrpc2.Request) {
	h(c, request)
}

// jsonrpc2 closes the connection on these messages.
func TestObjects_OddMessagesEndNothing(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"{", "5", `[{"id":1,"method":"x"}]`, `{"id":5}`, `{"id":1.5,"method":"x"}`, `{"id":{},"method":"x"}`,
		`{"id":-1,"result":1}`, `{"id":7,"error":"no"}`, `{"id":7,"error":{"code":1.5,"message":"no"}}`,
		`{"id":7,"result":1e400}`,
	} {
		const next, answered = `{"id":"next","method":"y"}`, `"id":"next"`
		if got := ours(t, bodies(body, next)); !strings.Contains(got, answered) {
			t.Errorf("%s: what follows is not answered: %q", body, got)
		}
		if got := theirs(bodies(body, next), jsonrpc2.SetLogger(silent{})); strings.Contains(got, answered) {
			t.Errorf("control: after %s jsonrpc2 answers %q", body, got)
		}
	}
}

// jsonrpc2 holds an id in a Go number or a Go string, and takes null for none.
func TestObjects_IDsComeBackByteForByte(t *testing.T) {
	t.Parallel()
	altered := map[string]bool{"-1": true, "1e400": true, "null": true, `"\ud800"`: true}
	for _, id := range []string{
		"0", "-1", "1.5", "-0", "1e400", "9007199254740993", "18446744073709551616", "123456789012345678901234567890",
		"null", `""`, `"a"`, `"1"`, `"\u0041\n\"\\\/"`, `"<&>"`, `"é` + "\u2028" + `"`, `"\ud800"`,
		`"` + strings.Repeat("x", maxID-2) + `"`,
	} {
		for body, want := range map[string]string{
			`{"jsonrpc":"2.0","method":"x","id": ` + id + ` }`: `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`,
			`{"method":1,"id":` + id + `}`: `{"jsonrpc":"2.0","id":` + id +
				`,"error":{"code":-32600,"message":"the method is not a string"}}`,
		} {
			if got := ours(t, bodies(body)); got != bodies(want).String() {
				t.Errorf("%s: got %q, want %s", body, got, want)
			}
		}
		got := theirs(bodies(`{"method":"x","id":`+id+`}`), jsonrpc2.SetLogger(silent{}))
		if altered[id] && strings.Contains(got, `"id":`+id+`,`) {
			t.Errorf("control: jsonrpc2 returns the id %s: %q", id, got)
		}
	}
}

// jsonrpc2 decodes params and encodes them again. The test is not parallel, so
// that it counts only its own memory.
func TestObjects_ParamsAreNotDecoded(t *testing.T) {
	const size = 4 << 20
	in := bodies(`{"id":1,"method":"x","params":[` + strings.Repeat("0,", size/2) + `0]}`).Bytes()
	allocated := func(read func(*written) string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := read(&written{*bytes.NewBuffer(in)}); !strings.Contains(got, `"id":1`) {
			t.Errorf("not answered: %q", got)
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / size
	}
	if got := allocated(func(in *written) string { return ours(t, in) }); got > 4 {
		t.Errorf("a message costs %d times its size", got)
	}
	if got := allocated(func(in *written) string { return theirs(in) }); got < 20 {
		t.Errorf("control: a message costs jsonrpc2 %d times its size", got)
	}
}

// editorOf connects an editor that the test plays: it sends bodies, and received
// returns the next one that it gets.
func editorOf(t *testing.T, handle func(*conn, *jsonrpc2.Request) error) (c *conn, send func(string),
	received func() string,
) {
	t.Helper()
	in, toConn := io.Pipe()
	fromConn, out := io.Pipe()
	c = newConn(newStream(in, out), handle)
	c.start()
	editor := newStream(fromConn, toConn)
	t.Cleanup(func() {
		toConn.Close()
		fromConn.Close()
		c.stream.out.close(timeout)
		c.close()
		editor.out.close(timeout)
	})
	send = func(body string) {
		if err := editor.out.send([]byte(body)); err != nil {
			t.Error(err)
		}
	}
	received = func() string {
		body, err := editor.readFrame()
		if err != nil {
			t.Error(err)
		}
		return string(body)
	}
	return c, send, received
}

// Clients read the first bytes of a request without a decoder, so the order of
// its members must stay.
func TestObjects_RequestsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	c, send, received := editorOf(t, nil)
	params := map[string]string{"a": "<\u2028>"}
	const sent = `{"a":"\u003c\u2028\u003e"}`
	for i := range 3 {
		answered := make(chan error, 1)
		go func() { answered <- c.Call(t.Context(), "ask", params, new(any)) }()
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ask","params":%s}`, i+1, sent)
		if got := received(); got != want {
			t.Errorf("request: got %s, want %s", got, want)
		}
		send(fmt.Sprintf(`{"id":%d,"result":null}`, i+1))
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	go func() { _ = c.Notify(t.Context(), "tell", params) }()
	if got, want := received(), `{"jsonrpc":"2.0","method":"tell","params":`+sent+`}`; got != want {
		t.Errorf("notification: got %s, want %s", got, want)
	}
	if body, err := json.Marshal(jsonrpc2.Request{Method: "ask"}); err != nil ||
		string(body) != `{"id":0,"jsonrpc":"2.0","method":"ask"}` {
		t.Errorf("control: jsonrpc2 writes %s, %v", body, err)
	}
}

// A call gets its own answer, whatever else an editor sends, and answers that
// jsonrpc2 cannot read.
func TestObjects_CallsGetTheirAnswers(t *testing.T) {
	t.Parallel()
	c, send, received := editorOf(t, nil)
	for member, want := range map[string]string{
		`"result":{"decision":"allow"}`:                                               "allow",
		`"result":{"decision":"allow","more":1e400}`:                                  "allow",
		`"result":{"decision":"allow","more":[` + strings.Repeat("0,", 1<<20) + `0]}`: "allow",
		`"result":{"decision":"allow"},"error":null`:                                  "allow",
		`"result":null`: "",
		`"result":[]`:   "ask: json: cannot unmarshal array",
		`"error":{"code":5,"message":"no","data":[1]}`: "ask: jsonrpc2: code 5 message: no",
		`"error":{}`:                       "ask: jsonrpc2: code 0 message: ",
		`"error":"text"`:                   "ask: jsonrpc2: code -32600",
		`"error":{"code":1.5,"message":7}`: "ask: jsonrpc2: code -32600",
		`"error":[` + strings.Repeat("0,", 1<<20) + `0]`:                                "ask: jsonrpc2: code -32600",
		`"result":{"decision":"` + strings.Repeat("x", 1<<20) + `"},"error":{"code":1}`: "ask: jsonrpc2: code 1",
	} {
		type outcome struct {
			result protocol.RequestAccessResult
			err    error
		}
		got := make(chan outcome, 1)
		go func() {
			var o outcome
			o.err = c.Call(t.Context(), "ask", protocol.Empty{}, &o.result)
			got <- o
		}()
		var request struct{ ID uint64 }
		if err := json.Unmarshal([]byte(received()), &request); err != nil || request.ID == 0 {
			t.Fatalf("request %d, %v", request.ID, err)
		}
		others := []string{"null", "0", "-1", "1e0", "1.0", fmt.Sprintf(`"%d"`, request.ID), fmt.Sprint(request.ID + 1)}
		for _, id := range others {
			send(`{"id":` + id + `,"result":{"decision":"another's"}}`)
			send(`{"id":` + id + `,"error":{"code":1,"message":"another's"}}`)
		}
		send(fmt.Sprintf(`{"id":%d,%s}`, request.ID, member))
		o := <-got
		text := string(o.result.Decision)
		if o.err != nil {
			text = o.err.Error()
		}
		if !strings.HasPrefix(text, want) || (want == "") != (text == "") {
			t.Errorf("%.60s: got %q, want %q", member, text, want)
		}
	}
}

// held is how many calls jsonrpc2 holds.
func held(c *conn) int { return reflect.ValueOf(c.rpc).Elem().FieldByName("pending").Len() }

// jsonrpc2 holds a call for which nobody waits until its answer comes. An editor
// that gives none costs no memory beyond some calls.
func TestObjects_DesertedCallsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counted := make(chan int)
		c, send, received := editorOf(t, func(c *conn, _ *jsonrpc2.Request) error {
			counted <- held(c) // on the goroutine that changes it
			return nil
		})
		synctest.Wait() // it waits for a message
		const calls = maxDeserted
		for i := range calls {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Call(ctx, "ask", protocol.Empty{}, nil) }()
			received()
			cancel()
			want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}`, i+1)
			if got := received(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("call: %v", err)
			}
		}
		if err := c.Call(t.Context(), "ask", protocol.Empty{}, nil); !errors.Is(err, errUnanswered) {
			t.Errorf("one call more: %v", err)
		}
		send(`{"method":"x"}`)
		if got := <-counted; got != calls {
			t.Errorf("control: jsonrpc2 holds %d of %d calls", got, calls)
		}
		send(`{"id":1,"result":null}`) // late
		send(`{"method":"x"}`)
		if got := <-counted; got != 0 {
			t.Errorf("%d calls are held", got)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Call(t.Context(), "ask", protocol.Empty{}, nil) }()
		received()
		send(fmt.Sprintf(`{"id":%d,"result":null}`, calls+1))
		if err := <-ended; err != nil {
			t.Errorf("a call after that: %v", err)
		}
	})
}

// jsonrpc2 sends nothing after the end of input. What was read before is
// answered, in whatever order the answers come, and so are calls of our own.
func TestObjects_AnswersComeAfterTheEndOfInput(t *testing.T) {
	t.Parallel()
	const requests = 100
	in := &written{}
	for i := range requests {
		in.Write(bodies(fmt.Sprintf(`{"id":%d,"method":"x"}`, i)).Bytes())
	}
	var out written
	var answers []func() error
	c := newConn(newStream(in, &out), func(c *conn, request *jsonrpc2.Request) error {
		answers = append(answers, func() error { return c.reply(c.stream.out.send, request.ID, protocol.Empty{}, nil) })
		return nil
	})
	c.start()
	if err := <-c.stream.ended; !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
	var all sync.WaitGroup
	for _, answer := range answers {
		all.Go(func() {
			if err := answer(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c.stream.out.close(time.Minute)
	c.close()
	for i := range requests {
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i); !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing", want)
		}
	}
	if err := answers[0](); !errors.Is(err, jsonrpc2.ErrClosed) {
		t.Errorf("an answer after close: %v", err)
	}

	control := jsonrpc2.NewConn(context.Background(), jsonrpc2.NewBufferedStream(
		pipes{&written{}, io.Discard}, jsonrpc2.VSCodeObjectCodec{}), nil)
	<-control.DisconnectNotify()
	if err := control.Reply(context.Background(), jsonrpc2.ID{}, 1); !errors.Is(err, jsonrpc2.ErrClosed) {
		t.Errorf("control: jsonrpc2 answers after the end of input: %v", err)
	}
}

// The end of a connection ends a call that waits.
func TestObjects_CloseEndsCalls(t *testing.T) {
	t.Parallel()
	c, _, received := editorOf(t, nil)
	ended := make(chan error, 1)
	go func() { ended <- c.Call(t.Context(), "ask", protocol.Empty{}, nil) }()
	received()
	_ = c.rpc.Close()
	if err := <-ended; !errors.Is(err, jsonrpc2.ErrClosed) {
		t.Errorf("call: %v", err)
	}
}

// jsonrpc2 holds a lock while it writes. However many wait for an editor that
// does not read, whoever must not wait does not.
func TestObjects_NobodyWaitsForALock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		editor := stuck{make(chan struct{})}
		c := newConn(newStream(&written{}, editor), nil)
		c.start()
		const senders = 100
		ended := make(chan error, senders)
		for i := range senders {
			go func() {
				if i%2 == 0 {
					ended <- c.Notify(context.Background(), "tell", protocol.Empty{})
				} else {
					ended <- c.reply(c.stream.out.send, rawID("1"), protocol.Empty{}, nil)
				}
			}()
		}
		synctest.Wait()
		if got := len(ended); got != queueLength+1 {
			t.Errorf("%d senders wait no more, want %d", got, queueLength+1)
		}
		begun := time.Now()
		for range readerQueueLength / 4 {
			if err := c.reply(c.stream.out.answer, rawID("2"), protocol.Empty{}, nil); err != nil {
				t.Fatal(err)
			}
			c.logLine(protocol.LogInfo, "line")
		}
		if elapsed := time.Since(begun); elapsed > 0 {
			t.Errorf("the goroutine that reads waited for %v", elapsed)
		}
		close(editor.closed)
		for range senders {
			<-ended
		}
		c.stream.out.close(time.Minute)
		c.close()
	})
}

// jsonrpc2 reads as soon as a connection is made.
func TestObjects_ReadsNothingBeforeTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		handled := false
		c := newConn(newStream(bodies(`{"method":"x"}`), io.Discard), func(*conn, *jsonrpc2.Request) error {
			handled = true
			return nil
		})
		synctest.Wait()
		if handled {
			t.Error("a message was handled before the start")
		}
		if err := readAll(c); !handled {
			t.Errorf("control: no message was handled: %v", err)
		}
	})
}

// jsonrpc2 writes to stderr, in a form of its own and with what an editor sent.
// The test is not parallel, because it replaces stderr.
func TestObjects_NothingIsLogged(t *testing.T) {
	logged := func(read func(*written) string) string {
		file, err := os.CreateTemp(t.TempDir(), "stderr")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		stderr := os.Stderr
		os.Stderr = file
		defer func() { os.Stderr = stderr }()
		read(bodies(`{"id":7,"result":1}`))
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := logged(func(in *written) string { return ours(t, in) }); got != "" {
		t.Errorf("logged: %q", got)
	}
	if got := logged(func(in *written) string { return theirs(in) }); !strings.Contains(got, "jsonrpc2") {
		t.Errorf("control: jsonrpc2 logs %q", got)
	}
}

// A handler that fails ends reading with its error, and no further message is
// read.
func TestObjects_AHandlerThatFailsEndsReading(t *testing.T) {
	t.Parallel()
	calls, failure := 0, errors.New("enough")
	in := bodies(`{"method":"x"}`, `{"method":"x"}`)
	c := newConn(newStream(in, io.Discard), func(*conn, *jsonrpc2.Request) error {
		calls++
		return failure
	})
	if err := readAll(c); !errors.Is(err, failure) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
