//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// sidecar starts commands in one project, by the protocol that editors speak.
type sidecar struct {
	client  *client.Client
	project string // as the user named it: a link to it is judged at each start
	kind    protocol.Kind
	group   string // of all commands, which share a sandbox; "" if the machine has none

	mu       sync.Mutex          // guards the fields below
	commands map[string]*command // by the ids of their sessions
	warned   map[string]bool     // warnings that the agent has been given
	policyID string              // of the latest command; "" before the first
}

// errGone means that the sidecar has ended. All commands have ended with it.
var errGone = errors.New("the sidecar has ended, and with it all commands")

// errOff means that no sandbox would confine a command.
var errOff = errors.New("not started: the settings leave the sandbox off; see sandbox-sidecar policy")

// newSidecar opens the conversation with a sidecar that was just started.
func newSidecar(ctx context.Context, c *client.Client, options Options) (*sidecar, error) {
	s := &sidecar{
		client: c, project: options.Project, kind: options.Kind, commands: map[string]*command{},
		warned: map[string]bool{},
	}
	client.On(c, protocol.Output, func(params protocol.OutputParams) {
		s.with(params.SessionID, func(c *command) {
			if params.Stream == protocol.StreamStderr {
				_, _ = c.stderr.Write(params.Data)
				return
			}
			_, _ = c.output.Write(params.Data)
		})
	})
	client.On(c, protocol.Denied, func(params protocol.DeniedParams) {
		s.with(params.SessionID, func(c *command) { c.report.denied(params) })
	})
	client.On(c, protocol.LimitReached, func(params protocol.LimitParams) {
		s.with(params.SessionID, func(c *command) { c.report.reached(params) })
	})
	client.On(c, protocol.Exited, func(params protocol.ExitedParams) {
		s.with(params.SessionID, func(c *command) { c.exited(params) })
	})
	pid := os.Getpid()
	opened, err := client.Call(ctx, c, protocol.Initialize, protocol.InitializeParams{
		ProtocolVersion: protocol.Version,
		ProcessID:       &pid, ClientInfo: &protocol.ClientInfo{Name: "sandbox-sidecar-mcp", Version: options.Version},
	})
	if err != nil {
		return nil, fmt.Errorf("start a conversation with the sidecar: %w", told(err))
	}
	if opened.ProtocolVersion != protocol.Version {
		return nil, fmt.Errorf("the sidecar speaks version %d of its protocol, this program version %d: "+
			"install both anew", opened.ProtocolVersion, protocol.Version)
	}
	if err := client.Notify(c, protocol.Initialized, protocol.Empty{}); err != nil {
		return nil, errGone
	}
	if opened.Capabilities.Groups {
		s.group = "agent" // the sidecar serves this connection alone
	}
	if _, err := s.policy(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// unknown are the warnings that the agent has not been given. Most are about the
// machine, and the same for each command.
func (s *sidecar) unknown(warnings []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, warning := range warnings {
		if !s.warned[warning] {
			s.warned[warning] = true
			list = append(list, warning)
		}
	}
	return list
}

// apart warns if a command has another policy than the one before. It is in another
// sandbox, then.
func (s *sidecar) apart(policyID string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.policyID
	s.policyID = policyID
	if s.group == "" || before == "" || before == policyID {
		return nil
	}
	return []string{"the settings have changed: this command has a new sandbox, apart from earlier commands"}
}

// with calls a function with the command of a session, if there is one.
func (s *sidecar) with(id string, do func(*command)) {
	s.mu.Lock()
	c := s.commands[id]
	s.mu.Unlock()
	if c != nil {
		do(c)
	}
}

// start starts a line of shell in a directory. On an error nothing of it runs.
func (s *sidecar) start(ctx context.Context, o order) (*command, error) {
	c := &command{
		id: uuid.NewString(), killed: make(chan struct{}), exit: make(chan struct{}), ended: make(chan struct{}),
		takes: o.stdin, output: output{half: o.output / 2}, stderr: output{half: o.output / 2},
	}
	s.mu.Lock()
	s.commands[c.id] = c
	s.mu.Unlock()
	started, err := s.spawn(ctx, c, protocol.SpawnParams{
		Kind: s.kind, SessionID: c.id, ProjectDir: s.project, Cwd: o.cwd, Command: o.line, Pipe: true, Group: s.group,
		Stdin: o.stdin, Stderr: o.stderr, TimeoutMs: int(o.timeout.Milliseconds()),
	})
	if err != nil {
		s.forget(c)
		return nil, told(err)
	}
	c.told = append(s.unknown(started.Sandbox.Warnings), s.apart(started.PolicyID)...)
	go s.await(c)
	if !started.Sandbox.Applied {
		c.Kill() // the sidecar refuses that; if this ever changes, nothing may go on
		return nil, errOff
	}
	return c, nil
}

// write gives a command input, and ends it if that is the last.
func (s *sidecar) write(c *command, text string, last bool) error {
	params := protocol.InputParams{SessionID: c.id, Data: []byte(text), CloseStdin: last}
	if client.Notify(s.client, protocol.Input, params) != nil {
		return errGone
	}
	return nil
}

// spawn starts a session. If the context ends first, it ends the session. The
// sidecar may admit that request before the start, so the start is awaited.
func (s *sidecar) spawn(ctx context.Context, c *command, params protocol.SpawnParams) (protocol.SpawnResult, error) {
	var started protocol.SpawnResult
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		started, err = client.Call(context.WithoutCancel(ctx), s.client, protocol.Spawn, params)
	}()
	select {
	case <-answered:
		return started, err
	case <-ctx.Done():
	}
	_, _ = s.close(c)
	<-answered
	if err == nil {
		_, _ = s.close(c)
	}
	return protocol.SpawnResult{}, ctx.Err()
}

// await waits for the end of a command, and gives its session back.
func (s *sidecar) await(c *command) {
	defer close(c.ended)
	defer s.forget(c)
	select {
	case <-c.exit:
	case <-c.killed:
	case <-s.client.Gone():
	}
	closed, err := s.close(c)
	c.warnings = slices.Clone(c.told)
	switch {
	case err != nil:
		c.warnings = append(c.warnings, told(err).Error())
	case closed.Remaining > 0:
		c.warnings = append(c.warnings, "some processes of the command could not be ended")
	}
	for _, finding := range closed.Review {
		c.report.changed(finding.Message)
	}
}

// close kills all processes of a session, and returns when none is left. In a
// group, what a command that has ended has left in the background stays.
func (s *sidecar) close(c *command) (protocol.CloseResult, error) {
	params := protocol.CloseParams{SessionID: c.id, GraceMs: new(0)}
	return client.Call(context.Background(), s.client, protocol.Close, params)
}

func (s *sidecar) forget(c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.commands, c.id)
}

