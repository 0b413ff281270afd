//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
)

// codex is OpenAI's app-server, the nearest peer: command/exec with a terminal,
// over stdio, one line of JSON for each message.
type codex struct {
	command *exec.Cmd

	writing sync.Mutex
	in      io.WriteCloser

	mu       sync.Mutex // guards the fields below
	last     int
	sessions map[string]*session
	waiting  map[int]func(error)
}

func startCodex(program, dir string, env []string) (*codex, error) {
	c := &codex{
		command: exec.Command(program, "app-server"), sessions: map[string]*session{},
		waiting: map[int]func(error){},
	}
	c.command.Dir, c.command.Env = dir, env
	in, out, err := startPiped(c.command)
	if err != nil {
		return nil, err
	}
	c.in = in
	go c.read(bufio.NewReaderSize(out, 1<<20))
	err = c.call("initialize", map[string]any{
		"clientInfo":   map[string]any{"name": "bench", "version": "1"},
		"capabilities": map[string]any{"experimentalApi": true},
	})
	if err == nil {
		err = c.send(map[string]any{"method": "initialized"})
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *codex) pid() int { return c.command.Process.Pid }

func (c *codex) stop() {
	c.in.Close()
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
}

var deltaMark = []byte(`"method":"command/exec/outputDelta"`)

func (c *codex) read(in *bufio.Reader) {
	for {
		text, err := readLine(in)
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			for _, done := range c.waiting {
				done(fmt.Errorf("read from codex: %w", err))
			}
			c.waiting = map[int]func(error){}
			return
		}
		if bytes.Contains(text[:min(len(text), 64)], deltaMark) {
			id, encoded := member(text, "processId"), member(text, "deltaBase64")
			padding := len(encoded) - len(bytes.TrimRight(encoded, "="))
			c.mu.Lock()
			s := c.sessions[string(id)]
			c.mu.Unlock()
			if n := base64.StdEncoding.DecodedLen(len(encoded)) - padding; s != nil && n > 0 {
				s.took(n)
			}
			continue
		}
		var got answer
		if json.Unmarshal(text, &got) != nil || got.ID == nil {
			continue
		}
		c.mu.Lock()
		done := c.waiting[*got.ID]
		delete(c.waiting, *got.ID)
		c.mu.Unlock()
		switch {
		case done == nil:
		case got.Error != nil:
			done(errors.New(got.Error.Message))
		default:
			done(nil)
		}
	}
}

// readLine reads a line of any length.
func readLine(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	whole := bytes.Clone(text)
	for errors.Is(err, bufio.ErrBufferFull) {
		text, err = in.ReadSlice('\n')
		whole = append(whole, text...)
	}
	return whole, err
}

// member finds the string value of a member in a JSON text, if the string needs
// no unescaping.
func member(text []byte, name string) []byte {
	_, rest, found := bytes.Cut(text, []byte(`"`+name+`":"`))
	if !found {
		return nil
	}
	value, _, _ := bytes.Cut(rest, []byte{'"'})
	return value
}

func (c *codex) send(m map[string]any) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.in.Write(append(body, '\n'))
	return err
}

// begin sends a request; done gets the answer.
func (c *codex) begin(method string, params any, done func(error)) error {
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = done
	c.mu.Unlock()
	return c.send(map[string]any{"id": id, "method": method, "params": params})
}

func (c *codex) call(method string, params any) error {
	answered := make(chan struct{})
	var failed error
	if err := c.begin(method, params, func(err error) { failed = err; close(answered) }); err != nil {
		return err
	}
	if err := await("codex", answered); err != nil {
		return err
	}
	return failed
}

func (c *codex) start(argv ...string) (*session, error) {
	s := newSession()
	c.mu.Lock()
	id := "p" + strconv.Itoa(len(c.sessions))
	c.sessions[id] = s
	c.mu.Unlock()
	s.write = func(data []byte) error {
		return c.send(map[string]any{"id": 0, "method": "command/exec/write", "params": map[string]any{
			"processId": id, "deltaBase64": base64.StdEncoding.EncodeToString(data),
		}})
	}
	s.close = func() error {
		select {
		case <-s.exited:
			return nil
		default:
		}
		if err := c.call("command/exec/terminate", map[string]any{"processId": id}); err != nil {
			return err
		}
		return await("a program's end", s.exited)
	}
	err := c.begin("command/exec", map[string]any{
		"command": argv, "permissionProfile": ":workspace", "tty": true, "processId": id,
		"size":           map[string]any{"rows": 24, "cols": 80},
		"disableTimeout": true, "disableOutputCap": true,
	}, func(error) { close(s.exited) })
	return s, err
}

// startPiped starts a command whose standard input and output are pipes.
func startPiped(command *exec.Cmd) (in io.WriteCloser, out io.Reader, err error) {
	if out, err = command.StdoutPipe(); err != nil {
		return nil, nil, err
	}
	if in, err = command.StdinPipe(); err != nil {
		return nil, nil, err
	}
	return in, out, command.Start()
}
