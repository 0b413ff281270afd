//go:build unix

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/control"
)

// A sandbox is found by its name, by the first digits of its id in any case, and
// by those of a session in it. Otherwise the error says what to do.
func TestFindSandbox(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	shared := func(id, group string, age time.Duration) control.Session {
		return control.Session{ID: id, Shared: true, Group: group, ProjectDir: "/p/" + group, StartedAt: at.Add(-age)}
	}
	list := []control.Supervisor{
		{PID: 1, Sessions: []control.Session{
			shared("abcd1111", "agent", 0), {ID: "ef012222", Sandbox: "abcd1111"}, {ID: "77773333"},
		}},
		{PID: 2, Sessions: []control.Session{shared("aaaa4444", "twice", time.Hour), shared("bbbb5555", "twice", 0)}},
	}
	for named, want := range map[string]string{
		"agent":    "abcd1111",
		"abcd":     "abcd1111",
		"ABCD1":    "abcd1111",
		"EF01":     "abcd1111",
		"aaaa4444": "aaaa4444",
		"twice":    `"twice" names 2 sandboxes, the newest of them bbbb5555 in "/p/twice"`,
		"abc":      `"abc" is too short for an id: use at least the first 4 digits`,
		"7777":     "session 77773333 has a sandbox of its own",
		"Agent":    `no sandbox has the id or name "Agent"`,
		"ccc":      `no sandbox has the id or name "ccc"`,
	} {
		found, err := findSandbox(list, named)
		got := found.sandbox.ID
		if failed, is := errors.AsType[*joinError](err); is {
			got = failed.why + ": " + failed.hint()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", named, got, want)
		}
	}
}

// A command that joined was not started by the process that has its sandbox.
func TestPrintRunning_SaysWhoHasJoined(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	now := time.Now()
	printRunning(&out, []control.Supervisor{{By: "mcp", Client: "agent", Sessions: []control.Session{
		{ID: "abcd1111", Shared: true, Group: "agent", StartedAt: now},
		{ID: "ef012222", Sandbox: "abcd1111", StartedAt: now, Argv: []string{"own"}},
		{ID: "aa012222", Sandbox: "abcd1111", StartedAt: now, Argv: []string{"bash"}, Joined: true},
	}}}, false, now)
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasSuffix(line, "own") && !strings.Contains(line, "mcp, agent") ||
			strings.HasSuffix(line, "bash") && strings.Contains(line, "mcp") {
			t.Errorf("listed:\n%s", &out)
		}
	}
	if strings.Count(out.String(), "exec --join") != 1 {
		t.Errorf("listed:\n%s", &out)
	}
}

// If a process did not say what it runs, nothing is said of all of them.
func TestPrintRunning_OfSilentProcesses(t *testing.T) {
	t.Parallel()
	for silent, want := range map[bool]string{true: "", false: "no session runs\n"} {
		var out strings.Builder
		printRunning(&out, nil, silent, time.Now())
		if out.String() != want {
			t.Errorf("silent %v: %q", silent, &out)
		}
	}
}
