//go:build linux

package denials

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// hostile are names that a session or a repository may choose. In each, the
// text after a line end could pass for a line of its own.
var hostile = []string{
	"x](command:workbench.action.quit)",
	"[Fix](command:workbench.action.quit)",
	"a\nFORGED: allowed",
	"a\r\nFORGED\x1b[2J\x1b]0;title\x07\x1b[31m",
	"a\u202etxt.exe\u2066\u200b\u2028FORGED",
	"$(error) <b>`x`",
	"\xff\x9b31m\u0085FORGED",
	"  \u2800\u3164\u00a0 &#x202e;" + strings.Repeat("\u0301", 40),
	strings.Repeat("n", 230) + "](command:x)",
}

// unfit says why a line must not be shown to a user; "" if it may.
func unfit(line string, most int) string {
	for _, r := range line {
		if !unicode.IsPrint(r) || r == '\u2800' || r == '\u3164' {
			return fmt.Sprintf("it holds %U", r)
		}
	}
	for _, bad := range []string{"](", "$(", "://", "\u0301\u0301\u0301"} {
		if strings.Contains(line, bad) {
			return fmt.Sprintf("it holds %q", bad)
		}
	}
	if n := utf8.RuneCountInString(line); n > most {
		return fmt.Sprintf("it has %d characters", n)
	}
	return ""
}

// sentences are the fields of messages that a client shows as they are, with
// the longest length. The rest is raw data.
var sentences = map[string]int{
	"message": 2000, "reason": 2000, "hint": 2000, "problem": 2000, "warnings": 2000, "detail": 2000, "fix": 2000,
	"mechanism": 2000, "opens": 2000, "why": 2000,
}

// record keeps, by field, every message that reaches an editor.
type record struct {
	t    *testing.T
	mu   sync.Mutex // guards said
	said map[string][]string
}

func (r *record) take(what string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		r.t.Errorf("%s: %v", what, err)
		return
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		r.t.Errorf("%s: %v", what, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.walk(what, "", tree)
}

func (r *record) walk(what, field string, tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for key, value := range tree {
			r.walk(what, key, value)
		}
	case []any:
		for _, value := range tree {
			r.walk(what, field, value)
		}
	case string:
		most, shown := sentences[field]
		if !shown {
			return
		}
		if why := unfit(tree, most); why != "" {
			r.t.Errorf("%s: %s: %s: %q", what, field, why, tree)
		}
		r.said[what+"."+field] = append(r.said[what+"."+field], tree)
	}
}

// failed records an error as the protocol carries it.
func (r *record) failed(what string, err error) {
	if err == nil {
		r.t.Errorf("%s succeeds", what)
		return
	}
	r.take(what, map[string]any{"message": err.Error()})
}

// about counts the messages of a field that hold an escape, and so are about a
// hostile name.
func (r *record) about(field string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, said := range r.said[field] {
		if strings.Contains(said, `\x`) || strings.Contains(said, `\u`) || strings.Contains(said, `\n`) ||
			strings.Contains(said, "…") {
			count++
		}
	}
	return count
}

