//go:build unix

// Package mcp serves the tools of a sidecar to agents by the Model Context
// Protocol: commands in the sandbox, and questions about it. No tool changes
// settings. It is a client of the sidecar, as an editor is, and confines nothing
// itself.
package mcp

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// maxLine bounds a message in bytes.
const maxLine = 16 << 20

// Options say what is served.
type Options struct {
	// Version of the program.
	Version string
	// Project is the project directory, absolute.
	Project string
	// Kind selects the settings.
	Kind protocol.Kind
}

// Server serves one agent.
type Server struct {
	sidecar *sidecar
	version string

	turns   chan struct{} // holds an element for each command of run
	waiting atomic.Int64  // calls that wait for their turn
	started started
	count   int // of start; guarded by started.mu
}

// New returns a server whose commands a sidecar runs. The sidecar must have been
// started just now, with --sandbox.
func New(ctx context.Context, c *client.Client, options Options) (*Server, error) {
	s, err := newSidecar(ctx, c, options)
	if err != nil {
		return nil, err
	}
	return &Server{
		sidecar: s, version: options.Version, turns: make(chan struct{}, mostAtOnce),
		started: started{commands: map[string]*command{}},
	}, nil
}

// instructions are for the model. together says what commands have in common.
func instructions(together bool) string {
	lines := []string{"Commands of these tools run in a sandbox that the kernel enforces."}
	if together {
		lines = append(lines, "They share processes, /tmp, and a localhost of their own if the network is off.",
			"What one leaves in the background runs on.")
	}
	return strings.Join(append(lines, advice...), "\n")
}

// advice is the same on each machine.
var advice = []string{
	`A result lists in "refused" what it refused, with the setting that would allow it.`,
	"Only the user can change settings: show the setting, and do not try ways around.",
	`"explain" says in advance whether an access is allowed.`,
}

// Serve answers requests until the agent ends, the sidecar does or the context
// does. Every command has ended when it returns.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	defer s.started.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.sidecar.client.Gone():
			cancel(errGone)
		case <-ctx.Done():
		}
	}()
	whole := &wholeWrites{WriteCloser: out}
	err := s.server().Run(ctx, &mcp.IOTransport{Reader: readable(in, whole), Writer: whole, MaxLineLength: -1})
	if cause := context.Cause(ctx); errors.Is(cause, errGone) {
		return cause
	}
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (s *Server) server() *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "sandbox-sidecar", Title: "Sandbox", Version: s.version},
		&mcp.ServerOptions{Instructions: instructions(s.sidecar.group != ""), Capabilities: &mcp.ServerCapabilities{}},
	)
	yes, no := true, false
	acts := &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &yes}
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	add(server, &mcp.Tool{
		Name: "run", Title: "Run a command in the sandbox", Annotations: acts,
		Description: "Runs a line of shell in the sandbox, and returns its output once it has ended.",
	}, s.run, RunOutput.text)
	add(server, &mcp.Tool{
		Name: "start", Title: "Start a command in the sandbox", Annotations: acts,
		Description: "Starts a line of shell in the sandbox, such as a server, and returns while it runs.",
	}, s.start, StartOutput.text)
	add(server, &mcp.Tool{
		Name: "output", Title: "Read the output of a started command", Annotations: reads,
		Description: "Returns what a command of start has printed since the last call, and whether it runs.",
	}, s.read, RunOutput.text)
	add(server, &mcp.Tool{
		Name: "input", Title: "Write to a started command", Annotations: acts,
		Description: "Writes text to the standard input of a command that was started with stdin, or ends it.\n" +
			"It is dropped, and the input ends, if more than 16 MiB wait to be read or the command reads no more.",
	}, s.input, InputOutput.text)
	add(server, &mcp.Tool{
		Name: "stop", Title: "Stop a started command", Annotations: acts,
		Description: "Ends a command of start with its processes.",
	}, s.stop, RunOutput.text)
	add(server, &mcp.Tool{
		Name: "explain", Title: "Ask whether the sandbox allows an access", Annotations: reads,
		Description: "Says whether a command may read, write or execute a path, or connect or bind to an " +
			"address, and why.",
	}, s.explain, ExplainOutput.text)
	add(server, &mcp.Tool{
		Name: "policy", Title: "Show what the sandbox allows", Annotations: reads,
		Description: "Lists what commands may write and read, which hosts they reach, and what is protected.",
	}, s.policy, PolicyOutput.text)
	return server
}

// add adds a tool whose result has text for people beside its structure.
func add[In, Out any](
	server *mcp.Server, tool *mcp.Tool, do func(context.Context, In) (Out, error), text func(Out) string,
) {
	type request = *mcp.CallToolRequest
	mcp.AddTool(server, tool, func(ctx context.Context, _ request, in In) (*mcp.CallToolResult, Out, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, out, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text(out)}}}, out, nil
	})
}

// explain says whether a session may do something.
func (s *Server) explain(ctx context.Context, in ExplainInput) (ExplainOutput, error) {
	access, target := protocol.Access(in.Access), in.Target
	isPath := access != protocol.AccessConnect && access != protocol.AccessBind && access != protocol.AccessSign &&
		!strings.HasPrefix(target, "~") && !strings.HasPrefix(target, "abstract:")
	if isPath && !filepath.IsAbs(target) {
		target = filepath.Join(s.sidecar.project, target)
	}
	x, err := s.sidecar.explain(ctx, in.Access, target)
	if err != nil {
		return ExplainOutput{}, err
	}
	if x.Careful {
		// The model would ask its user for just that setting. Where a symlink
		// leads is a name of a secret file.
		return ExplainOutput{
			Target: target, Reason: "the sandbox keeps sessions from it, and no setting is suggested", Hint: x.Hint,
		}, nil
	}
	return ExplainOutput{
		Allowed: x.Allowed, Target: x.Target, Reason: x.Reason, Setting: x.Setting, Value: x.Value,
		ToAllow: x.Instruction, Hint: x.Hint,
	}, nil
}

// policy lists what sessions may do.
func (s *Server) policy(ctx context.Context, _ PolicyInput) (PolicyOutput, error) {
	p, err := s.sidecar.policy(ctx)
	if err != nil {
		return PolicyOutput{}, err
	}
	return PolicyOutput{
		Project: p.Project, Sandboxed: p.Restricted, AllowNetwork: p.AllowNetwork,
		AllowedHosts: orEmpty(p.AllowedHosts), DeniedHosts: orEmpty(p.DeniedHosts),
		Write: paths(p.Rules, "write"), Read: paths(p.Rules, "read"),
		Protected: orEmpty(p.ProtectedPaths), Hidden: orEmpty(p.HiddenPaths), OnDenied: p.OnDenied,
	}, nil
}

// paths are the paths of the rules that grant an access.
func paths(rules []protocol.PolicyRule, access string) []string {
	list := []string{}
	for _, rule := range rules {
		if slices.Contains(rule.Access, access) {
			list = append(list, rule.Path)
		}
	}
	return list
}

func orEmpty(list []string) []string { return append([]string{}, list...) }
