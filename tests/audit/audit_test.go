//go:build unix

package audit

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	trail "github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

var file = harness.Sandbox{"audit": "file"}

// TestAudit_EveryWayToStartASession: each is noted, from its start to its end.
func TestAudit_EveryWayToStartASession(t *testing.T) {
	t.Parallel()
	s := newScene(t, file)
	s.env = []string{"SANDBOX_SHELL=/bin/sh"}
	for via, args := range map[string][]string{
		"exec":  {"exec", "--", "sh", "-c", "exit 3"},
		"shell": {"shell", "-c", "exit 3"},
		"acp":   {"acp", "--", "sh", "-c", "exit 3"},
		"learn": {"learn", "--", "sh", "-c", "exit 3"},
	} {
		s.run(args...)
		events := slices.DeleteFunc(s.events("--project", s.w.Project), func(e trail.Event) bool {
			return e.Via != via
		})
		if got := kinds(events); !slices.Equal(got, []string{"spawn", "started", "ended"}) {
			t.Errorf("%s: %q", via, got)
			continue
		}
		begin, start, end := events[0], events[1], events[2]
		if begin.UID != os.Getuid() || begin.Project != s.w.Project || begin.Dir != s.w.Project || begin.Policy == "" ||
			begin.Restricted == nil || !*begin.Restricted || begin.Argv[len(begin.Argv)-1] != "exit 3" {
			t.Errorf("%s: %+v", via, begin)
		}
		if start.Session != begin.Session || start.PID == 0 || start.Confined == nil || !*start.Confined ||
			start.Protections["filesystem"] != "enforced" {
			t.Errorf("%s: %+v", via, start)
		}
		if end.Session != begin.Session || end.ExitCode == nil || *end.ExitCode != 3 {
			t.Errorf("%s: %+v", via, end)
		}
	}
}

func TestAudit_AnEditorsSessions(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	e := harness.Start(t, s.w, harness.Options{Settings: harness.Settings(file)})
	secret := s.w.OutsidePath("secret")
	harness.Write(t, secret, "x")
	terminal := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Cwd: s.w.Project, Command: "for i in 1 2 3 4 5; do cat " + secret +
			"; done; kill -9 $$",
	})
	terminal.Exit()
	e.Tool("touch Makefile")
	_ = e.HangUp()
	events := s.events()
	sessions := of(events, trail.Spawn)
	if len(sessions) != 2 || sessions[0].Kind != "terminal" || sessions[1].Kind != "tool" ||
		sessions[0].Via != "serve" {
		t.Fatalf("%+v", sessions)
	}
	refused := of(events, trail.Refused)
	times := 0
	for _, r := range refused {
		if r.Target != secret || r.Session != sessions[0].Session || r.First == nil || r.Last.Before(*r.First) {
			t.Errorf("%+v", r)
		}
		times += r.Count
	}
	if times != 5 || len(refused) != 2 { // the first one at once, and the others together
		t.Errorf("%d refusals in %d lines", times, len(refused))
	}
	if ends := of(events, trail.Ended); len(ends) != 2 || ends[0].Signal != "SIGKILL" {
		t.Errorf("%+v", ends)
	}
	reviews := of(events, trail.Review)
	if len(reviews) != 1 || reviews[0].Changed[0].Path != s.w.ProjectPath("Makefile") {
		t.Errorf("%+v", reviews)
	}
}

// TestAudit_KeepsNoSecret: neither output nor values of variables, nor what
// looks like a secret in arguments. The control is that all of it was there.
func TestAudit_KeepsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2hunter2"
	s := newScene(t, harness.Sandbox{"audit": "file", "allowed_env_vars": []string{"SECRET_VALUE", "PATH"}})
	s.env = []string{"SECRET_VALUE=" + secret}
	out, ok := s.run("exec", "--", "sh", "-c", `echo "value $SECRET_VALUE $1 $2"`, "sh", "--token", secret)
	if !ok || strings.Count(out, secret) != 2 {
		t.Fatalf("control: %s", out)
	}
	if raw := s.raw(); strings.Contains(raw, secret) || !strings.Contains(raw, "[redacted]") {
		t.Errorf("%s", raw)
	}
}