// dirFor makes a directory below another.
func dirFor(t testing.TB, below, name string) string {
	t.Helper()
	dir := filepath.Join(below, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// requestsOf are settings of a project that ask for hostile things.
func requestsOf(name string) harness.Sandbox {
	name = strings.ToValidUTF8(name, "?")
	return harness.Sandbox{
		"additional_read_write_paths": []string{"/nowhere/" + name, "http://evil.example/" + name},
		"toolchains":                  []string{name},
		"allowed_env_vars":            []string{strings.ReplaceAll(name, "*", "") + "*", "X" + name},
		"allowed_unix_sockets":        []string{"/nowhere/" + name},
		"protected_paths":             []string{"sub/" + name},
	}
}

// mistakesOf are such settings with mistakes, so that they cannot be trusted.
func mistakesOf(name string) harness.Sandbox {
	block := requestsOf(name)
	name = strings.ToValidUTF8(name, "?")
	block["unknown "+name], block["on_denied"] = true, name
	return block
}

// Whatever names and values a session, a project or an editor chooses: every
// message is one harmless line.
func TestNothingHostileIsInAMessage(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	r := &record{t: t, said: map[string][]string{}}
	programs := dirFor(t, s.Project, "bin")
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	copyOf := harness.Read(t, cat)
	asked := s.ask(harness.Sandbox{
		"protected_paths":            protectedNames(),
		"additional_read_only_paths": []string{"/nowhere/" + hostile[0], hostile[2]},
	},
		func(p protocol.RequestAccessParams) protocol.Decision {
			r.take("question", p)
			return protocol.DecisionDeny
		})
	client.On(asked.Client, protocol.LogMessage, func(p protocol.LogMessageParams) { r.take("log", p) })
	client.On(asked.Client, protocol.SettingsDiagnostics, func(p protocol.DiagnosticsParams) {
		r.take("diagnostics", p)
	})
	client.On(asked.Client, protocol.SettingsChanged, func(p protocol.SettingsChangedParams) { r.take("changed", p) })
	r.take("initialize", asked.Hello)

	for _, name := range hostile {
		outside := filepath.Join(s.Outside, name)
		harness.Write(t, outside, "secret\n")
		program := filepath.Join(programs, name)
		harness.Write(t, program, copyOf)
		if err := os.Chmod(program, 0o755); err != nil {
			t.Fatal(err)
		}
		long := filepath.Join(dirFor(t, s.Outside, strings.Repeat("d", 250)), name)
		harness.Write(t, long, "secret\n")
		session := asked.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "/bin/sh", Args: []string{
			"-c",
			`"$1" "$2" "$3"; echo x >"$2"; mkdir "$2"d; rm "$2"; "$1" "$4"; echo x >"$5"; mkdir -p .github/workflows ` +
				`&& echo x >".github/workflows/$6"; sleep 0.3`, "sh",
			program, outside, long, s.OutsidePath("nothing"), filepath.Join(s.Project, "sub-"+name), name,
		}})
		r.take("spawn", session.SpawnResult)
		// The session itself may not create the protected path.
		harness.Write(t, filepath.Join(s.Project, "sub-"+name), "x")
		session.Exit()
		r.take("close", session.Close(0))

		dir := dirFor(t, s.Project, "p-"+name)
		file := filepath.Join(dir, ".zed", "settings.json")
		harness.Write(t, file, harness.Settings(mistakesOf(name)))
		if utf8.ValidString(dir) {
			status := protocol.ProjectParams{ProjectDir: dir}
			r.take("mistakes", harness.Call(asked.Editor, protocol.ProjectStatus, status))
			_, err := harness.Try(asked.Editor, protocol.Spawn,
				protocol.SpawnParams{Kind: protocol.Tool, Cwd: dir, Command: "true"})
			r.failed("error: settings with mistakes", err)
			harness.Write(t, file, harness.Settings(requestsOf(name)))
			_, err = harness.Try(asked.Editor, protocol.ProjectTrust,
				protocol.ProjectTrustParams{ProjectDir: dir, Digest: "0"})
			r.failed("trust", err)
			r.take("project", harness.Call(asked.Editor, protocol.ProjectStatus, status))
			r.take("policy", harness.Call(asked.Editor, protocol.PolicyGet,
				protocol.PolicyGetParams{ProjectDir: dir, Kind: protocol.Tool}))
			for _, access := range []protocol.Access{
				protocol.AccessRead, protocol.AccessWrite, protocol.AccessConnectUnix,
			} {
				r.take("explain", harness.Call(asked.Editor, protocol.PolicyExplain, protocol.PolicyExplainParams{
					ProjectDir: dir, Kind: protocol.Tool, Access: access, Target: filepath.Join("/nowhere", name),
				}))
			}
			for what, params := range map[string]protocol.SpawnParams{
				"no program":   {Cwd: s.Project, Command: "/nowhere/" + name, Args: []string{"x"}},
				"no directory": {Cwd: "/nowhere/" + name, Command: "true"},
				"no project":   {Cwd: s.Project, ProjectDir: "/nowhere/" + name, Command: "true"},
				"no path":      {Cwd: name, Command: "true"},
				"no session":   {Cwd: s.Project, SessionID: name, Command: "true"},
				"no kind":      {Cwd: s.Project, Kind: protocol.Kind(name), Command: "true"},
				"no variable":  {Cwd: s.Project, Env: map[string]string{"=" + name: ""}, Command: "true"},
			} {
				_, err := harness.Try(asked.Editor, protocol.Spawn, params)
				r.failed("error: "+what, err)
			}
			_, err = harness.Try(asked.Editor, protocol.Request[protocol.Empty, protocol.Empty]{Method: "x/" + name},
				protocol.Empty{})
			r.failed("error: no method", err)
			harness.Notify(asked.Editor, protocol.Notification[protocol.Empty]{Method: "x/" + name}, protocol.Empty{})
		}
	}
	for _, denied := range asked.denials.All() {
		r.take("denied", denied)
		if strings.HasPrefix(denied.Access, "protected_") {
			r.take("alarm", denied)
		}
	}
	// The attempts above have really led to messages about hostile names.
	for _, field := range []string{
		"question.message", "denied.message", "alarm.message", "close.message", "mistakes.message", "mistakes.problem",
		"error: settings with mistakes.message", "project.message", "explain.message", "explain.reason",
		"trust.message", "diagnostics.message",
		"policy.message", "error: no program.message", "error: no directory.message", "error: no project.message",
		"error: no path.message", "error: no session.message",
		"error: no kind.message", "error: no variable.message", "error: no method.message", "log.message",
	} {
		if got := r.about(field); got < 3 {
			t.Errorf("%s: %d are about hostile names: %q", field, got, r.said[field])
		}
	}
}

