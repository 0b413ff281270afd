//go:build unix

// Package acp runs an agent in a session, between it and an editor that speaks
// the Agent Client Protocol: a JSON-RPC message a line, versions 1 and 2.
//
// What the agent does itself, the kernel confines. The proxy keeps the editor
// from doing anything for it outside: it hides the editor's terminals and files,
// and refuses requests for them. It puts questions about denials to the user by
// the protocol's own request for permission. Everything else passes unchanged.
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
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/agents/runner"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

const (
	// maxLine bounds a message in bytes.
	maxLine = 256 << 20
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
	runner  *runner.Runner
	streams Streams
	toAgent *queue
	running *runner.Running

	writing sync.Mutex // held while a line is written to the editor

	refusing sync.Mutex      // guards known
	known    map[string]bool // refusals that were reported

	mu      sync.Mutex // guards the fields below
	version int        // of the protocol, as the agent has answered
	pending map[string]request
	asked   map[string]chan json.RawMessage // our own requests, by their ids
	session string                          // the last one that the user wrote to
	untold  []string                        // refusals that the agent does not know of yet
}

// request is a request of the editor that the agent has not answered.
type request struct {
	id              json.RawMessage
	method, session string
}

// Serve runs the agent until it ends, and returns how. It ends the agent if the
// editor goes, or the context ends. An error means that it was not started.
func Serve(ctx context.Context, r *runner.Runner, argv []string, streams Streams) (spawn.Exit, error) {
	p := &proxy{
		runner: r, streams: streams, pending: map[string]request{}, asked: map[string]chan json.RawMessage{},
		known: map[string]bool{}, version: 1,
	}
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

// errTooLong means that a message is longer than anything that is passed on.
var errTooLong = errors.New("a message has more than 256 MiB")

// lines calls use with each line, without its end. Empty lines are left out.
func lines(from io.Reader, use func(line []byte)) error {
	reader := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return errTooLong
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case len(bytes.TrimSpace(line)) > 0:
			use(bytes.TrimRight(line, "\r\n"))
		}
		line = nil // what was used may still wait
		if err != nil {
			return nil
		}
	}
}

// fromEditor passes on what the editor says, until it says no more.
func (p *proxy) fromEditor() {
	err := lines(p.streams.In, func(line []byte) {
		if passed := each(line, p.editorSays); passed != nil {
			p.toAgent.put(append(bytes.Clone(passed), '\n'))
		}
	})
	if err != nil {
		p.log("the editor's connection is closed: %v", err)
	}
}

// editorSays returns what of an editor's message reaches the agent. The editor
// is trusted: what cannot be read passes.
func (p *proxy) editorSays(text []byte) []byte {
	msg, err := parseMessage(text)
	if err != nil {
		return text
	}
	if msg.method == "" {
		if p.answered(msg) {
			return nil
		}
		return text
	}
	params, _ := parseObject(msg.get("params"))
	if msg.id != nil {
		p.mu.Lock()
		p.pending[string(msg.id)] = request{msg.id, msg.method, params.text("sessionId")}
		p.mu.Unlock()
	}
	switch msg.method {
	case "initialize":
		return msg.with("params", hide(msg.get("params"))).bytes()
	case "session/prompt":
		return p.prompt(msg, params, text)
	}
	return text
}

// fromAgent passes on what the agent says, until it says no more.
func (p *proxy) fromAgent(out io.Reader) {
	err := lines(out, func(line []byte) {
		// Between the tokens of JSON this means nothing. But some parsers end a
		// line there, and would find other messages than the ones checked here.
		line = bytes.ReplaceAll(line, []byte("\r"), []byte(" "))
		if passed := each(line, p.agentSays); passed != nil {
			p.toEditor(passed)
		}
	})
	if err != nil {
		p.log("the agent is ended: %v", err)
		p.running.Kill()
	}
}

// agentSays returns what of an agent's message reaches the editor.
func (p *proxy) agentSays(text []byte) []byte {
	msg, err := parseMessage(text)
	if err != nil {
		p.log("the agent wrote what is no message, which is not passed on: %v: %s", err, display.Text(shorten(text)))
		p.reply(nil, codeInvalidRequest, "not passed on: "+err.Error())
		return nil
	}
	if outside(msg.method) {
		p.log("the agent's request %s is refused: the editor would act outside the sandbox", display.Quote(msg.method))
		if msg.id != nil {
			p.reply(msg.id, codeUnknownMethod, "refused by the sandbox: do this yourself, inside: "+msg.method)
		}
		return nil
	}
	if msg.method != "" {
		return text
	}
	done, found := p.take(msg.id)
	if found && done.method == "session/prompt" {
		p.report(done.session)
	}
	result := msg.get("result")
	if result == nil {
		return text
	}
	if found && done.method == "initialize" {
		p.negotiated(result)
	}
	// Whatever it answers: the editor decides by itself what it takes it for.
	if safe := withoutCommands(result); !bytes.Equal(safe, result) {
		p.log("a way to sign in that runs a command outside is left out")
		return msg.with("result", safe).bytes()
	}
	return text
}

func shorten(text []byte) string { return string(text[:min(len(text), 200)]) }

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
	var answer struct {
		ProtocolVersion int `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &answer) == nil {
		p.mu.Lock()
		p.version = answer.ProtocolVersion
		p.mu.Unlock()
	}
}

// toEditor writes a line. The editor may have gone.
func (p *proxy) toEditor(line []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = p.streams.Out.Write(append(bytes.Clone(line), '\n'))
}

// reply answers the agent with an error.
func (p *proxy) reply(id json.RawMessage, code int, text string) {
	p.toAgent.put(append(failure(id, code, text), '\n'))
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