// explain says whether a command could do something.
func (s *sidecar) explain(ctx context.Context, access, target string) (protocol.PolicyExplainResult, error) {
	result, err := client.Call(ctx, s.client, protocol.PolicyExplain, protocol.PolicyExplainParams{
		ProjectDir: s.project, Kind: s.kind, Access: protocol.Access(access), Target: target,
	})
	return result, told(err)
}

// policy is what commands may do.
func (s *sidecar) policy(ctx context.Context) (protocol.Policy, error) {
	result, err := client.Call(ctx, s.client, protocol.PolicyGet, protocol.PolicyGetParams{
		ProjectDir: s.project, Kind: s.kind,
	})
	return result.Policy, told(err)
}

// told is an error of the sidecar in the words for an agent.
func told(err error) error {
	var refused *client.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case !errors.As(err, &refused):
		return errGone
	case refused.Code == protocol.CodeSettingsInvalid:
		where := strings.TrimPrefix(refused.Message, "read settings: ")
		return fmt.Errorf("not started: the user must fix a settings file first: %s", where)
	}
	text := strings.TrimPrefix(refused.Message, "params.")
	if refused.Data.Hint != "" {
		text += "; " + refused.Data.Hint
	}
	return errors.New(text)
}

// Refused is something that a command was refused.
type Refused struct {
	Access  string `json:"access" jsonschema:"what was attempted, such as read, write or connect"`
	Target  string `json:"target" jsonschema:"the path or address"`
	Process string `json:"process,omitempty" jsonschema:"the program that attempted it"`
	Count   int    `json:"count" jsonschema:"how often"`
	Message string `json:"message" jsonschema:"the same for people"`
	Setting string `json:"setting,omitempty" jsonschema:"the key of the user's settings that would allow it"`
	Value   string `json:"value,omitempty" jsonschema:"what the user would add to the setting"`
	ToAllow string `json:"to_allow,omitempty" jsonschema:"what the user would have to do to allow it"`
	Hint    string `json:"hint,omitempty" jsonschema:"what to know about it"`
}