// TestAudit_WithoutArguments: the user decides whether the trail has arguments. A
// project's file does not, trusted or not.
func TestAudit_WithoutArguments(t *testing.T) {
	t.Parallel()
	program, redacted := harness.Sandbox{"audit_argv": "program"}, harness.Sandbox{"audit_argv": "redacted"}
	for name, row := range map[string]struct {
		user    harness.Sandbox
		project harness.Sandbox
		kept    bool
	}{
		"control":              {nil, nil, true},
		"the user":             {program, nil, false},
		"a project hides them": {nil, program, true},
		"a project shows them": {program, redacted, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			block := harness.Sandbox{"audit": "file"}
			maps.Copy(block, row.user)
			s := newScene(t, block)
			run := func() {
				t.Helper()
				if out, ok := s.run("exec", "--", "echo", "the-argument"); !ok {
					t.Fatalf("control: %s", out)
				}
			}
			run()
			want := 1
			if row.project != nil {
				project := harness.Sandbox{"additional_read_only_paths": []string{s.w.Outside}}
				maps.Copy(project, row.project)
				harness.Write(t, s.w.ProjectPath(".zed/settings.json"), harness.Defaults(project))
				run()
				if out, ok := s.trust(); !ok {
					t.Fatalf("trust: %s", out)
				}
				run()
				want = 3
			}
			starts := of(s.events(), trail.Spawn)
			if len(starts) != want {
				t.Fatalf("%+v", starts)
			}
			for _, start := range starts {
				if start.Program != "echo" || len(start.Argv) > 0 != row.kept {
					t.Errorf("%+v", start)
				}
			}
			if strings.Contains(s.raw(), "the-argument") != row.kept {
				t.Errorf("%s", s.raw())
			}
			out, ok := s.run("audit")
			if !ok || !strings.Contains(out, "echo") || strings.Contains(out, "the-argument") != row.kept {
				t.Errorf("audit: %s", out)
			}
			value := `"redacted"`
			if !row.kept {
				value = `"program"`
			}
			if out, _ := s.run("policy"); !strings.Contains(out, "audit_argv") || !strings.Contains(out, value) {
				t.Errorf("policy: %s", out)
			}
		})
	}
}

// A session cannot hide a target behind many names of processes. The control is
// that both targets were refused.
func TestAudit_ProcessNamesHideNoTarget(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "perl")
	s := newScene(t, harness.Sandbox{"audit": "file", "audit_required": true})
	decoy, last := s.w.OutsidePath("decoy"), s.w.OutsidePath("last")
	harness.Write(t, decoy, "")
	harness.Write(t, last, "")
	out, ok := s.run("exec", "--", "perl", "-e",
		`for my $i (1..5000) { $0 = "n$i"; $refused += !unlink $ARGV[0] } $refused += !unlink $ARGV[1]; print "refused $refused"`,
		decoy, last)
	if !ok || !strings.Contains(out, "refused 5001") {
		t.Fatalf("control: %s", out)
	}
	noted := map[string]int{}
	lines := of(s.events(), trail.Refused)
	for _, e := range lines {
		noted[e.Target] += e.Count
	}
	const some = 10
	if noted[last] == 0 || noted[decoy] < 1025 || len(lines) > some {
		harness.Breach(t, "noted in %d lines: %v", len(lines), noted)
	}
}

// A process that has the name of a shell hides no secret from the trail, although
// its refused history is no news to the user.
func TestAudit_ProcessNamesHideNoHistory(t *testing.T) {
	t.Parallel()
	s := newScene(t, harness.Sandbox{"audit": "file", "audit_required": true})
	history := s.w.HomePath(".bash_history")
	harness.Write(t, history, "secret\n")
	out, _ := s.run("exec", "--", "sh", "-c", `cp /bin/cat bash; ./bash "$1"; ./bash "$2"`, "sh", history,
		s.w.OutsidePath("control"))
	noted := map[string]bool{}
	for _, e := range of(s.events(), trail.Refused) {
		noted[e.Target] = true
	}
	if strings.Contains(out, "secret") || !noted[history] {
		harness.Breach(t, "noted: %v; printed: %s", noted, out)
	}
}

