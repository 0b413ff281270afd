package tests

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// scriptCommands are the commands of scripts, besides testscript's own. The file
// script/README.md describes them.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"settings": positive((*scene).settings),
	"save":     positive((*scene).save),
	"editor":   positive((*scene).editor),
	"request":  either((*scene).request),
	"notify":   positive((*scene).notify),
	"await":    positive((*scene).await),
	"forget":   positive((*scene).forget),
	"none":     positive((*scene).none),
	"frame":    positive((*scene).frame),
	"body":     positive((*scene).body),
	"answer":   positive((*scene).answer),
	"log":      positive((*scene).log),
	"spawn":    either((*scene).spawn),
	"tool":     either((*scene).tool),
	"type":     positive((*scene).typeBytes),
	"expect":   positive((*scene).expect),
	"printed":  positive((*scene).printed),
	"exited":   positive((*scene).exited),
	"close":    positive((*scene).close),
	"policy":   positive((*scene).policy),
	"digest":   positive((*scene).digest),
	"equal":    either((*scene).equal),
	"status":   positive((*scene).status),
}

type sceneKey struct{}

// scene is the state of one script.
type scene struct {
	t      testing.TB
	ts     *testscript.TestScript
	world  *harness.World
	binary string
	env    []string
	w      *wire          // the sidecar that was started last
	read   map[string]int // how much of each session's output was expected
}

func either(run func(s *scene, neg bool, args []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		s := ts.Value(sceneKey{}).(*scene)
		s.ts = ts
		run(s, neg, args)
	}
}

func positive(run func(s *scene, args []string)) func(*testscript.TestScript, bool, []string) {
	return either(func(s *scene, neg bool, args []string) {
		if neg {
			s.ts.Fatalf("this command cannot be negated")
		}
		run(s, args)
	})
}

// end shuts down a sidecar that a script has left, and reports promises that
// the sidecar broke.
func (s *scene) end() {
	if s.w == nil {
		return
	}
	s.w.in.Close()
	if _, err := s.w.wait(); err != nil {
		s.t.Errorf("after the end of stdin: %v", err)
		_ = s.w.process.Process.Kill()
	}
	for _, fault := range s.w.broken {
		s.t.Errorf("promise broken: %s", fault)
	}
	if s.t.Failed() {
		s.t.Logf("log of the sidecar:\n%s", s.w.log.String())
	}
}

func (s *scene) need(args []string, least int, usage string) {
	if len(args) < least {
		s.ts.Fatalf("usage: %s", usage)
	}
}

// match checks text against patterns.
func (s *scene) match(text string, patterns []string) {
	for _, pattern := range patterns {
		if re, negative := s.pattern(pattern); re.MatchString(text) == negative {
			s.ts.Fatalf("%s does not hold for %s", pattern, text)
		}
	}
}

func (s *scene) pattern(text string) (re *regexp.Regexp, negative bool) {
	text, negative = strings.CutPrefix(text, "!")
	if len(text) < 2 || text[0] != '/' || text[len(text)-1] != '/' {
		s.ts.Fatalf("expected a /pattern/, found %s", text)
	}
	re, err := regexp.Compile(text[1 : len(text)-1])
	s.ts.Check(err)
	return re, negative
}

// cut splits "words -> patterns" and joins the words.
func cut(args []string) (words string, patterns []string) {
	for i, arg := range args {
		if arg == "->" {
			return strings.Join(args[:i], " "), args[i+1:]
		}
	}
	return strings.Join(args, " "), nil
}

func (s *scene) settings(args []string) {
	s.need(args, 2, "settings user|project JSON")
	var keys harness.Sandbox
	s.ts.Check(json.Unmarshal([]byte(strings.Join(args[1:], " ")), &keys))
	path, content := s.world.UserSettings(), harness.Settings(keys)
	if args[0] == "project" {
		path = filepath.Join(s.world.Project, ".zed", "settings.json")
		block, err := json.Marshal(map[string]any{"terminal": map[string]any{"sandbox": keys}})
		s.ts.Check(err)
		content = string(block)
	}
	s.rename(path, content)
}

func (s *scene) save(args []string) {
	s.need(args, 2, "save FILE PATH")
	s.rename(args[1], s.ts.ReadFile(args[0]))
}

func (s *scene) rename(path, content string) {
	s.ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	s.ts.Check(os.WriteFile(path+"~", []byte(content), 0o600))
	s.ts.Check(os.Rename(path+"~", path))
}

