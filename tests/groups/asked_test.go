//go:build linux

package groups

import (
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// user is the editor's user, who is asked about accesses.
type user struct {
	mu        sync.Mutex // guards the fields below
	decisions map[string]protocol.Decision
	questions []protocol.RequestAccessParams
}

// asked starts an editor with a user. What the user has not decided is denied.
func asked(t *testing.T, w *harness.World, machine harness.Machine) (*harness.Editor, *user) {
	t.Helper()
	e := harness.Start(t, w, harness.Options{
		Settings: settings(harness.Sandbox{"on_denied": "ask"}), Wrap: machine.Wrap,
		Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = true },
	})
	if p := e.Hello.Capabilities.Enforcement["denials"]; !strings.Contains(p.Mechanism, "seccomp") {
		harness.Skip(t, "user_notification", p.Detail)
	}
	u := &user{}
	client.OnRequest(e.Client, protocol.RequestAccess, u.answer)
	return e, u
}

// onEachAsked runs a test on machines, each with an editor and a user in a world of
// its own.
func onEachAsked(
	t *testing.T, all []harness.Machine, test func(t *testing.T, w *harness.World, e *harness.Editor, u *user),
) {
	t.Helper()
	for _, machine := range all {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			e, u := asked(t, w, machine)
			test(t, w, e, u)
		})
	}
}

func (u *user) answer(q protocol.RequestAccessParams) protocol.RequestAccessResult {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.questions = append(u.questions, q)
	if decision, decided := u.decisions[q.Target]; decided {
		return protocol.RequestAccessResult{Decision: decision}
	}
	return protocol.RequestAccessResult{Decision: protocol.DecisionDeny}
}

// decide replaces the user's decisions, by target.
func (u *user) decide(decisions map[string]protocol.Decision) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.decisions = maps.Clone(decisions)
}

// about lists the questions about a target so far.
func (u *user) about(target string) (list []protocol.RequestAccessParams) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, q := range u.questions {
		if q.Target == target {
			list = append(list, q)
		}
	}
	return list
}

// access is something that a call may do by an answer alone.
type access struct{ line, target, shows string }

// reading reads a file outside, which is made.
func reading(t *testing.T, w *harness.World, name string) access {
	t.Helper()
	path := w.OutsidePath(name)
	harness.Write(t, path, "content of "+name+"\n")
	return access{"cat " + harness.Quote(path), path, "content of " + name}
}

// step is one call, and what is expected of it.
type step struct {
	group string
	access
	asks, works bool
}

// mustTake runs a call. The user is asked about it exactly if that is expected, with
// its session, and it works exactly if that is expected.
func (u *user) mustTake(t *testing.T, e *harness.Editor, number int, s step) {
	t.Helper()
	before := len(u.about(s.target))
	call, _ := e.Run(protocol.SpawnParams{Group: s.group, Command: s.line})
	questions := u.about(s.target)[before:]
	switch {
	case s.asks && (len(questions) != 1 || questions[0].SessionID != call.SessionID):
		t.Errorf("step %d: session %s of group %q: asked %+v", number, call.SessionID, s.group, questions)
	case !s.asks && len(questions) > 0:
		t.Errorf("step %d: group %q is asked again: %+v", number, s.group, questions)
	}
	switch works := strings.Contains(call.Output(), s.shows); {
	case works && !s.works:
		harness.Breach(t, "step %d: group %q was allowed nothing: %q", number, s.group, call.Output())
	case !works && s.works:
		t.Errorf("step %d: group %q was allowed it: %q", number, s.group, call.Output())
	}
}

// mustShare has the user allow something for the session of one call. The answer
// is for each later call of its group, and for no other session of the project. Once
// the group is closed, the next sandbox with its name is asked again.
func (u *user) mustShare(t *testing.T, e *harness.Editor, what access) {
	t.Helper()
	u.decide(map[string]protocol.Decision{what.target: protocol.DecisionSession})
	u.mustTake(t, e, 0, step{"agent", what, true, true})
	u.decide(nil)
	for i, s := range []step{
		{"agent", what, false, true},
		{"other", what, true, false},
		{"other", what, false, false}, // a no is for the group, too
		{"own", what, true, false},
		{"agent", what, false, true}, // and for no other group
	} {
		u.mustTake(t, e, i+1, s)
	}
	harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
	u.mustTake(t, e, 6, step{"agent", what, true, false})
}

