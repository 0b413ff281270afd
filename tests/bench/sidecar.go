//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// sidecar is a connection that does as little as a client can, so that the
// sidecar alone is measured: it counts output without decoding it.
type sidecar struct {
	command *exec.Cmd
	project string

	writing sync.Mutex
	in      io.WriteCloser

	mu       sync.Mutex // guards the fields below
	sessions map[string]*session
	calls    map[int]chan json.RawMessage
	last     int
	failed   error
	changed  chan struct{} // closed at the next notification of changed settings; nil if nothing waits for one
}

type answer struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Params json.RawMessage `json:"params"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startSidecar starts one with a settings file.
func startSidecar(program, settings, project string, env []string) (*sidecar, error) {
	return startSidecarIn(nil, program, settings, project, env)
}

// startSidecarIn starts one by a command that becomes it.
func startSidecarIn(place []string, program, settings, project string, env []string) (*sidecar, error) {
	argv := append(slices.Clone(place), program, "serve", "--log-level", "error", "--settings", settings)
	s := &sidecar{
		command: exec.Command(argv[0], argv[1:]...), project: project,
		sessions: map[string]*session{}, calls: map[int]chan json.RawMessage{},
	}
	s.command.Env = env
	in, out, err := startPiped(s.command)
	if err != nil {
		return nil, err
	}
	s.in = in
	go s.read(bufio.NewReaderSize(out, 256<<10))
	params := protocol.InitializeParams{ClientInfo: &protocol.ClientInfo{Name: "bench"}}
	if _, err := call(s, protocol.Initialize, params); err != nil {
		s.stop()
		return nil, err
	}
	return s, s.send(message{Method: protocol.Initialized.Method, Params: protocol.Empty{}})
}

func (s *sidecar) pid() int { return s.command.Process.Pid }

func (s *sidecar) stop() {
	if _, err := call(s, protocol.Shutdown, protocol.Empty{}); err == nil {
		_ = s.send(message{Method: protocol.Exit.Method, Params: protocol.Empty{}})
	}
	s.in.Close()
	_ = s.command.Wait()
}

// outputHead begins the only kind of message that is not decoded.
var outputHead = []byte(`{"jsonrpc":"2.0","method":"terminal/output","params":{"sessionId":"`)

const idLength = 36

func (s *sidecar) read(in *bufio.Reader) {
	var body []byte
	for {
		length, err := readHeader(in)
		if err == nil {
			if cap(body) < length {
				body = make([]byte, length)
			}
			body = body[:length]
			_, err = io.ReadFull(in, body)
		}
		if err != nil {
			s.fail(fmt.Errorf("read from the sidecar: %w", err))
			return
		}
		if bytes.HasPrefix(body, outputHead) {
			id := string(body[len(outputHead) : len(outputHead)+idLength])
			s.session(id).took(outputLength(body))
			continue
		}
		s.take(body)
	}
}

// readHeader reads a frame's header and returns the length of its body.
func readHeader(in *bufio.Reader) (int, error) {
	length := -1
	for {
		text, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		text = bytes.TrimRight(text, "\r\n")
		if len(text) == 0 {
			if length < 0 {
				return 0, fmt.Errorf("a frame has no Content-Length")
			}
			return length, nil
		}
		if value, ok := bytes.CutPrefix(text, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
}

// outputLength is the length of the bytes in an output message, computed from
// their base64.
func outputLength(body []byte) int {
	const between, tail = `","data":"`, `"}}`
	encoded := body[len(outputHead)+idLength+len(between) : len(body)-len(tail)]
	padding := len(encoded) - len(bytes.TrimRight(encoded, "="))
	return base64.StdEncoding.DecodedLen(len(encoded)) - padding
}

func (s *sidecar) take(body []byte) {
	var got answer
	if json.Unmarshal(body, &got) != nil {
		return
	}
	switch {
	case got.Method == protocol.Exited.Method:
		var params protocol.ExitedParams
		if json.Unmarshal(got.Params, &params) == nil {
			close(s.session(params.SessionID).exited)
		}
	case got.Method == protocol.SettingsChanged.Method:
		s.mu.Lock()
		if s.changed != nil {
			close(s.changed)
			s.changed = nil
		}
		s.mu.Unlock()
	case got.ID != nil && got.Method == "":
		s.mu.Lock()
		waiting := s.calls[*got.ID]
		delete(s.calls, *got.ID)
		if got.Error != nil {
			s.failed = fmt.Errorf("the sidecar refuses: %s", got.Error.Message)
		}
		s.mu.Unlock()
		if waiting == nil {
			return
		}
		if got.Error == nil {
			waiting <- got.Result
		}
		close(waiting)
	}
}

// fail ends every call with an error.
func (s *sidecar) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	for id, waiting := range s.calls {
		delete(s.calls, id)
		close(waiting)
	}
}

func (s *sidecar) session(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[id] == nil {
		s.sessions[id] = newSession()
	}
	return s.sessions[id]
}

// onChange returns a channel that the next change of settings closes.
func (s *sidecar) onChange() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = make(chan struct{})
	return s.changed
}

type message struct {
	ID     *int
	Method string
	Params any
}

func (s *sidecar) send(m message) error {
	body, err := json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      *int   `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", m.ID, m.Method, m.Params})
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err = s.in.Write(append([]byte("Content-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...))
	return err
}

// call sends a request and waits for its answer.
func call[P, R any](s *sidecar, method protocol.Request[P, R], params P) (R, error) {
	var result R
	waiting := make(chan json.RawMessage, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.calls[id] = waiting
	s.mu.Unlock()
	if err := s.send(message{ID: &id, Method: method.Method, Params: params}); err != nil {
		return result, err
	}
	raw, ok := <-waiting
	if !ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		return result, fmt.Errorf("%s: %w", method.Method, s.failed)
	}
	return result, json.Unmarshal(raw, &result)
}

func (s *sidecar) start(argv ...string) (*session, error) {
	return s.spawn(protocol.SpawnParams{Kind: protocol.Terminal, Command: argv[0], Args: argv[1:]})
}

func (s *sidecar) spawn(params protocol.SpawnParams) (*session, error) {
	id := uuid.NewString()
	params.SessionID, params.Cwd = id, s.project
	if params.Args == nil {
		params.Args = []string{}
	}
	started := s.session(id)
	if _, err := call(s, protocol.Spawn, params); err != nil {
		return nil, err
	}
	started.write = func(data []byte) error {
		return s.send(message{Method: protocol.Input.Method, Params: protocol.InputParams{SessionID: id, Data: data}})
	}
	started.close = func() error {
		none := 0
		_, err := call(s, protocol.Close, protocol.CloseParams{SessionID: id, GraceMs: &none})
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, id)
		return err
	}
	return started, nil
}

// sandboxed reports whether sessions are sandboxed, by the reply to the first
// one.
func (s *sidecar) sandboxed() (string, error) {
	id := uuid.NewString()
	s.session(id)
	result, err := call(s, protocol.Spawn, protocol.SpawnParams{
		SessionID: id, Cwd: s.project, Command: "/bin/true",
		Args: []string{},
	})
	if err != nil {
		return "", err
	}
	var enforced []string
	for name, protection := range result.Sandbox.Protections {
		if protection.Status == "enforced" {
			enforced = append(enforced, name)
		}
	}
	none := 0
	_, err = call(s, protocol.Close, protocol.CloseParams{SessionID: id, GraceMs: &none})
	return fmt.Sprintf("%s, %d protections, tracked by %s", result.Sandbox.Status, len(enforced),
		strings.ReplaceAll(result.Tracking.Mechanism, "_", " ")), err
}