func (s *scene) editor(args []string) {
	s.need(args, 1, "editor env|launch|start|quit|hangup|signal|ended …")
	switch action, rest := args[0], args[1:]; action {
	case "env":
		s.env = append(s.env, rest...)
	case "launch":
		s.launch(rest)
	case "start":
		s.launch(nil)
		params, patterns := cut(rest)
		if params == "" {
			params = `{"processId":null,"capabilities":{}}`
		}
		answer := s.ask(false, "initialize", params)
		s.match(answer, patterns)
		s.ts.Check(s.w.notify("initialized", "{}"))
	case "quit":
		s.ask(false, "shutdown", "{}")
		s.ts.Check(s.w.notify("exit", "{}"))
		s.editor([]string{"ended", "0"})
	case "hangup":
		s.ts.Check(s.w.in.Close())
	case "signal":
		s.ts.Check(s.w.process.Process.Signal(unix.SignalNum(rest[0])))
	case "ended":
		status, err := s.w.wait()
		s.ts.Check(err)
		if strconv.Itoa(status) != rest[0] {
			s.ts.Fatalf("exit status %d", status)
		}
	default:
		s.ts.Fatalf("editor: unknown action %q", action)
	}
}

func (s *scene) launch(flags []string) {
	if s.w != nil {
		s.end()
	}
	command := exec.Command(s.binary, append([]string{"serve", "--log-level", "debug"}, flags...)...)
	command.Env = append(harness.Environ(s.world), s.env...)
	w, err := startWire(command)
	s.ts.Check(err)
	s.w = w
}

// ask sends a request and returns its result, or with "failing" its error.
func (s *scene) ask(failing bool, method, params string) string {
	answer, err := s.w.request(method, params)
	s.ts.Check(err)
	switch {
	case failing && answer.Error == nil:
		s.ts.Fatalf("%s: expected an error, found %s", method, answer.Result)
	case failing:
		return string(answer.Error)
	case answer.Error != nil:
		s.ts.Fatalf("%s: %s", method, answer.Error)
	}
	return string(answer.Result)
}

func (s *scene) request(neg bool, args []string) {
	s.need(args, 2, "request METHOD JSON -> …")
	params, patterns := cut(args[1:])
	s.match(s.ask(neg, args[0], params), patterns)
}

func (s *scene) notify(args []string) {
	s.need(args, 2, "notify METHOD JSON")
	s.ts.Check(s.w.notify(args[0], strings.Join(args[1:], " ")))
}

func (s *scene) await(args []string) {
	s.need(args, 1, "await METHOD -> …")
	_, patterns := cut(args[1:])
	var seen []string
	_, ok := s.w.find(func(m message) bool {
		if m.Method != args[0] {
			return false
		}
		seen = append(seen, string(m.Params))
		for _, pattern := range patterns {
			if re, negative := s.pattern(pattern); re.Match(m.Params) == negative {
				return false
			}
		}
		return true
	})
	if !ok {
		s.ts.Fatalf("no %s like that; came: %s", args[0], seen)
	}
}

func (s *scene) unescape(text string) string {
	plain, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	s.ts.Check(err)
	return plain
}

func (s *scene) frame(args []string) { s.ts.Check(s.w.write(s.unescape(strings.Join(args, " ")))) }

func (s *scene) body(args []string) {
	s.ts.Check(s.w.write(frame(s.unescape(strings.Join(args, " ")))))
}

func (s *scene) answer(args []string) {
	_, patterns := cut(args)
	m, ok := s.w.find(func(m message) bool { return m.Method == "" })
	if !ok {
		s.ts.Fatalf("no answer")
	}
	text, err := json.Marshal(map[string]json.RawMessage{"id": m.ID, "result": m.Result, "error": m.Error})
	s.ts.Check(err)
	s.match(string(text), patterns)
}

func (s *scene) log(args []string) {
	s.need(args, 1, "log /PATTERN/")
	re, _ := s.pattern(args[0])
	s.w.log.Await(s.t, re.String())
}

func (s *scene) spawn(neg bool, args []string) {
	s.need(args, 1, "spawn NAME JSON -> …")
	params, patterns := cut(args[1:])
	if params == "" {
		params = "{}"
	}
	answer := s.spawnRaw(neg, params)
	s.match(answer, patterns)
	var result struct {
		SessionID string `json:"sessionId"`
	}
	s.ts.Check(json.Unmarshal([]byte(answer), &result))
	s.ts.Setenv(args[0], result.SessionID)
}

