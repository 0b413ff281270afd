package presentation

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

func TestHints_OnlyIfSomethingSpeaksForTheSandbox(t *testing.T) {
	t.Parallel()
	confined := spawn.Outcome{
		Confined: true, Dropped: []string{"AWS_PROFILE", "CC", "EVIL\x1b", "GIT_ASKPASS", "PGHOST"},
	}
	limited := spawn.Outcome{Confined: true}
	const report = `{"protections": {"limits": {"status": "degraded", "mechanism": "pids.max"}}}`
	if err := json.Unmarshal([]byte(report), &limited.Enforcement); err != nil {
		t.Fatal(err)
	}
	offline, byHost := spawn.Outcome{Confined: true}, spawn.Outcome{Confined: true}
	const network = `{"protections": {"network": {"status": "enforced"}, "network_hosts": `
	for report, into := range map[string]*spawn.Outcome{
		`{"status": "absent", "notAsked": true}}}`: &offline, `{"status": "enforced"}}}`: &byHost,
	} {
		if err := json.Unmarshal([]byte(network+report), &into.Enforcement); err != nil {
			t.Fatal(err)
		}
	}
	unresolved := spawn.Exit{Code: 6}
	refusal, failed := spawn.Heard{Refusal: true}, spawn.Exit{Code: 1}
	none := func(string) bool { return false }
	for name, test := range map[string]struct {
		failed Failed
		want   []string
	}{
		"a failing grep": {Failed{Exit: failed, Argv: []string{"grep", "x", "file"}, Outcome: confined}, nil},
		"it works":       {Failed{Argv: []string{"aws"}, Outcome: confined, Heard: refusal}, nil},
		"it was interrupted": {
			Failed{Exit: spawn.Exit{Signal: syscall.SIGINT}, Outcome: confined, Heard: refusal}, nil,
		},
		"there is no sandbox": {Failed{Exit: failed, Argv: []string{"aws"}, Heard: refusal}, nil},
		"the output says so": {
			Failed{Exit: failed, Argv: []string{"x"}, Outcome: confined, Heard: refusal}, []string{"learn"},
		},
		"no process could be started": {
			Failed{Exit: failed, Argv: []string{"x"}, Outcome: limited, Heard: spawn.Heard{Exhausted: true}},
			[]string{`"limits.processes"`},
		},
		"no process could be started, and there is no limit": {
			Failed{Exit: failed, Argv: []string{"x"}, Outcome: confined, Heard: spawn.Heard{Exhausted: true}}, nil,
		},
		"it is reported": {
			Failed{Exit: failed, Argv: []string{"x"}, Outcome: confined, Heard: refusal, Reported: true}, nil,
		},
		"nobody has seen the output": {
			Failed{Exit: failed, Argv: []string{"/usr/bin/python3.11"}, Outcome: confined, Unheard: true},
			[]string{"if it was the sandbox"},
		},
		"a name without a network": {
			Failed{Exit: unresolved, Argv: []string{"/usr/bin/curl", "x"}, Outcome: offline, Unheard: true},
			[]string{`"allowed_hosts" opens single hosts`},
		},
		"a name in a line": {
			Failed{Exit: unresolved, Argv: []string{"sh", "-c", "cd /; curl x"}, Outcome: offline},
			[]string{`"allowed_hosts" opens single hosts`},
		},
		"a name that is reported": {
			Failed{Exit: unresolved, Argv: []string{"curl"}, Outcome: offline, Reported: true}, nil,
		},
		"ping without a socket": {
			Failed{Exit: spawn.Exit{Code: 2}, Argv: []string{"/usr/bin/ping", "-c1", "x"}, Outcome: confined},
			[]string{"no setting opens ICMP"},
		},
		"ping without a network": { // no host of allowed_hosts helps
			Failed{
				Exit: spawn.Exit{Code: 2}, Argv: []string{"sh", "-c", "ping6 x"}, Outcome: offline, Heard: refusal,
				Reported: true,
			}, []string{"no setting opens ICMP"},
		},
		"ping without an answer":       {Failed{Exit: failed, Argv: []string{"ping", "x"}, Outcome: confined}, nil},
		"curl has a reason of its own": {Failed{Exit: failed, Argv: []string{"curl"}, Outcome: offline}, nil},
		"a name with the network":      {Failed{Exit: unresolved, Argv: []string{"curl"}, Outcome: confined}, nil},
		"a name with single hosts":     {Failed{Exit: unresolved, Argv: []string{"curl"}, Outcome: byHost}, nil},
		"make has a reason of its own": {
			Failed{Exit: failed, Argv: []string{"make"}, Outcome: spawn.Outcome{Confined: true}, Unheard: true}, nil,
		},
		"git diff": {Failed{Exit: failed, Argv: []string{"git", "diff"}, Outcome: confined, Unheard: true}, nil},
		"git clone": {
			Failed{Exit: spawn.Exit{Code: 128}, Argv: []string{"git", "clone"}, Outcome: confined, Unheard: true},
			[]string{"if it was the sandbox"},
		},
		"the status says so": {
			Failed{Exit: spawn.Exit{Code: 126}, Argv: []string{"x"}, Outcome: confined}, []string{"learn"},
		},
		"a program's variable": {
			Failed{Exit: failed, Argv: []string{"/usr/bin/aws", "s3"}, Outcome: confined}, []string{"AWS_PROFILE"},
		},
		"in a line": {
			Failed{Exit: failed, Argv: []string{"sh", "-c", "cd x && (make; psql)"}, Outcome: confined},
			[]string{": CC, PGHOST;"},
		},
		"git asks an editor": {Failed{Exit: failed, Argv: []string{"git", "status"}, Outcome: confined}, nil},
		"git push without the set": {
			Failed{Exit: spawn.Exit{Code: 128}, Argv: []string{"git", "push"}, Outcome: confined, HasToolchain: none},
			[]string{`add "ssh" to "toolchains"`},
		},
		"git that connects nowhere": {
			Failed{
				Exit: spawn.Exit{Code: 255}, Argv: []string{"git", "config", "--global", "user.name", "x"},
				Outcome: confined, HasToolchain: none, Reported: true,
			}, nil,
		},
		"git that connects nowhere, fatal": {
			Failed{
				Exit: spawn.Exit{Code: 128}, Argv: []string{"git", "worktree", "add", "../x"}, Outcome: confined,
				HasToolchain: none, Reported: true,
			}, nil,
		},
		"a line with scp": {
			Failed{Exit: spawn.Exit{Code: 255}, Argv: []string{
				"sh", "-c", "cd x; scp a b:",
			}, Outcome: confined, HasToolchain: none},
			[]string{`add "ssh" to "toolchains"`},
		},
		"ssh with the set": {Failed{Exit: spawn.Exit{Code: 255}, Argv: []string{"ssh", "x"}, Outcome: confined}, nil},
		"a remote's status": {
			Failed{Exit: failed, Argv: []string{"ssh", "x"}, Outcome: confined, HasToolchain: none}, nil,
		},
		"an agent without its set": {
			Failed{Argv: []string{"/opt/claude"}, Outcome: confined, HasToolchain: none, Reported: true},
			[]string{"`sandbox-sidecar agent claude`"},
		},
		"an agent that ends well": {Failed{Argv: []string{"codex"}, Outcome: confined, HasToolchain: none}, nil},
		"an agent with its set": {
			Failed{Exit: failed, Argv: []string{"claude"}, Outcome: confined, Reported: true}, nil,
		},
		"the output names it": {
			Failed{
				Exit: failed, Argv: []string{"x"}, Outcome: confined,
				Heard: spawn.Heard{Variables: []string{"EVIL\x1b", "B", "C", "D"}},
			}, []string{`EVIL\x1b, B, C, …; to pass one: add "+EVIL\x1b"`},
		},
	} {
		test.failed.PassVariable = func(name string) string { return "add " + display.Quote("+"+name) }
		if test.failed.HasToolchain == nil {
			test.failed.HasToolchain = func(string) bool { return true }
		}
		test.failed.FirstTime = func(string) bool { return true }
		got := Hints(test.failed)
		if len(got) != len(test.want) || slices.ContainsFunc(got, func(line string) bool {
			return strings.Contains(line, "\x1b")
		}) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", name, got[i], want)
			}
		}
	}
}