// A question names the session that it is about, also while a later one runs. "Once"
// is for one call. What "session" allows is in TestGroup_AnAnswerIsOfTheGroup.
func TestGroup_AsksAboutTheRightSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	onEachAsked(t, inTurn(t, machines(t)), func(t *testing.T, w *harness.World, e *harness.Editor, u *user) {
		first, second := reading(t, w, "first"), reading(t, w, "second")
		u.decide(map[string]protocol.Decision{
			first.target: protocol.DecisionOnce, second.target: protocol.DecisionOnce,
		})
		spawn := func(line string) *harness.Session {
			return e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Group: "agent", Command: line})
		}
		waiting := spawn("echo up; until test -e go; do sleep 0.05; done; " + first.line)
		waiting.Await("up")
		later := spawn(second.line + "; touch go; until test -e over; do sleep 0.05; done")
		waiting.Exit()
		harness.Write(t, w.ProjectPath("over"), "")
		later.Exit()
		for _, want := range []struct {
			access
			session *harness.Session
		}{{first, waiting}, {second, later}} {
			q := u.about(want.target)
			if len(q) != 1 || q[0].SessionID != want.session.SessionID || q[0].Access != "read" ||
				q[0].Process == nil || q[0].Process.Name != "cat" {
				t.Errorf("session %s: asked %+v", want.session.SessionID, q)
			}
			if out := want.session.Output(); !strings.Contains(out, want.shows) {
				t.Errorf("what the user has allowed: %q", out)
			}
		}
		u.decide(nil)
		u.mustTake(t, e, 0, step{"agent", first, true, false})
		u.mustTake(t, e, 1, step{"agent", first, false, false})
	})
}

// An answer for the session of one call is the group's, and no other session of the
// project is opened by it.
func TestGroup_AnAnswerIsOfTheGroup(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	onEachAsked(t, inTurn(t, machines(t)), func(t *testing.T, w *harness.World, e *harness.Editor, u *user) {
		u.mustShare(t, e, reading(t, w, "wanted"))
	})
}

// The same holds for an answer about a host.
func TestGroup_AnAnswerAboutAHostIsOfTheGroup(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network_hosts")
	onEachAsked(t, inTurn(t, withNamespaces(t)), func(t *testing.T, _ *harness.World, e *harness.Editor, u *user) {
		u.mustShare(t, e, connecting(serveOutside(t, 0)))
	})
}

// A call that was refused five times is asked about nothing more for a minute. The
// next call of the group is asked.
func TestGroup_SilenceIsOfTheCallThatWasRefused(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	onEachAsked(t, machines(t), func(t *testing.T, w *harness.World, e *harness.Editor, u *user) {
		const most = 5
		var wanted []access
		var lines []string
		for i := range most + 1 {
			wanted = append(wanted, reading(t, w, fmt.Sprint("wanted-", i)))
			lines = append(lines, wanted[i].line)
		}
		began := time.Now()
		e.Run(protocol.SpawnParams{Group: "agent", Command: strings.Join(lines, "; ")})
		slow := time.Since(began) > time.Minute // the sixth question may be asked then
		for i, one := range wanted {
			if n := len(u.about(one.target)); (n > 0) != (i < most) && (!slow || i != most) {
				t.Errorf("control: access %d of the call: %d questions", i, n)
			}
		}
		u.mustTake(t, e, 0, step{"agent", reading(t, w, "later"), true, false})
	})
}

// What a call has left silences no later call, and gets no new questions with each.
func TestGroup_WhatACallHasLeftSilencesNoOther(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	onEachAsked(t, machines(t), func(t *testing.T, w *harness.World, e *harness.Editor, u *user) {
		const most = 5
		var left []access
		rounds := []string{"first", "second"}
		line := ""
		for _, round := range rounds {
			line += "until test -e " + round + "-go; do sleep 0.05; done; "
			for i := range most {
				left = append(left, reading(t, w, fmt.Sprint(round, "-", i)))
				line += left[len(left)-1].line + "; "
			}
			line += "touch " + round + "-done; "
		}
		e.Run(protocol.SpawnParams{Group: "agent", Command: "{ " + line + "} >/dev/null 2>&1 &"})
		began := time.Now()
		for i, round := range rounds {
			wanted := reading(t, w, "wanted-"+round)
			wanted.line = fmt.Sprintf("touch %s-go; until test -e %s-done; do sleep 0.05; done; %s", round, round,
				wanted.line)
			u.mustTake(t, e, i, step{"agent", wanted, true, false})
		}
		slow := time.Since(began) > time.Minute
		for i, one := range left {
			if n := len(u.about(one.target)); (n > 0) != (i < most) && (!slow || i < most) {
				t.Errorf("access %d of what the call has left: %d questions", i, n)
			}
		}
	})
}

// withNamespaces are the machines where sessions have a network, files in /tmp and
// System V IPC that others have not. Without any, the test is skipped.
func withNamespaces(t *testing.T) (list []harness.Machine) {
	t.Helper()
	for _, machine := range machines(t) {
		if machine.Namespaces {
			list = append(list, machine)
		}
	}
	if len(list) == 0 {
		harness.Skip(t, "user_namespaces", "sessions share the network of the machine")
	}
	return list
}

// serveOutside starts a service of this machine, which answers "outside". It returns
// the port, which is any if 0 is given.
func serveOutside(t *testing.T, port int) int {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "outside\n")
			conn.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// connecting connects to a service of this machine.
func connecting(port int) access {
	return access{
		fmt.Sprintf("exec 3<>/dev/tcp/host.sandbox.internal/%d && cat <&3", port),
		fmt.Sprintf("host.sandbox.internal:%d", port), "outside",
	}
}