func (s *scene) spawnRaw(failing bool, params string) string {
	var members map[string]any
	s.ts.Check(json.Unmarshal([]byte(params), &members))
	if _, given := members["cwd"]; !given {
		members["cwd"] = s.world.Project
	}
	full, err := json.Marshal(members)
	s.ts.Check(err)
	return s.ask(failing, "terminal/spawn", string(full))
}

func (s *scene) tool(neg bool, args []string) {
	s.need(args, 1, "tool LINE -> …")
	line, patterns := cut(args)
	params, err := json.Marshal(map[string]string{"kind": "tool", "command": line})
	s.ts.Check(err)
	var session struct {
		SessionID string `json:"sessionId"`
	}
	s.ts.Check(json.Unmarshal([]byte(s.spawnRaw(false, string(params))), &session))
	end := s.exit(session.SessionID)
	text := s.output(session.SessionID)
	if good := end.ExitCode != nil && *end.ExitCode == 0; good == neg {
		s.ts.Fatalf("the tool ended with %s and printed %q", end, text)
	}
	s.match(text, patterns)
}

func (s *scene) id(name string) string {
	id := s.ts.Getenv(name)
	if id == "" {
		s.ts.Fatalf("no session %q", name)
	}
	return id
}

func (s *scene) typeBytes(args []string) {
	s.need(args, 2, "type NAME BYTES")
	data := base64.StdEncoding.EncodeToString([]byte(s.unescape(strings.Join(args[1:], " "))))
	s.ts.Check(s.w.notify("terminal/input", fmt.Sprintf(`{"sessionId":%q,"data":%q}`, s.id(args[0]), data)))
}

func (s *scene) output(id string) string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return strings.ReplaceAll(string(s.w.outputs[id]), "\r\n", "\n")
}

func (s *scene) expect(args []string) {
	s.need(args, 2, "expect NAME /PATTERN/")
	id := s.id(args[0])
	re, _ := s.pattern(args[1])
	met := s.w.until(func() bool {
		text := strings.ReplaceAll(string(s.w.outputs[id]), "\r\n", "\n")
		found := re.FindStringIndex(text[min(s.read[id], len(text)):])
		if found == nil {
			return false
		}
		s.read[id] += found[1]
		return true
	})
	if !met {
		s.ts.Fatalf("%s has not printed %s, but %q", args[0], args[1], s.output(id))
	}
}

func (s *scene) printed(args []string) {
	s.need(args, 2, "printed NAME …")
	s.match(s.output(s.id(args[0])), args[1:])
}

type ending struct {
	SessionID string  `json:"sessionId"`
	ExitCode  *int    `json:"exitCode"`
	Signal    *string `json:"signal"`
}

func (e ending) String() string {
	switch {
	case e.ExitCode != nil && e.Signal == nil:
		return strconv.Itoa(*e.ExitCode)
	case e.ExitCode == nil && e.Signal != nil:
		return *e.Signal
	}
	return "neither or both of exitCode and signal"
}

func (s *scene) exit(id string) (end ending) {
	_, ok := s.w.find(func(m message) bool {
		return m.Method == "terminal/exited" && json.Unmarshal(m.Params, &end) == nil && end.SessionID == id
	})
	if !ok {
		s.ts.Fatalf("session %s has not ended; it printed %q", id, s.output(id))
	}
	return end
}

func (s *scene) exited(args []string) {
	s.need(args, 2, "exited NAME CODE|SIGNAL")
	if end := s.exit(s.id(args[0])); end.String() != args[1] {
		s.ts.Fatalf("%s ended with %s", args[0], end)
	}
}

func (s *scene) close(args []string) {
	s.need(args, 1, "close NAME -> …")
	_, patterns := cut(args[1:])
	s.match(s.ask(false, "terminal/close", fmt.Sprintf(`{"sessionId":%q}`, s.id(args[0]))), patterns)
}

func (s *scene) equal(neg bool, args []string) {
	s.need(args, 2, "equal A B")
	if (args[0] == args[1]) == neg {
		s.ts.Fatalf("%q and %q", args[0], args[1])
	}
}

func (s *scene) status(args []string) {
	s.need(args, 2, "status CODE PROGRAM ARG…")
	err := s.ts.Exec(args[1], args[2:]...)
	var failed *exec.ExitError
	code := 0
	if errors.As(err, &failed) {
		code = failed.ExitCode()
	} else {
		s.ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		s.ts.Fatalf("exit status %d", code)
	}
}