func TestLimitReached_IsOneShortLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit spawn.Reached
		want  string
	}{
		{
			spawn.Reached{Key: spawn.ProcessesKey, Most: 4194304},
			`The kernel refused a process beyond 4194304; "limits.processes" sets it.`,
		},
		{
			spawn.Reached{Key: spawn.ProcessesKey, Most: 4194304, Printed: true},
			`A program says it got no process beyond 4194304; "limits.processes" sets it.`,
		},
		{
			spawn.Reached{Key: spawn.MemoryKey, Most: 64 << 20},
			`The kernel ended a process at 64 MB of memory; "limits.memory" sets it.`,
		},
		{
			spawn.Reached{Key: spawn.MemoryKey, Most: 1 << 40, Whole: true},
			`The kernel ended the command at 1048576 MB of memory; "limits.memory" sets it.`,
		},
		{
			spawn.Reached{Key: spawn.ConnectionsKey, Most: 4096},
			`A connection beyond 4096 was refused; "limits.connections" sets it.`,
		},
		{
			spawn.Reached{Key: spawn.ConnectionsKey, Most: 4096, Shared: true},
			`A connection beyond 4096 was refused: the sidecar has no more (ulimit -n).`,
		},
	} {
		got := LimitReached("s", test.limit)
		if got.Message != test.want || got.Setting != test.limit.Key || (got.Source != "") != test.limit.Printed {
			t.Errorf("%+v", got)
		}
		if line := "sandbox-sidecar: note: " + LimitLine(test.limit); len(line) > 100 { // as exec prints it
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}
