//go:build unix

package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/agents/runner"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
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
	protocol.DecisionOnce:      {Name: "Allow once", Kind: "allow_once"},
	protocol.DecisionSession:   {Name: "Allow until the agent ends", Kind: "allow_always"},
	protocol.DecisionDirectory: {Name: "Allow the whole directory until the agent ends", Kind: "allow_always"},
	protocol.DecisionProject:   {Name: "Always allow in this project", Kind: "allow_always"},
	protocol.DecisionUser:      {Name: "Always allow", Kind: "allow_always"},
	protocol.DecisionDeny:      {Name: "Refuse", Kind: "reject_once"},
}

// readingTime is what a person needs at least to read a question and answer it.
// An answer that comes sooner is a program's: some editors approve by themselves
// what agents ask for.
const readingTime = 500 * time.Millisecond

// approving are the names of editors that have a setting to approve all, and then
// take an option that allows something once.
var approving = []string{"zed"}

// optionsOf are the options for some choices. Editors show them in this order.
// The refusal is the first one, because some editors take that by themselves.
func optionsOf(choices []protocol.Decision, client string) []option {
	var list, refuse []option
	for _, choice := range choices {
		o := options[choice]
		o.ID = choice
		switch {
		case choice == protocol.DecisionDeny:
			refuse = append(refuse, o)
		case choice == protocol.DecisionOnce && slices.Contains(approving, strings.ToLower(client)):
		default:
			list = append(list, o)
		}
	}
	return append(refuse, list...)
}

// question is one of ours that the editor has not answered.
type question struct {
	answer chan json.RawMessage
	shown  time.Time // when the editor had it; zero until then
}

// ourIDs is how the ids of our questions begin, as JSON.
const ourIDs = `"sandbox-sidecar-`

// ask asks the editor's user. It denies if nobody can answer, and returns "" if ctx
// ends before the answer.
func (p *proxy) ask(ctx context.Context, about protocol.RequestAccessParams) protocol.Decision {
	// Nobody but the editor learns this id, so no answer to a request of the
	// agent can be taken for an answer to this.
	id := ourIDs + uuid.NewString() + `"`
	asked := &question{answer: make(chan json.RawMessage, 1)}
	p.mu.Lock()
	session, version, client := p.session, p.version, p.client
	if session != "" {
		p.asked[id] = asked
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
		"params": permission(session, version, client, about),
	}))
	p.mu.Lock()
	asked.shown = p.now()
	p.mu.Unlock()
	select {
	case result := <-asked.answer:
		return decided(result)
	case <-ctx.Done():
		select {
		case result := <-asked.answer:
			return decided(result)
		default: // what comes now is the answer to this
		}
		p.toEditor(encode(map[string]any{
			"jsonrpc": "2.0", "method": "$/cancel_request",
			"params": map[string]any{"requestId": json.RawMessage(id)},
		}))
		return ""
	}
}

// permission are the parameters of session/request_permission, in the form of a
// version of the protocol.
func permission(session string, version int, client string, question protocol.RequestAccessParams) map[string]any {
	params := map[string]any{"sessionId": session, "options": optionsOf(question.Choices, client)}
	detail := question.Hint
	if line := presentation.DirectoryLine(question); line != "" {
		detail = strings.TrimPrefix(detail+"\n"+line, "\n")
	}
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
	fields, _ := objectOf(result)
	outcome, _ := objectOf(fields.get("outcome"))
	if outcome.text("outcome") != "selected" {
		return protocol.DecisionDeny
	}
	return protocol.Decision(outcome.text("optionId"))
}

// answered takes an editor's answer to a question of ours. It returns false for
// any other answer. One that comes before anybody can have read the question
// refuses.
func (p *proxy) answered(msg message) bool {
	p.mu.Lock()
	asked, ours := p.asked[string(msg.id)]
	delete(p.asked, string(msg.id))
	early := ours && (asked.shown.IsZero() || p.now().Sub(asked.shown) < readingTime)
	p.mu.Unlock()
	if !ours {
		return false
	}
	result := msg.get("result")
	if early && decided(result) != protocol.DecisionDeny {
		p.log("refused: the editor has allowed an access before anybody can have read the question")
		result = nil
	}
	asked.answer <- result
	return true
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
		text += ". To allow it: " + refused.ToAllow
	}
	if refused.Hint != "" {
		return text + ". " + refused.Hint
	}
	return text
}

// prompt notes which session the user writes to. The agent gets, behind what the
// user wrote, what was refused since the last time: it sees only errors.
func (p *proxy) prompt(msg message, params object) []byte {
	blocks, isObject, isList := split(params.get("prompt"))
	p.mu.Lock()
	p.session = params.text("sessionId")
	lines := p.untold
	if isObject || !isList || len(lines) == 0 {
		p.mu.Unlock()
		return msg.bytes
	}
	p.untold = nil
	p.mu.Unlock()
	note := "Note of the sandbox, which only the user can change by settings:\n" + strings.Join(lines, "\n")
	var list []json.RawMessage
	for _, block := range blocks {
		list = append(list, block.value)
	}
	list = append(list, encode(map[string]any{"type": "text", "text": note}))
	return msg.with("params", params.with("prompt", encodeList(list)).bytes()).bytes()
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