func TestAudit_OffIsTheDefault(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	s.run("exec", "--", "true")
	if out, ok := s.run("audit"); !ok || !strings.Contains(out, `the setting "audit" is "off"`) {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(s.dir()); err == nil {
		t.Error("there is a directory")
	}
}

// TestAudit_IsOutOfReachOfSessions: a session in the home directory itself
// cannot read, change, remove or replace the trail. Without a sandbox it can.
func TestAudit_IsOutOfReachOfSessions(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths", "hidden_paths")
	const dir, state = ".local/state/sandbox-sidecar/audit", ".local/state/sandbox-sidecar"
	for name, attack := range map[string]struct{ line, undo string }{
		"read":           {line: "cat " + dir + "/audit.jsonl | grep spawn"},
		"append":         {line: "echo forged >> " + dir + "/audit.jsonl"},
		"truncate":       {line: ": > " + dir + "/audit.jsonl"},
		"remove":         {line: "rm " + dir + "/audit.jsonl"},
		"remove the lot": {line: "rm -r " + dir},
		"move it":        {line: "mv " + dir + " " + dir + "2"},
		"move the state": {line: "mv " + state + " " + state + "2"},
		"create":         {line: "touch " + dir + "/audit-2.jsonl"},
		"take the lock":  {line: "flock -n " + dir + "/lock true"},
		"chmod":          {line: "chmod 000 " + dir},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, file)
			s.run("exec", "--", "true") // there is something to attack
			before := s.raw()
			if out, ok := s.runIn(s.w.Home, "exec", "--", "sh", "-c", attack.line); ok {
				t.Errorf("it succeeds: %s", out)
			}
			if after := s.raw(); !strings.HasPrefix(after, before) || strings.Contains(after, "\nforged") {
				t.Errorf("it has changed: %s", after)
			}
			harness.Write(t, s.w.UserSettings(), harness.Off())
			if out, ok := s.runIn(s.w.Home, "exec", "--", "sh", "-c", attack.line); !ok {
				t.Errorf("control: %s", out)
			}
			_ = os.Chmod(s.dir(), 0o700) // so that it can be removed
		})
	}
}

// TestAudit_TheFirstSessionDoesNotReachIt: the trail is made before anything runs.
func TestAudit_TheFirstSessionDoesNotReachIt(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t, file)
	// HOME alone does not say that the settings in the project are the user's own.
	if out, ok := s.runIn(s.w.Home, "exec", "--settings", s.w.UserSettings(), "--", "sh", "-c",
		"mkdir -p .local/state/sandbox-sidecar/audit; echo forged >> .local/state/sandbox-sidecar/audit/audit.jsonl"); ok {
		t.Errorf("it succeeds: %s", out)
	}
	if list := s.events(); len(of(list, trail.Spawn)) != 1 || len(of(list, trail.Ended)) != 1 {
		t.Errorf("%q", kinds(list))
	}
}

// TestAudit_AProjectHasNoSay: whether it is trusted or not.
func TestAudit_AProjectHasNoSay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		user    harness.Sandbox
		project harness.Sandbox
		lines   bool
	}{
		"turn it off": {file, harness.Sandbox{"audit": "off", "tool": harness.Sandbox{"audit": "off"}}, true},
		"turn it on":  {nil, harness.Sandbox{"audit": "file", "audit_required": true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, row.user)
			// It also asks for something, so that there is something to trust.
			row.project["additional_read_only_paths"] = []string{s.w.Outside}
			harness.Write(t, s.w.ProjectPath(".zed/settings.json"), harness.Defaults(row.project))
			for _, state := range []string{"not trusted", "trusted"} {
				before := len(of(s.events(), trail.Spawn))
				out, ok := s.run("exec", "--", "true")
				if !ok || !strings.Contains(harness.Unfold(out), "has no effect in a project's file, trusted or not") {
					t.Errorf("%s: %s", state, out)
				}
				if after := len(of(s.events(), trail.Spawn)); (after > before) != row.lines {
					t.Errorf("%s: %d lines after %d", state, after, before)
				}
				if out, ok := s.trust(); !ok {
					t.Fatalf("trust: %s", out)
				}
			}
		})
	}
}

