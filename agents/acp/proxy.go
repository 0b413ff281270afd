//go:build unix

// Package acp runs an agent in a session, between it and an editor that speaks
// the Agent Client Protocol: a JSON-RPC message a line, versions 1 and 2.
//
// What the agent does itself, the kernel confines. The proxy keeps the editor
// from doing anything for it outside: it hides the editor's terminals and files,
// and refuses requests for them. It puts questions about denials to the user by
// the protocol's own request for permission. Everything else passes as it was
// meant: encoded anew, if no two parsers can read it in different ways.
package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/agents/runner"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

const (
	// maxLine bounds a message in bytes.
	maxLine = 64 << 20
	// grace is how long an agent may go on once the editor has gone.
	grace = 3 * time.Second
	// drain is how long the rest of an output may take once all processes of the
	// agent have ended.
	drain = 2 * time.Second
)

// The error codes of JSON-RPC that the proxy answers with.
const (
	codeInvalidRequest = -32600
	codeUnknownMethod  = -32601
	codeInternal       = -32603
)

// Streams are those of this process: the editor's, and the log.
type Streams struct {
	In       io.Reader
	Out, Log io.Writer
}

// proxy is between an editor and an agent.
type proxy struct {
	streams Streams
	toAgent *queue
	running *runner.Running
	now     func() time.Time

	writing sync.Mutex // held while a line is written to the editor

	refusing sync.Mutex      // guards known
	known    map[string]bool // refusals that were reported

	mu      sync.Mutex // guards the fields below
	version int        // of the protocol, as the agent has answered
	pending map[string]request
	asked   map[string]*question // our own requests, by their ids
	client  string               // the editor's name, as it says itself
	session string               // the last one that the user wrote to
	untold  []string             // refusals that the agent does not know of yet
}

// request is a request of the editor that the agent has not answered.
type request struct {
	id              json.RawMessage
	method, session string
}

func newProxy(streams Streams) *proxy {
	return &proxy{
		streams: streams, pending: map[string]request{}, asked: map[string]*question{},
		known: map[string]bool{}, version: 1, now: time.Now,
	}
}

// Serve runs the agent until it ends, and returns how. It ends the agent if the
// editor goes, or the context ends. An error means that it was not started.
func Serve(ctx context.Context, r *runner.Runner, argv []string, streams Streams) (spawn.Exit, error) {
	p := newProxy(streams)

	var inside, ours [3]*os.File
	defer func() {
		for _, file := range inside {
			if file != nil {
				file.Close()
			}
		}
	}()
	for i := range inside {
		reader, writer, err := os.Pipe()
		if err != nil {
			return spawn.Exit{}, fmt.Errorf("make a pipe: %w", err)
		}
		inside[i], ours[i] = writer, reader
		if i == 0 {
			inside[i], ours[i] = reader, writer
		}
	}
	p.toAgent = newQueue(ours[0])
	defer p.toAgent.close()
	var err error
	p.running, err = r.Start(ctx, runner.Command{Argv: argv, Dir: r.Project, Files: inside, Ask: p.ask})
	if err != nil {
		ours[1].Close()
		ours[2].Close()
		return spawn.Exit{}, err
	}
	for _, warning := range p.running.Warnings() {
		p.log("warning: %s", warning)
	}
	for _, note := range p.running.Notes() {
		p.log("note: %s", note)
	}
	for i := range inside {
		inside[i].Close()
		inside[i] = nil
	}
	return p.serve(ctx, ours[1], ours[2])
}

func (p *proxy) serve(ctx context.Context, out, errors *os.File) (spawn.Exit, error) {
	editorGone := make(chan struct{})
	go func() {
		defer close(editorGone)
		p.fromEditor()
	}()
	var reading sync.WaitGroup
	reading.Go(func() { p.fromAgent(out) })
	reading.Go(func() { _, _ = io.Copy(p.streams.Log, errors) })
	go func() {
		select {
		case <-ctx.Done():
		case <-editorGone:
			p.toAgent.close()
			select {
			case <-time.After(grace):
			case <-ctx.Done():
			case <-p.running.Done():
			}
		case <-p.running.Done():
		}
		p.running.Kill()
		// A process that left the session cannot hold the pipes open for ever.
		_ = out.SetReadDeadline(time.Now().Add(drain))
		_ = errors.SetReadDeadline(time.Now().Add(drain))
	}()
	<-p.running.Done()
	reading.Wait()
	exit, err := p.running.Exit()
	if err != nil {
		p.log("%v", err)
	}
	p.failPending(exit)
	for _, line := range p.running.Limits() {
		p.log("note: %s", line)
	}
	for _, line := range p.running.Changed() {
		p.log("check before programs outside the sandbox use it: %s", line)
	}
	for _, line := range p.refusals() {
		p.log("%s", line)
	}
	return exit, nil
}

// log writes a line for the editor's log.
func (p *proxy) log(format string, args ...any) {
	display.Fprintf(p.streams.Log, "sandbox-sidecar: "+format+"\n", args...)
}

// keptBuffer is how many bytes are kept for the next line.
const keptBuffer = 1 << 20

