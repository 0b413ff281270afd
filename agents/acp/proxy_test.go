//go:build unix

package acp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// lineWriter keeps lines, and passes each on.
type lineWriter struct {
	mu    sync.Mutex
	text  bytes.Buffer
	lines chan string
}

func newLineWriter() *lineWriter { return &lineWriter{lines: make(chan string, 100)} }

func (w *lineWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(data)
	w.lines <- strings.TrimSuffix(string(data), "\n")
	return len(data), nil
}

func (w *lineWriter) Close() error {
	close(w.lines)
	return nil
}

func (w *lineWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// between is a proxy without an agent.
type between struct {
	*proxy
	editor, agent, log *lineWriter
}

func newBetween(editorSays string) between {
	b := between{editor: newLineWriter(), agent: newLineWriter(), log: newLineWriter()}
	b.proxy = newProxy(Streams{In: strings.NewReader(editorSays), Out: b.editor, Log: b.log})
	b.toAgent = newQueue(b.agent)
	return b
}

// said are the lines that the agent got, once no more come.
func (b between) said() (toEditor, toAgent []string) {
	b.toAgent.close()
	for line := range b.agent.lines {
		toAgent = append(toAgent, line)
	}
	close(b.editor.lines)
	for line := range b.editor.lines {
		toEditor = append(toEditor, line)
	}
	return toEditor, toAgent
}

// Whoever waits for an answer to a message that does not pass gets one. The log
// says why, without what the message says.
func TestProxy_AnswersForWhatDoesNotPass(t *testing.T) {
	t.Parallel()
	const secret = "SECRET"
	const request = `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`
	const failed = `{"error":{"code":-32600,"message":"not passed on: a key is there twice"},"id":1,"jsonrpc":"2.0"}`
	const failedAnswer = `{"error":{"code":-32603,"message":"the agent's answer is not passed on: a key is there twice"},` +
		`"id":1,"jsonrpc":"2.0"}`
	const refusedAnswer = `{"error":{"code":-32603,"message":"the answer is not passed on: a key is there twice"},` +
		`"id":1,"jsonrpc":"2.0"}`
	const ofAgent, ofEditor = "a message of the agent is not passed on", "a message of the editor is not passed on"
	const twice = `{"` + secret + `":"` + secret + `","` + secret + `":1}`
	for name, test := range map[string]struct{ editor, agent, toEditor, toAgent, log string }{
		"the agent's request": {
			"", `{"id":1,"method":"x","params":` + twice + `}`, "", failed, ofAgent,
		},
		"the agent's notification": {
			"", `{"method":"x","params":` + twice + `}`, "", "", ofAgent,
		},
		"the agent's answer": {
			request, `{"id":1,"result":` + twice + `}`, failedAnswer, request, ofAgent,
		},
		"an answer to nothing": {
			request, `{"id":2,"result":` + twice + `}`, "", request, ofAgent,
		},
		"the editor's request": {
			`{"id":1,"method":"` + secret + `","params":` + twice + `}`, "", failed, "", ofEditor,
		},
		"the editor's notification": {
			`{"method":"x","params":` + twice + `}`, "", "", "", ofEditor,
		},
		"the editor's answer": {`{"id":1,"result":` + twice + `}`, "", "", refusedAnswer, ofEditor},
		"no JSON":             {secret, "", "", "", "it is no JSON"},
		"a terminal": {
			"", `{"id":1,"method":"Terminal/` + secret + `"}`, "",
			`{"error":{"code":-32601,"message":"refused by the sandbox: do this yourself, inside: Terminal/` + secret +
				`"},"id":1,"jsonrpc":"2.0"}`, "the agent's request terminal/* is refused",
		},
		"a way to sign in": {
			"", `{"id":1,"result":{"authMethods":[{"id":"` + secret + `","type":"terminal"}]}}`,
			`{"id":1,"result":{"authMethods":[]}}`, "", "a way to sign in outside",
		},
	} {
		b := newBetween(test.editor)
		b.proxy.fromEditor()
		b.proxy.fromAgent(strings.NewReader(test.agent))
		toEditor, toAgent := b.said()
		if got := strings.Join(toEditor, "\n"); got != test.toEditor {
			t.Errorf("%s: the editor got %s", name, got)
		}
		if got := strings.Join(toAgent, "\n"); got != test.toAgent {
			t.Errorf("%s: the agent got %s", name, got)
		}
		if log := b.log.String(); strings.Contains(log, secret) || !strings.Contains(log, test.log) {
			t.Errorf("%s: the log is %q", name, log)
		}
	}
}

// A line that is too long is dropped, answered if its id can be told, and the
// next one passes.
// An answer to a question of ours never reaches the agent, although it comes when
// nobody waits for it any more.
func TestProxy_KeepsLateAnswers(t *testing.T) {
	t.Parallel()
	const ours, theirs = `{"id":"sandbox-sidecar-x","result":{"outcome":{"outcome":"selected","optionId":"once"}}}`,
		`{"id":"other","result":{}}`
	b := newBetween(ours + "\n" + theirs + "\n")
	b.proxy.fromEditor()
	_, toAgent := b.said()
	if len(toAgent) != 1 || !strings.Contains(toAgent[0], `"other"`) {
		t.Errorf("the agent got %q", toAgent)
	}
}

func TestProxy_BoundsLines(t *testing.T) {
	t.Parallel()
	const next = `{"id":2,"method":"y"}`
	for name, test := range map[string]struct {
		size   int
		passes bool
	}{"the longest": {maxLine, true}, "one more": {maxLine + 1, false}, "much more": {3 * maxLine, false}} {
		const head, tail = `{"id":1,"method":"x","params":{"a":"`, `"}}` + "\n"
		middle := io.LimitReader(xs{}, int64(test.size-len(head+tail)))
		line := io.MultiReader(strings.NewReader(head), middle, strings.NewReader(tail+next))
		b := newBetween("")
		b.proxy.fromAgent(line)
		toEditor, toAgent := b.said()
		switch {
		case test.passes && (len(toEditor) != 2 || len(toEditor[0]) != test.size-1 || len(toAgent) > 0):
			t.Errorf("%s: %d lines pass, and the agent got %q", name, len(toEditor), toAgent)
		case !test.passes && (len(toEditor) != 1 || len(toAgent) != 1 || !strings.Contains(toAgent[0], "64 MiB")):
			t.Errorf("%s: %d lines pass, and the agent got %q", name, len(toEditor), toAgent)
		}
		if last := toEditor[len(toEditor)-1]; last != next {
			t.Errorf("%s: the next is %.100q", name, last)
		}
	}
	// What a text becomes may be longer than what was read.
	b := newBetween("")
	grows := strings.Repeat("\u2028", maxLine/4)
	b.proxy.fromAgent(strings.NewReader(`{"id":1,"method":"x","params":{"a":"` + grows + `"}}`))
	if toEditor, toAgent := b.said(); len(toEditor) > 0 || len(toAgent) != 1 {
		t.Errorf("a line that grows: %d pass, %q", len(toEditor), toAgent)
	}
}

// xs reads x without end.
type xs struct{}

func (xs) Read(data []byte) (int, error) {
	for i := range data {
		data[i] = 'x'
	}
	return len(data), nil
}

// clock is a time that a test sets.
type clock struct {
	mu   sync.Mutex
	now  time.Time
	read chan struct{} // gets an element each time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read <- struct{}{}
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// An answer counts that somebody can have read the question for. An editor that
// approves by itself, or that answers while it still gets the question, refuses.
func TestAsk_AnAnswerNeedsTime(t *testing.T) {
	t.Parallel()
	const initialize = `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"%s"}}}` + "\n" +
		`{"id":2,"method":"session/prompt","params":{"sessionId":"one","prompt":[]}}`
	choices := []protocol.Decision{protocol.DecisionDeny, protocol.DecisionOnce, protocol.DecisionUser}
	for _, test := range []struct {
		client  string
		after   time.Duration // -1: at once, before the question was sent
		answers string
		want    protocol.Decision
	}{
		{"x", readingTime, "once", protocol.DecisionOnce},
		{"x", readingTime, "user", protocol.DecisionUser},
		{"x", readingTime, "deny", protocol.DecisionDeny},
		{"x", readingTime - 1, "once", protocol.DecisionDeny},
		{"x", readingTime - 1, "user", protocol.DecisionDeny},
		{"x", 0, "deny", protocol.DecisionDeny},
		{"x", -1, "once", protocol.DecisionDeny},
		{"Zed", readingTime, "user", protocol.DecisionUser},
	} {
		name := fmt.Sprintf("%s after %v: %s", test.client, test.after, test.answers)
		b := newBetween(fmt.Sprintf(initialize, test.client))
		c := &clock{now: time.Unix(1000, 0), read: make(chan struct{}, 10)}
		b.now = c.time
		b.proxy.fromEditor()
		answer := func(question string) {
			s := strict{in: []byte(question)}
			asked, _, err := parse(&s)
			if err != nil {
				t.Errorf("%s: the question %s: %v", name, question, err)
			}
			params, _ := objectOf(asked.get("params"))
			list, _, _ := split(params.get("options"))
			var offered []string
			for _, one := range list {
				o, _ := objectOf(one.value)
				offered = append(offered, o.text("optionId"))
			}
			want := []string{"deny", "once", "user"}
			if test.client == "Zed" {
				want = []string{"deny", "user"}
			}
			if !slices.Equal(offered, want) {
				t.Errorf("%s: offered %q", name, offered)
			}
			b.streams.In = strings.NewReader(fmt.Sprintf(
				`{"id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, asked.id, test.answers,
			))
			b.proxy.fromEditor()
		}
		if test.after < 0 {
			b.streams.Out = writer(func(line []byte) { answer(string(line)) })
		}
		got := make(chan protocol.Decision, 1)
		go func() {
			got <- b.ask(context.Background(), protocol.RequestAccessParams{Message: "?", Choices: choices})
		}()
		if test.after >= 0 {
			question := <-b.editor.lines
			<-c.read // the editor has it
			c.pass(test.after)
			answer(question)
		}
		if decision := <-got; decision != test.want {
			t.Errorf("%s: %s, want %s", name, decision, test.want)
		}
		b.toAgent.close()
		told := strings.Contains(b.log.String(), "before anybody can have read the question")
		if early := test.want == protocol.DecisionDeny && test.answers != "deny"; told != early {
			t.Errorf("%s: the log is %q", name, b.log.String())
		}
	}
}

// writer is a function that gets what is written.
type writer func(data []byte)

func (w writer) Write(data []byte) (int, error) {
	w(data)
	return len(data), nil
}
