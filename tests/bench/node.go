//go:build linux

package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

//go:embed node.cjs
var nodeScript []byte

// node is a Node.js process with node-pty, as in VS Code. It is no sandbox.
type node struct {
	command *exec.Cmd
	dir     string
	frames  bool

	writing sync.Mutex
	in      io.WriteCloser

	mu       sync.Mutex // guards the fields below
	sessions map[string]*session
}

// startNode starts one. With frames it sends the output here; without, it only
// counts, and sends the number.
func startNode(module, dir string, frames bool) (*node, error) {
	script := filepath.Join(filepath.Dir(dir), "node.cjs")
	if err := os.WriteFile(script, nodeScript, 0o600); err != nil {
		return nil, err
	}
	n := &node{command: exec.Command("node", script, module), dir: dir, frames: frames, sessions: map[string]*session{}}
	in, out, err := startPiped(n.command)
	if err != nil {
		return nil, err
	}
	n.in = in
	lines := bufio.NewReaderSize(out, 1<<20)
	if _, err := readLine(lines); err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	go n.read(lines)
	return n, nil
}

func (n *node) pid() int { return n.command.Process.Pid }

func (n *node) stop() {
	n.in.Close()
	_ = n.command.Process.Kill()
	_ = n.command.Wait()
}

func (n *node) read(in *bufio.Reader) {
	for {
		text, err := readLine(in)
		if err != nil {
			return
		}
		n.mu.Lock()
		s := n.sessions[string(member(text, "id"))]
		n.mu.Unlock()
		if s == nil {
			continue
		}
		if data := member(text, "data"); data != nil {
			s.took(len(data)) // correct for text that JSON does not escape
			continue
		}
		var got struct {
			First, Exited bool
			Bytes         int64
		}
		if json.Unmarshal(text, &got) != nil {
			continue
		}
		if got.First {
			s.took(0)
		}
		if got.Exited {
			s.read.Store(got.Bytes)
			close(s.exited)
		}
	}
}

func (n *node) send(m map[string]any) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	n.writing.Lock()
	defer n.writing.Unlock()
	_, err = n.in.Write(append(body, '\n'))
	return err
}

func (n *node) start(argv ...string) (*session, error) {
	s := newSession()
	n.mu.Lock()
	id := "n" + strconv.Itoa(len(n.sessions))
	n.sessions[id] = s
	n.mu.Unlock()
	s.write = func(data []byte) error { return n.send(map[string]any{"op": "write", "id": id, "data": string(data)}) }
	s.close = func() error {
		select {
		case <-s.exited:
			return nil
		default:
		}
		if err := n.send(map[string]any{"op": "kill", "id": id}); err != nil {
			return err
		}
		return await("a program's end", s.exited)
	}
	return s, n.send(map[string]any{"op": "start", "id": id, "argv": argv, "dir": n.dir, "frames": n.frames})
}
