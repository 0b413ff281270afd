//go:build unix

package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/agents/runner"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// option is an answer that the user may choose.
type option struct {
	ID   protocol.Decision `json:"optionId"`
	Name string            `json:"name"`
	Kind string            `json:"kind"`
}

// options are the answers of the protocol, in its own kinds.
var options = map[protocol.Decision]option{
	protocol.DecisionOnce:    {Name: "Allow once", Kind: "allow_once"},
	protocol.DecisionSession: {Name: "Allow until the agent ends", Kind: "allow_always"},
	protocol.DecisionProject: {Name: "Always allow in this project", Kind: "allow_always"},
	protocol.DecisionUser:    {Name: "Always allow", Kind: "allow_always"},
	protocol.DecisionDeny:    {Name: "Refuse", Kind: "reject_once"},
}

// optionsOf are the options for some choices. Editors show them in this order.
func optionsOf(choices []protocol.Decision) []option {
	var list []option
	var refuse []option
	for _, choice := range choices {
		o := options[choice]
		o.ID = choice
		if choice == protocol.DecisionDeny {
			refuse = append(refuse, o)
			continue
		}
		list = append(list, o)
	}
	return append(list, refuse...)
}

// ask asks the editor's user. It denies if nobody can answer.
func (p *proxy) ask(ctx context.Context, question protocol.RequestAccessParams) protocol.Decision {
	// Nobody but the editor learns this id, so no answer to a request of the
	// agent can be taken for an answer to this.
	id := string(encode("sandbox-sidecar-" + uuid.NewString()))
	answer := make(chan json.RawMessage, 1)
	p.mu.Lock()
	session, version := p.session, p.version
	if session != "" {
		p.asked[id] = answer
	}
	p.mu.Unlock()
	if session == "" { // the editor has no place to show it
		return protocol.DecisionDeny
	}
	defer func() {
		p.mu.Lock()
		delete(p.asked, id)
		p.mu.Unlock()
	}()
	p.toEditor(encode(map[string]any{
		"jsonrpc": "2.0", "id": json.RawMessage(id), "method": "session/request_permission",
		"params": permission(session, version, question),
	}))
	select {
	case result := <-answer:
		return decided(result)
	case <-ctx.Done():
		p.toEditor(encode(map[string]any{
			"jsonrpc": "2.0", "method": "$/cancel_request",
			"params": map[string]any{"requestId": json.RawMessage(id)},
		}))
		return protocol.DecisionDeny
	}
}

// permission are the parameters of session/request_permission, in the form of a
// version of the protocol.
func permission(session string, version int, question protocol.RequestAccessParams) map[string]any {
	params := map[string]any{"sessionId": session, "options": optionsOf(question.Choices)}
	detail := question.Hint
	if version >= 2 {
		params["title"] = question.Message
		if detail != "" {
			params["description"] = detail
		}
		return params
	}
	call := map[string]any{
		"toolCallId": "sandbox-" + uuid.NewString(), "title": question.Message, "kind": "other", "status": "pending",
	}
	if detail != "" {
		call["content"] = []any{map[string]any{
			"type": "content", "content": map[string]any{"type": "text", "text": detail},
		}}
	}
	params["toolCall"] = call
	return params
}

// decided is the user's decision. What is not understood denies.
func decided(result json.RawMessage) protocol.Decision {
	var chosen struct {
		Outcome struct {
			Outcome  string            `json:"outcome"`
			OptionID protocol.Decision `json:"optionId"`
		} `json:"outcome"`
	}
	if json.Unmarshal(result, &chosen) != nil || chosen.Outcome.Outcome != "selected" {
		return protocol.DecisionDeny
	}
	return chosen.Outcome.OptionID
}

// answered takes an editor's answer to a question of ours. It returns false for
// any other answer.
func (p *proxy) answered(msg message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer, ours := p.asked[string(msg.id)]
	if ours {
		delete(p.asked, string(msg.id))
		answer <- msg.get("result")
	}
	return ours
}

// refusals describes what was refused and not reported yet.
func (p *proxy) refusals() []string {
	p.refusing.Lock()
	defer p.refusing.Unlock()
	list, _ := p.running.Refused(func(d spawn.Denial) bool {
		key := string(d.Access) + " " + d.Target
		known := p.known[key]
		p.known[key] = true
		return known
	})
	var lines []string
	for _, refused := range list {
		lines = append(lines, describe(refused))
	}
	return lines
}

func describe(refused runner.Refused) string {
	text := "refused: " + refused.Message
	if refused.ToAllow != "" {
		return text + ". To allow it: " + refused.ToAllow
	}
	if refused.Hint != "" {
		return text + ". " + refused.Hint
	}
	return text
}

// prompt notes which session the user writes to. The agent gets, behind what the
// user wrote, what was refused since the last time: it sees only errors.
func (p *proxy) prompt(msg message, params object, text []byte) []byte {
	p.mu.Lock()
	p.session = params.text("sessionId")
	lines := p.untold
	p.untold = nil
	p.mu.Unlock()
	var blocks []json.RawMessage
	if len(lines) == 0 || json.Unmarshal(params.get("prompt"), &blocks) != nil {
		return text
	}
	note := "Note of the sandbox, which only the user can change by settings:\n" + strings.Join(lines, "\n")
	blocks = append(blocks, encode(map[string]any{"type": "text", "text": note}))
	return msg.with("params", params.with("prompt", encode(blocks)).bytes()).bytes()
}

// report shows the user what was refused during a turn.
func (p *proxy) report(session string) {
	lines := p.refusals()
	if len(lines) == 0 {
		return
	}
	p.mu.Lock()
	p.untold = append(p.untold, lines...)
	p.mu.Unlock()
	text := fmt.Sprintf("\n\nThe sandbox has refused something:\n- %s\n", strings.Join(lines, "\n- "))
	p.toEditor(encode(map[string]any{
		"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{
			"sessionId": session, "update": map[string]any{
				"sessionUpdate": "agent_message_chunk", "messageId": "sandbox-" + uuid.NewString(),
				"content": map[string]any{"type": "text", "text": text},
			},
		},
	}))
}