// protectedNames are protected paths that do not exist yet.
func protectedNames() []string {
	var list []string
	for _, name := range hostile {
		if utf8.ValidString(name) {
			list = append(list, "sub-"+name)
		}
	}
	return list
}

// The same holds for what the commands print on a terminal: no name can forge a
// line of the sidecar. Each command takes turns with the names, and each name
// with the commands.
func TestNothingHostileReachesTheTerminal(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	for i, name := range hostile {
		project := dirFor(t, s.Project, "p-"+name)
		harness.Write(t, filepath.Join(project, ".zed", "settings.json"), harness.Settings(mistakesOf(name)))
		outside := filepath.Join(s.Outside, name)
		harness.Write(t, outside, "secret\n")
		commands := map[string][]string{
			"exec": {
				"exec", "--", "sh", "-c", `echo x >"$1"; mkdir "$1"d; : <"$1"; rm -f "$1"`, "sh", outside,
			},
			"exec nothing":  {"exec", "--", "/nowhere/" + name},
			"learn":         {"learn", "--", "sh", "-c", `echo x >"$1"; : <"$1"`, "sh", outside},
			"explain":       {"explain", "read", outside},
			"explain json":  {"explain", "--json", "read", outside},
			"policy":        {"policy"},
			"policy json":   {"policy", "--json"},
			"trust show":    {"trust", "--show"},
			"trust nothing": {"trust", "/nowhere/" + name},
			"misuse":        {"policy", name},
			"no command":    {"x" + name},
			"no settings":   {"policy", "--kind", name},
			"serve":         {"serve", "--settings", name},
			"doctor":        {"doctor"},
		}
		for j, what := range slices.Sorted(maps.Keys(commands)) {
			if !harness.Turn(t, i+j, 4) {
				continue
			}
			command := s.execute(
				harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{"/nowhere/" + name}}),
				commands[what]...)
			command.Dir = project
			command.Env = append(command.Env, "PWD="+project)
			if what == "doctor" {
				command.Env = append(command.Env, "HOME="+project, "XDG_STATE_HOME="+project,
					"XDG_RUNTIME_DIR="+project, "TMPDIR="+project)
			}
			var out bytes.Buffer
			command.Stdout, command.Stderr = &out, &out
			_ = command.Run()
			// The shell itself prints which operation failed.
			text := strings.NewReplacer("\x1b[33m", "", "\x1b[0m", "", "\t", " ").Replace(ownLines(out.String()))
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				if json := strings.HasSuffix(what, "json") || what == "learn"; json {
					// A terminal follows no link syntax, and these lines are
					// for programs.
					line = strings.NewReplacer("](", "", "$(", "", "://", "", "\u0301", "").Replace(line)
				}
				if why := unfit(line, 4000); why != "" {
					t.Errorf("%d, %s: %s: %q", i, what, why, line)
				}
				if strings.HasPrefix(line, "FORGED") {
					t.Errorf("%d, %s: a forged line: %q", i, what, line)
				}
			}
			if text == "" {
				t.Errorf("%d, %s: prints nothing", i, what)
			}
		}
	}
}

// ownLines drops what the command itself has printed, up to the sidecar's first
// line behind it.
func ownLines(text string) string {
	if _, own, found := strings.Cut(text, "sandbox-sidecar:"); found && strings.Contains(text, "sh: ") {
		return "sandbox-sidecar:" + own
	}
	return text
}

// On a terminal, trust shows each request on a line of its own and asks. Only
// the whole word "yes" trusts.
func TestTrustAsksOnTheTerminal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		typed   string
		trusted bool
	}{
		"yes": {"yes\n", true}, "nothing": {"\n", false}, "a letter": {"y\n", false}, "no": {"no\n", false},
		"the end": {"\x04", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			harness.Write(t, filepath.Join(s.Project, ".zed", "settings.json"),
				harness.Settings(requestsOf(hostile[2])))
			command := s.execute(harness.Settings(nil), "trust")
			terminal := harness.StartTerminal(t, command)
			terminal.Await(`press Enter to leave them untrusted: `)
			terminal.Type(test.typed)
			status := terminal.Status()
			text := harness.Unfold(strings.ReplaceAll(terminal.Screen.String(), "\r", ""))
			lines := strings.Count(text, `additional_read_write_paths "/nowhere/a\nFORGED: allowed": sessions may`)
			if lines != 1 && !test.trusted || strings.Contains(text, "\nFORGED") {
				t.Errorf("%d lines:\n%s", lines, text)
			}
			list := filepath.Join(s.Home, ".local", "state", "sandbox-sidecar", "trust.json")
			_, statErr := os.Stat(list)
			written := statErr == nil && strings.Contains(harness.Read(t, list), s.Project)
			if (status == 0) != test.trusted || written != test.trusted {
				t.Errorf("status %d, written %t:\n%s", status, written, text)
			}
		})
	}
}