func TestAudit_TrustAndSettings(t *testing.T) {
	t.Parallel()
	s := newScene(t, file)
	project := s.w.ProjectPath(".zed/settings.json")
	harness.Write(t, project, harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{s.w.Outside}}))
	s.trust()
	s.run("untrust", s.w.Project)
	e := harness.Start(t, s.w, harness.Options{Settings: harness.Settings(file)})
	const key = "additional_read_only_paths"
	harness.Call(e, protocol.SettingsAllow, protocol.SettingsAllowParams{
		ProjectDir: s.w.Project, Scope: "user",
		Suggestion: protocol.Suggestion{Setting: key, Value: []byte(`"/usr/games"`)},
	})
	harness.Eventually(t, "the change is noted", func() bool { return len(of(s.events(), trail.SettingsChanged)) > 0 })
	// Whoever turns it off leaves that as the last line.
	harness.Write(t, s.w.UserSettings(), harness.Settings(nil))
	harness.Eventually(t, "the end is noted", func() bool { return len(of(s.events(), trail.SettingsChanged)) > 1 })
	lines := len(s.events())
	e.Tool("true")
	events := s.events()
	if len(events) != lines {
		t.Errorf("lines after it was turned off: %q", kinds(events))
	}
	trusted, untrusted, allowed := of(events, trail.Trusted), of(events, trail.Untrusted), of(events, trail.Allowed)
	if len(trusted) != 1 || len(untrusted) != 1 || len(allowed) != 1 {
		t.Fatalf("%q", kinds(events))
	}
	if trusted[0].Project != s.w.Project || len(trusted[0].Digest) != 64 || trusted[0].Files[0] != project {
		t.Errorf("%+v", trusted[0])
	}
	if allowed[0].Key != key || allowed[0].Value != "/usr/games" || allowed[0].Files[0] != s.w.UserSettings() {
		t.Errorf("%+v", allowed[0])
	}
}

// TestAudit_TheReader chooses by time and project, and is readable.
func TestAudit_TheReader(t *testing.T) {
	t.Parallel()
	s := newScene(t, file)
	other := filepath.Join(s.w.Outside, "other")
	harness.MakeDir(t, other)
	s.run("exec", "--", "true")
	s.runIn(other, "exec", "--", "true")
	if list := s.events("--project", other); len(of(list, trail.Spawn)) != 1 || list[0].Project != other {
		t.Errorf("%+v", list)
	}
	if list := s.events("--since", time.Now().Add(time.Hour).Format(time.RFC3339)); len(list) > 0 {
		t.Errorf("%+v", list)
	}
	if list := s.events("--since", "1h"); len(of(list, trail.Spawn)) != 2 {
		t.Errorf("%+v", list)
	}
	out, ok := s.run("audit", "--since", "7d")
	if !ok || !strings.Contains(harness.Unfold(out), "terminal in "+other+": true") ||
		!strings.Contains(out, "exit status 0") {
		t.Errorf("%s", out)
	}
	for line := range strings.Lines(out) {
		if len(line) > 81 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("too wide: %s", line)
		}
	}
	if out, ok := s.run("audit", "--since", "yesterday"); ok || !strings.Contains(out, "expected a duration") {
		t.Errorf("%s", out)
	}
	if out, ok := s.run("audit", "--schema"); !ok || out != string(trail.Schema()) {
		t.Errorf("%s", out)
	}
}

// TestAudit_TheLineComesBeforeTheProgram: if it is required, the program finds it
// written. The sidecar is killed right then, and the line is there.
func TestAudit_TheLineComesBeforeTheProgram(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	e := harness.Start(t, s.w, harness.Options{
		Settings: harness.Settings(harness.Sandbox{"audit": "file", "audit_required": true}),
	})
	for range 10 {
		session := e.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Cwd: s.w.Project, Command: "echo runs; sleep 1000",
		})
		session.Await("runs")
		if raw := s.raw(); !strings.Contains(raw, session.SessionID) {
			t.Fatalf("%s runs and is not noted: %s", session.SessionID, raw)
		}
	}
	harness.Must(t, syscall.Kill(e.Process(), syscall.SIGKILL))
	if list := of(s.events(), trail.Spawn); len(list) != 10 {
		t.Errorf("%d lines", len(list))
	}
}