const (
	// mostRefused bounds a list of refusals.
	mostRefused = 20
	// mostKnown bounds the different refusals of a command that are remembered.
	mostKnown = 1000
)

// report is what the sidecar has reported about one command.
type report struct {
	mu      sync.Mutex
	denials []protocol.DeniedParams // each with its total count
	at      map[denialKey]int       // indices of denials
	missed  int
	changes []string
	limits  []string
}

// denialKey says which reports are about the same denial.
type denialKey struct{ access, target, process, detail string }

// denied adds a report.
func (r *report) denied(d protocol.DeniedParams) {
	if d.Line == "" { // it is about a protected path
		r.changed(strings.TrimSuffix(d.Message, "."))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missed += d.Missed
	d.Count = max(d.Count, 1)
	key := denialKey{d.Access, d.Target, processOf(d), d.Detail}
	if i, known := r.at[key]; known {
		d.Count += r.denials[i].Count
		r.denials[i] = d
		return
	}
	if len(r.denials) >= mostKnown {
		r.missed += d.Count
		return
	}
	if r.at == nil {
		r.at = map[denialKey]int{}
	}
	r.at[key] = len(r.denials)
	r.denials = append(r.denials, d)
}

// changed adds a line about a file that programs outside act on.
func (r *report) changed(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changes) < mostKnown {
		r.changes = append(r.changes, line)
	}
}

// reached adds a limit, of which the sidecar tells once.
func (r *report) reached(limit protocol.LimitParams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.limits) < mostKnown {
		r.limits = append(r.limits, strings.TrimSuffix(limit.Message, "."))
	}
}

// reachedSoFar lists the limits that were reached.
func (r *report) reachedSoFar() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.limits)
}

// read lists what was refused, and how much more there was; and the files that
// were changed.
func (r *report) read() (refused []Refused, more int, changes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	more = r.missed + max(0, len(r.denials)-mostRefused)
	for _, d := range r.denials[:min(len(r.denials), mostRefused)] {
		refused = append(refused, refusedBy(d))
	}
	return refused, more, slices.Clone(r.changes)
}

func refusedBy(d protocol.DeniedParams) Refused {
	refused := Refused{
		Access: d.Access, Target: display.Escape(d.Target), Process: display.Line(processOf(d)), Count: d.Count,
		Message: d.Line, Hint: d.Hint,
	}
	switch {
	case d.Count > 1 && d.Detail != "":
		refused.Message += fmt.Sprintf(" (%d times)", d.Count)
	case d.Count > 1:
		refused.Message += fmt.Sprintf(", %d times", d.Count)
	}
	if suggested := d.Suggestion; suggested != nil {
		refused.Setting, refused.ToAllow = suggested.Setting, suggested.Instruction
		if json.Unmarshal(suggested.Value, &refused.Value) != nil { // not an entry of a list
			refused.Value = string(suggested.Value)
		}
	}
	return refused
}

func processOf(d protocol.DeniedParams) string {
	if d.Process == nil {
		return ""
	}
	return d.Process.Name
}