// lines calls use with each line, without its end. use must not keep it. Of a
// line that is too long it gets the beginning. Empty lines are left out.
func lines(from io.Reader, use func(line []byte, whole bool)) {
	reader := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	for whole := true; ; {
		part, err := reader.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			part, whole = part[:maxLine-len(line)], false
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(bytes.TrimSpace(line)) > 0 {
			use(line, whole)
		}
		if line, whole = line[:0], true; cap(line) > keptBuffer {
			line = nil
		}
		if err != nil {
			return
		}
	}
}

// read reads a message of a line.
func read(line []byte, whole bool, s strict) (msg message, asks bool, err error) {
	s.in = line
	msg, asks, err = parse(&s)
	if !whole {
		err = errTooLong
	}
	return msg, asks, err
}

// fromEditor passes on what the editor says, until it says no more.
func (p *proxy) fromEditor() {
	lines(p.streams.In, func(line []byte, whole bool) {
		msg, asks, err := read(line, whole, strict{})
		switch {
		case err == nil:
			if passed := p.editorSays(msg); passed != nil {
				p.toAgent.put(passed)
			}
			return
		case msg.id == nil:
		case asks:
			p.toEditor(failure(msg.id, codeInvalidRequest, notPassed(err)))
		case p.answered(message{id: msg.id}): // as a refusal
		default:
			p.reply(msg.id, codeInternal, "the answer is "+notPassed(err))
		}
		p.log("a message of the editor is %s", notPassed(err))
	})
}

func notPassed(err error) string { return "not passed on: " + err.Error() }

// editorSays returns what of an editor's message reaches the agent.
func (p *proxy) editorSays(msg message) []byte {
	if msg.method == "" {
		if p.answered(msg) || bytes.HasPrefix(msg.id, []byte(ourIDs)) { // too late, or twice
			return nil
		}
		return msg.bytes
	}
	params, _ := objectOf(msg.get("params"))
	if msg.id != nil {
		p.mu.Lock()
		p.pending[string(msg.id)] = request{bytes.Clone(msg.id), msg.method, params.text("sessionId")}
		p.mu.Unlock()
	}
	switch msg.method {
	case "initialize":
		info, _ := objectOf(params.get("clientInfo"))
		p.mu.Lock()
		p.client = info.text("name")
		p.mu.Unlock()
		return msg.with("params", hide(msg.get("params"))).bytes()
	case "session/prompt":
		return p.prompt(msg, params)
	}
	return msg.bytes
}

// fromAgent passes on what the agent says, until it says no more.
func (p *proxy) fromAgent(out io.Reader) {
	told := false
	lines(out, func(line []byte, whole bool) {
		msg, asks, err := read(line, whole, strict{leave: isTerminalAuth, safe: safeMethods})
		if err == nil {
			if msg.left && !told {
				told = true
				p.log("left out of a message of the agent: a way to sign in outside, or what JSON-RPC does not have")
			}
			if passed := p.agentSays(msg); passed != nil {
				p.toEditor(passed)
			}
			return
		}
		p.log("a message of the agent is %s", notPassed(err))
		if msg.id == nil {
			return
		}
		if asks {
			p.reply(msg.id, codeInvalidRequest, notPassed(err))
		} else if done, found := p.take(msg.id); found {
			p.toEditor(failure(done.id, codeInternal, "the agent's answer is "+notPassed(err)))
			p.ended(done)
		}
	})
}

// agentSays returns what of an agent's message reaches the editor.
func (p *proxy) agentSays(msg message) []byte {
	if prefix := outside(msg.method); prefix != "" {
		p.log("the agent's request %s* is refused: the editor would act outside the sandbox", prefix)
		if msg.id != nil {
			p.reply(msg.id, codeUnknownMethod, "refused by the sandbox: do this yourself, inside: "+msg.method)
		}
		return nil
	}
	if msg.method != "" {
		return msg.bytes
	}
	done, found := p.take(msg.id)
	if found {
		p.ended(done)
	}
	if result := msg.get("result"); found && done.method == "initialize" && result != nil {
		p.negotiated(result)
	}
	return msg.bytes
}

// ended reports what was refused, if a request was a turn of the agent.
func (p *proxy) ended(r request) {
	if r.method == "session/prompt" {
		p.report(r.session)
	}
}

// take returns the editor's request that the agent answers.
func (p *proxy) take(id json.RawMessage) (request, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, found := p.pending[string(id)]
	delete(p.pending, string(id))
	return r, found
}

// negotiated notes the version of the protocol.
func (p *proxy) negotiated(result json.RawMessage) {
	fields, _ := objectOf(result)
	version, err := strconv.Atoi(string(fields.get("protocolVersion")))
	if err == nil {
		p.mu.Lock()
		p.version = version
		p.mu.Unlock()
	}
}

// toEditor writes a line. The editor may have gone.
func (p *proxy) toEditor(line []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = p.streams.Out.Write(append(line, '\n'))
}

// reply answers the agent with an error.
func (p *proxy) reply(id json.RawMessage, code int, text string) {
	p.toAgent.put(failure(id, code, text))
}

func failure(id json.RawMessage, code int, text string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return encode(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": display.Line(text)},
	})
}

// failPending answers what the agent has left unanswered.
func (p *proxy) failPending(exit spawn.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how := fmt.Sprintf("exit status %d", exit.Code)
	if exit.Signal != 0 {
		how = exit.Signal.String()
	}
	for _, r := range p.pending {
		p.toEditor(failure(r.id, codeInternal, "the agent has ended: "+how))
	}
	p.pending = map[string]request{}
}
