package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// peer is the sidecar's end of a client's pipes, with framing code of its own.
type peer struct {
	t   *testing.T
	in  *bufio.Reader
	out io.WriteCloser
}

// connect makes a client and its peer.
func connect(t *testing.T) (*client.Client, *peer) {
	t.Helper()
	fromPeer, toClient := io.Pipe()
	fromClient, toPeer := io.Pipe()
	c := client.New(fromPeer, toPeer)
	t.Cleanup(func() { _ = c.HangUp() })
	return c, &peer{t: t, in: bufio.NewReader(fromClient), out: toClient}
}

// message is a message of the client.
type message struct {
	Method string
	ID     json.RawMessage
	Params json.RawMessage
	Error  *struct{ Code int }
}

// read reads one message. It may be called from any goroutine.
func (p *peer) read() (message, error) {
	header, err := textproto.NewReader(p.in).ReadMIMEHeader()
	if err != nil {
		return message{}, err
	}
	length, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		return message{}, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(p.in, body); err != nil {
		return message{}, err
	}
	var m message
	return m, json.Unmarshal(body, &m)
}

func (p *peer) write(body string) {
	fmt.Fprintf(p.out, "Content-Length: %d\r\n\r\n%s", len(body), body)
}

// answer answers the next message with a member such as `"result":{}`.
func (p *peer) answer(member string) <-chan message {
	got := make(chan message, 1)
	go func() {
		m, err := p.read()
		if err != nil {
			p.t.Errorf("read request: %v", err)
		}
		got <- m
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, member))
	}()
	return got
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := deadline.Context(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestCall_SendsParamsAndReturnsTheResult(t *testing.T) {
	t.Parallel()
	c, p := connect(t)
	got := p.answer(`"result":{"exitCode":7,"signal":null}`)
	result, err := client.Call(soon(t), c, protocol.Wait, protocol.SessionParams{SessionID: "s"})
	if err != nil || result.ExitCode == nil || *result.ExitCode != 7 {
		t.Errorf("result %+v, %v", result, err)
	}
	if m := <-got; m.Method != "terminal/wait" || string(m.Params) != `{"sessionId":"s"}` {
		t.Errorf("sent %s %s", m.Method, m.Params)
	}
}

// A call whose context ends is cancelled, and its late answer does no harm.
func TestCall_IsCancelledWithItsContext(t *testing.T) {
	t.Parallel()
	c, p := connect(t)
	ctx, cancel := context.WithCancel(soon(t))
	ended := make(chan error, 1)
	go func() {
		_, err := client.Call(ctx, c, protocol.Wait, protocol.SessionParams{SessionID: "s"})
		ended <- err
	}()
	call, err := p.read()
	if err != nil || call.Method != "terminal/wait" {
		t.Fatalf("sent %s: %v", call.Method, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended by %v", err)
	}
	told, err := p.read()
	if want := fmt.Sprintf(`{"id":%s}`, call.ID); err != nil || told.Method != "$/cancelRequest" ||
		string(told.Params) != want {
		t.Errorf("sent %s %s, want the parameters %s: %v", told.Method, told.Params, want, err)
	}
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,"message":"cancelled"}}`, call.ID))
	p.answer(`"result":{"exitCode":7,"signal":null}`)
	result, err := client.Call(soon(t), c, protocol.Wait, protocol.SessionParams{})
	if err != nil || result.ExitCode == nil || *result.ExitCode != 7 {
		t.Errorf("the next call: %+v, %v", result, err)
	}
}

func TestCall_RefusalIsAnErrorWithItsHint(t *testing.T) {
	t.Parallel()
	c, p := connect(t)
	p.answer(`"error":{"code":-32012,"message":"no","data":{"reason":"r","path":"/p","hint":"do"}}`)
	_, err := client.Call(soon(t), c, protocol.Wait, protocol.SessionParams{})
	var refused *client.Error
	if !errors.As(err, &refused) {
		t.Fatalf("error is %v", err)
	}
	if refused.Code != -32012 || refused.Data.Path != "/p" || refused.Error() != "no (-32012); do" {
		t.Errorf("error is %+v: %v", refused, refused)
	}
	p.answer(`"error":{"code":-32601,"message":"unknown"}`)
	if _, err := c.CallRaw(soon(t), "no/such", map[string]int{"a": 1}); err == nil ||
		err.Error() != "unknown (-32601)" {
		t.Errorf("error is %v", err)
	}
}

func TestOn_NotificationsArriveInOrder(t *testing.T) {
	t.Parallel()
	c, p := connect(t)
	var all strings.Builder
	done := make(chan struct{})
	client.On(c, protocol.Output, func(o protocol.OutputParams) { all.Write(o.Data) })
	client.On(c, protocol.Exited, func(protocol.ExitedParams) { close(done) })
	p.write(`{"jsonrpc":"2.0","method":"no/handler","params":{}}`)
	for _, data := range []string{"YQ==", "Yg==", "Yw=="} {
		p.write(`{"jsonrpc":"2.0","method":"terminal/output","params":{"sessionId":"s","data":"` + data + `"}}`)
	}
	p.write(`{"jsonrpc":"2.0","method":"terminal/exited","params":{"sessionId":"s","exitCode":0,"signal":null}}`)
	select {
	case <-done:
	case <-soon(t).Done():
		t.Fatal("the last notification did not arrive")
	}
	if all.String() != "abc" {
		t.Errorf("output is %q", all.String())
	}
}

func TestNew_RequestsToTheClientAreRefused(t *testing.T) {
	t.Parallel()
	_, p := connect(t)
	p.write(`{"jsonrpc":"2.0","id":1,"method":"sandbox/requestAccess","params":{}}`)
	m, err := p.read()
	if err != nil || m.Error == nil || m.Error.Code != -32601 {
		t.Errorf("answer %+v, %v", m, err)
	}
}

func TestGone_WhenThePeerHangsUp(t *testing.T) {
	t.Parallel()
	c, p := connect(t)
	p.out.Close()
	select {
	case <-c.Gone():
	case <-soon(t).Done():
		t.Fatal("the end of the connection was not noticed")
	}
	if _, err := client.Call(soon(t), c, protocol.Wait, protocol.SessionParams{}); err == nil {
		t.Error("a call over a closed connection succeeds")
	}
}

func TestQuit_ShutsDownAndExits(t *testing.T) {
	t.Parallel()
	c, p := connect(t)
	quit := make(chan error, 1)
	ctx := soon(t)
	go func() { quit <- c.Quit(ctx) }()
	if m := <-p.answer(`"result":{}`); m.Method != "shutdown" {
		t.Errorf("sent %s", m.Method)
	}
	if m, err := p.read(); err != nil || m.Method != "exit" || m.ID != nil {
		t.Errorf("sent %+v, %v", m, err)
	}
	if err := <-quit; err != nil {
		t.Error(err)
	}
}

func TestStart_RunsTheCommandAndWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	c, err := client.Start(exec.Command("cat"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Process() <= 0 {
		t.Errorf("process %d", c.Process())
	}
	if err := c.HangUp(); err != nil {
		t.Errorf("cat ends at the end of its input: %v", err)
	}
	if _, err := client.Start(exec.Command("/no/such/sidecar")); err == nil {
		t.Error("a missing sidecar starts")
	}
}
