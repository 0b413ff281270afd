package tests

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// wire is an editor that knows only frames and JSON. It can send what no
// correct editor sends, and checks every message against the protocol's
// promises.
type wire struct {
	process *exec.Cmd
	in      io.WriteCloser
	log     harness.Buffer
	ended   chan struct{} // closed when the process has ended and everything it wrote was read
	status  int           // set before ended is closed

	mu      sync.Mutex // guards the fields below
	changed chan struct{}
	inbox   []message // everything but terminal/output, in order, until find takes it
	outputs map[string][]byte
	spawned map[string]bool // sessions whose spawn was answered
	exited  map[string]bool // sessions whose terminal/exited has come
	broken  []string        // promises that the sidecar broke
	nextID  int
}

// message is any of the three kinds that JSON-RPC has.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func startWire(command *exec.Cmd) (*wire, error) {
	w := &wire{
		process: command, ended: make(chan struct{}), changed: make(chan struct{}),
		outputs: map[string][]byte{}, spawned: map[string]bool{}, exited: map[string]bool{},
	}
	command.Stderr = &w.log
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if w.in, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.ended)
		w.read(bufio.NewReader(out))
		var failed *exec.ExitError
		if err := command.Wait(); err != nil && !errors.As(err, &failed) {
			w.blame("wait: %v", err)
		}
		w.status = command.ProcessState.ExitCode()
		w.update(func() {})
	}()
	return w, nil
}

func (w *wire) read(in *bufio.Reader) {
	for {
		header, err := in.ReadString('\n')
		if err != nil {
			return
		}
		length, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(header, "Content-Length: "), "\r\n"))
		if err != nil {
			w.blame("header %q", header)
			return
		}
		if blank, err := in.ReadString('\n'); err != nil || blank != "\r\n" {
			w.blame("no empty line after %q", header)
			return
		}
		body := make([]byte, length)
		if _, err := io.ReadFull(in, body); err != nil {
			w.blame("body of %d bytes: %v", length, err)
			return
		}
		w.take(body)
	}
}

// take checks one message and keeps it.
func (w *wire) take(body []byte) {
	var members map[string]json.RawMessage
	var m message
	if json.Unmarshal(body, &members) != nil || json.Unmarshal(body, &m) != nil ||
		string(members["jsonrpc"]) != `"2.0"` {
		w.blame("not a message: %s", body)
		return
	}
	_, hasResult := members["result"]
	_, hasError := members["error"]
	if _, isResponse := members["id"]; isResponse && m.Method == "" && hasResult == hasError {
		w.blame("a response holds exactly one of result and error: %s", body)
	}
	var session struct {
		SessionID string `json:"sessionId"`
		PID       int    `json:"pid"`
		Data      []byte `json:"data"`
	}
	w.update(func() {
		switch m.Method {
		case "":
			if json.Unmarshal(m.Result, &session) == nil && session.PID != 0 {
				w.spawned[session.SessionID] = true
				delete(w.exited, session.SessionID) // the id of a session that was closed may be given again
			}
		case "terminal/output", "terminal/exited":
			if json.Unmarshal(m.Params, &session) != nil || !w.spawned[session.SessionID] {
				w.broken = append(w.broken, fmt.Sprintf("before its spawn was answered: %s", body))
			}
			if w.exited[session.SessionID] {
				w.broken = append(w.broken, fmt.Sprintf("after its end was reported: %s", body))
			}
			w.exited[session.SessionID] = m.Method == "terminal/exited"
			if m.Method == "terminal/output" {
				w.outputs[session.SessionID] = append(w.outputs[session.SessionID], session.Data...)
				return
			}
		}
		w.inbox = append(w.inbox, m)
	})
}

func (w *wire) blame(format string, args ...any) {
	w.update(func() { w.broken = append(w.broken, fmt.Sprintf(format, args...)) })
}

func (w *wire) update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits for a condition on the guarded fields. It gives up when the
// sidecar has ended, or after harness.Timeout.
func (w *wire) until(condition func() bool) bool {
	timeout := deadline.After(harness.Timeout)
	for {
		w.mu.Lock()
		met, changed := condition(), w.changed
		w.mu.Unlock()
		if met {
			return true
		}
		select {
		case <-changed:
		case <-w.ended:
			w.mu.Lock()
			defer w.mu.Unlock()
			return condition()
		case <-timeout:
			return false
		}
	}
}

// find takes the first message that matches out of the inbox.
func (w *wire) find(matches func(message) bool) (found message, ok bool) {
	ok = w.until(func() bool {
		for i, m := range w.inbox {
			if matches(m) {
				found = m
				w.inbox = append(w.inbox[:i:i], w.inbox[i+1:]...)
				return true
			}
		}
		return false
	})
	return found, ok
}

func (w *wire) write(bytes string) error {
	_, err := io.WriteString(w.in, bytes)
	return err
}

func frame(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// request sends a request and waits for its answer.
func (w *wire) request(method, params string) (message, error) {
	w.nextID++
	id := strconv.Itoa(w.nextID)
	if err := w.write(frame(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method,
		params))); err != nil {
		return message{}, err
	}
	answer, ok := w.find(func(m message) bool { return m.Method == "" && string(m.ID) == id })
	if !ok {
		return message{}, fmt.Errorf("%s: no answer", method)
	}
	return answer, nil
}

func (w *wire) notify(method, params string) error {
	return w.write(frame(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)))
}

// wait waits for the end of the sidecar and returns its exit status.
func (w *wire) wait() (int, error) {
	select {
	case <-w.ended:
		return w.status, nil
	case <-deadline.After(harness.Timeout):
		return 0, errors.New("the sidecar does not end")
	}
}
