//go:build linux

package agents

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// fakeAgent tries what an agent does, and what it must not, and prints it.
const fakeAgent = `echo "args: $*"
echo "key: $ANTHROPIC_API_KEY, other: $OPENAI_API_KEY"
cat ~/.claude/.credentials.json
echo session >>~/.claude/history && echo "state: written"
for secret in ~/.ssh/id_x ~/.codex/auth.json ~/outside; do cat "$secret" 2>/dev/null && echo "read $secret"; done
echo made >made && echo "project: written"
[ -z "$DEPENDENCY" ] || cat "$DEPENDENCY"
`

// agentHome is a home with an agent's state, secrets, and the programs of a
// shape of installation. It returns the directory for PATH.
func agentHome(t *testing.T, w *harness.World, shape string) (bin string) {
	t.Helper()
	harness.Write(t, w.HomePath(".claude/.credentials.json"), "signed in\n")
	harness.Write(t, w.HomePath(".ssh/id_x"), "SECRET\n")
	harness.Write(t, w.HomePath(".codex/auth.json"), "SECRET\n")
	harness.Write(t, w.HomePath("outside"), "SECRET\n")
	program := func(path, text string) {
		harness.Write(t, w.HomePath(path), text)
		harness.Must(t, os.Chmod(w.HomePath(path), 0o755))
	}
	link := func(at, target string) {
		harness.Must(t, os.MkdirAll(filepath.Dir(w.HomePath(at)), 0o755))
		harness.Must(t, os.Symlink(target, w.HomePath(at)))
	}
	modules := func(root, interpreter string) {
		program(root+"/lib/node_modules/@a/claude/cli", interpreter+"\nDEPENDENCY="+
			w.HomePath(root+"/lib/node_modules/dep/file")+"\n"+fakeAgent)
		harness.Write(t, w.HomePath(root+"/lib/node_modules/dep/file"), "dependency\n")
		link(root+"/bin/claude", "../lib/node_modules/@a/claude/cli")
	}
	switch shape {
	case "native":
		program(".local/share/claude/versions/2", "#!/bin/sh\n"+fakeAgent)
		link(".local/bin/claude", "../share/claude/versions/2")
		return w.HomePath(".local/bin")
	case "npm":
		modules("npm", "#!/bin/sh")
		return w.HomePath("npm/bin")
	case "nvm":
		modules("nvm/v22", "#!/usr/bin/env node")
		program("nvm/v22/bin/node", "#!/bin/sh\nexec /bin/sh \"$@\"\n")
		return w.HomePath("nvm/v22/bin")
	case "asdf":
		modules("asdf/installs/nodejs/22", "#!/usr/bin/env node")
		program("asdf/installs/nodejs/22/bin/node", "#!/bin/sh\nexec /bin/sh \"$@\"\n")
		program("asdf/shims/claude", "#!/bin/sh\necho the shim itself runs\n")
		program("asdf/shims/node", "#!/bin/sh\necho the shim itself runs\n")
		return w.HomePath("asdf/shims")
	}
	t.Fatalf("no shape %s", shape)
	return ""
}

// runIn runs the sidecar in a world, with variables beside the usual.
func runIn(t *testing.T, w *harness.World, path string, env []string, args ...string) (
	stdout, stderr string, status int,
) {
	t.Helper()
	command := exec.Command(harness.Binary(t), args...)
	command.Dir = w.Project
	command.Env = append(append(harness.Environ(w), "PATH="+path+":/usr/bin:/bin", "ANTHROPIC_API_KEY=sk-own",
		"OPENAI_API_KEY=sk-other"), env...)
	var out, said strings.Builder
	command.Stdout, command.Stderr = &out, &said
	_ = command.Run() // the status says it
	return out.String(), said.String(), command.ProcessState.ExitCode()
}

// TestAgent_RunsWithoutSettings starts an agent of each shape of installation. It
// gets its key, its sign-in and its state, and nothing of other programs.
func TestAgent_RunsWithoutSettings(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for _, shape := range []string{"native", "npm", "nvm", "asdf"} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			bin := agentHome(t, w, shape)
			out, said, status := runIn(t, w, bin, nil, "agent", "claude", "-p", "do it")
			for _, line := range []string{
				"args: -p do it", "key: sk-own, other: \n", "signed in", "state: written", "project: written",
			} {
				if !strings.Contains(out, line) {
					t.Errorf("status %d: no %q in:\n%s\n%s", status, line, out, said)
				}
			}
			if strings.Contains(out, "SECRET") || strings.Contains(out, "shim itself") ||
				shape != "native" && !strings.Contains(out, "dependency") {
				t.Errorf("it reads:\n%s\n%s", out, said)
			}
			if _, err := os.Stat(w.HomePath(".claude/history")); err == nil {
				t.Error("the agent outside finds what the session has written")
			}
			// The control is the same program outside.
			command := exec.Command("sh", "-c", fakeAgent)
			command.Dir, command.Env = w.Project, harness.Environ(w)
			if text, err := command.CombinedOutput(); err != nil || strings.Count(string(text), "SECRET") != 3 {
				t.Errorf("control: %v: %s", err, text)
			}
		})
	}
}

// TestAgent_InsideASession runs the agent in the session that it is in, and says
// so.
func TestAgent_InsideASession(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	copied := filepath.Join(w.Project, "sidecar")
	if out, err := exec.Command("cp", harness.Binary(t), copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	harness.Write(t, filepath.Join(w.Project, "codex"), "#!/bin/sh\necho \"args: $*\"\n")
	harness.Must(t, os.Chmod(filepath.Join(w.Project, "codex"), 0o755))
	out, said, status := runIn(t, w, w.Project, nil, "exec", "--", copied, "agent", "codex", "exec", "hello")
	if status != 0 || out != "args: --sandbox danger-full-access exec hello\n" ||
		!strings.Contains(said, "inside a session already") {
		t.Errorf("status %d, %q\n%s", status, out, said)
	}
}

// TestAgent_SaysWhatItAdds names the flag that turns the inner sandbox off, and
// adds none to the user's own.
func TestAgent_SaysWhatItAdds(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.HomePath("bin/codex"), "#!/bin/sh\necho \"args: $*\"\n")
	harness.Must(t, os.Chmod(w.HomePath("bin/codex"), 0o755))
	for _, test := range []struct {
		args, want string
		said       bool
	}{
		{"exec hello", "args: --sandbox danger-full-access exec hello\n", true},
		{"-s read-only", "args: -s read-only\n", false},
	} {
		out, said, status := runIn(t, w, w.HomePath("bin"), nil,
			append([]string{"agent", "codex"}, strings.Fields(test.args)...)...)
		if out != test.want || status != 0 || strings.Contains(said, "danger-full-access") != test.said {
			t.Errorf("%s: status %d, %q\n%s", test.args, status, out, said)
		}
	}
}

// TestAgent_RefusesWhatItDoesNotKnow says what is wrong, and starts nothing.
func TestAgent_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	bin := agentHome(t, w, "npm")
	for _, test := range []struct {
		args, said string
		status     int
	}{
		{"agent", "name an agent: aider, claude, codex", 2},
		{"agent cursor", "known are aider, claude, codex", 2},
		{"agent --mode off claude", "contradict each other", 2},
		{"agent gemini", "install it, or name its program with --program", 127},
		{"agent --program /no/such/file claude", `"/no/such/file": no such file`, 127},
		{"agent --program /etc/passwd claude", `"/etc/passwd": permission denied`, 126},
		{"agent --program /etc/passwd claude", "hint: name its program with --program", 126},
		{"policy --network", "name one with --agent", 2},
	} {
		out, said, status := runIn(t, w, bin, nil, strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(strings.Join(strings.Fields(said), " "), test.said) || out != "" {
			t.Errorf("%s: status %d, %q\n%s", test.args, status, out, said)
		}
	}
	harness.Write(t, filepath.Join(w.Project, ".zed/settings.json"),
		harness.Defaults(harness.Sandbox{"toolchains": []string{}}))
	if out, said, status := runIn(t, w, bin, nil, "agent", "claude"); status != 1 || out != "" ||
		!strings.Contains(said, "not started: the project's file") {
		t.Errorf("a project that leaves it out: status %d, %q\n%s", status, out, said)
	}
	// What the agent may do is shown by the same road.
	harness.Must(t, os.RemoveAll(filepath.Join(w.Project, ".zed")))
	token := w.HomePath(".claude/.credentials.json")
	for args, want := range map[string]string{
		"explain --agent claude read " + token:                 "allowed",
		"explain --kind tool --sandbox read " + token:          "refused",
		"explain --agent codex read " + token:                  "refused",
		"explain --agent claude connect api.anthropic.com:443": "allowed",
		"explain --agent claude connect example.org:443":       "refused",
	} {
		if out, said, _ := runIn(t, w, bin, nil, strings.Fields(args)...); !strings.HasPrefix(out, want) {
			t.Errorf("%s: %q\n%s", args, out, said)
		}
	}
}

// TestAgent_IsATool has a setting for tools count alike for the agent, a command
// beside it, and what explains them.
func TestAgent_IsATool(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	bin := agentHome(t, w, "native")
	opened := filepath.Join(w.Outside, "opened")
	harness.Write(t, opened, "OPENED\n")
	harness.Write(t, w.HomePath(".local/share/claude/versions/2"), "#!/bin/sh\ncat "+opened+"\n")
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
		"tool": harness.Sandbox{"additional_read_only_paths": []string{opened}},
	}))
	for _, test := range []struct {
		args  string
		tool  bool
		shows string
	}{
		{"agent claude", true, "OPENED"},
		{"exec --agent claude -- cat " + opened, true, "OPENED"},
		{"explain --agent claude read " + opened, true, "allowed"},
		{"policy --json --agent claude", true, opened},
		{"exec --agent claude --kind terminal -- cat " + opened, false, "OPENED"},
		{"explain --agent claude --kind terminal read " + opened, false, "allowed"},
		{"policy --json --agent claude --kind terminal", false, opened},
		{"explain --sandbox read " + opened, false, "allowed"},
	} {
		out, said, _ := runIn(t, w, bin, nil, strings.Fields(test.args)...)
		if strings.Contains(out, test.shows) != test.tool {
			t.Errorf("%s: %q\n%s", test.args, out, said)
		}
	}
}

// TestAgent_ReachesALocalModel gives the agent the address under which a service
// of this machine is reached, and opens no other.
func TestAgent_ReachesALocalModel(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network_hosts")
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.HomePath("bin/claude"), "#!/bin/sh\ncurl -sS \"$ANTHROPIC_BASE_URL/x\"\n"+
		"for host in host.sandbox.internal 127.0.0.1; do curl -sS \"http://$host:$OTHER_PORT/\" 2>/dev/null; done\ntrue\n")
	harness.Must(t, os.Chmod(w.HomePath("bin/claude"), 0o755))
	serve := func(text string) string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		harness.Must(t, err)
		server := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(out, text, r.URL.Path)
		})}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { server.Close() })
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		return port
	}
	model, other := serve("model"), serve("another service")
	settings := harness.Defaults(harness.Sandbox{"allowed_env_vars": []string{"+OTHER_PORT"}})
	harness.Write(t, w.UserSettings(), settings)
	env := []string{"ANTHROPIC_BASE_URL=http://localhost:" + model, "OTHER_PORT=" + other}
	out, said, status := runIn(t, w, w.HomePath("bin"), env, "agent", "claude")
	if status != 0 || out != "model /x\n" || !strings.Contains(said, "host.sandbox.internal") {
		t.Errorf("status %d, %q\n%s", status, out, said)
	}
	// With the network it is reached by its own address, and still alone.
	out, said, status = runIn(t, w, w.HomePath("bin"), env, "agent", "--network", "claude")
	if status != 0 || out != "model /x\n" || strings.Contains(said, "host.sandbox.internal") {
		t.Errorf("with the network: status %d, %q\n%s", status, out, said)
	}
	env[0] = "ANTHROPIC_BASE_URL=http://localhost:2375"
	_, said, _ = runIn(t, w, w.HomePath("bin"), env, "agent", "--network", "claude")
	if !strings.Contains(strings.Join(strings.Fields(said), " "), "localhost:2375, which is not opened: Docker") {
		t.Errorf("a service that obeys whoever connects: %s", said)
	}
}

// TestAgent_OfTheUsersOwn reads a set from the directory of the settings. What is
// wrong in it, or could be a session's, starts nothing.
func TestAgent_OfTheUsersOwn(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	agentHome(t, w, "native")
	harness.Write(t, w.HomePath("bin/mine"), "#!/bin/sh\necho \"args: $* key: $MINE_KEY, other: $OPENAI_API_KEY\"\n"+
		"cat ~/.mine.toml; echo x >~/.mine/state && cat ~/.mine/state\ncat ~/.ssh/id_x 2>/dev/null\ntrue\n")
	harness.Must(t, os.Chmod(w.HomePath("bin/mine"), 0o755))
	harness.Write(t, w.HomePath(".mine.toml"), "configured\n")
	file := filepath.Join(filepath.Dir(w.UserSettings()), "agents/mine.json")
	run := func(text string) (string, string, int) {
		harness.Write(t, file, text)
		return runIn(t, w, w.HomePath("bin"), []string{"MINE_KEY=sk-mine"}, "agent", "mine", "go")
	}
	const good = `{"program": "mine", "args": ["-x"], "state": ["~/.mine"], "read": ["~/.mine.toml"], // mine
	"variables": ["MINE_KEY"]}`
	want := "args: -x go key: sk-mine, other: \nconfigured\nx\n"
	if out, said, status := run(good); status != 0 || out != want {
		t.Errorf("status %d, %q\n%s", status, out, said)
	}
	if _, err := os.Stat(w.HomePath(".mine/state")); err == nil {
		t.Error("the agent outside finds what the session has written")
	}
	for text, why := range map[string]string{
		"{\n\"program\": \"mine\",\n\"stat\": []}":                                 `mine.json:3": unknown key "stat"`,
		`{"program": "mine", "state": ["~/.ssh"]}`:                                 "is not granted: that is SSH keys",
		`{"program": "mine", "read": ["~"]}`:                                       "begins with",
		`{"program": "mine", "state": ["~/"]}`:                                     "your home directory",
		`{"program": "mine", "read": ["` + w.Home + `/.codex/auth.json"]}`:         "is not granted: that is",
		`{"program": "mine", "state": ["~/.profile"]}`:                             "made as a directory, and programs",
		`{"program": "mine", "state": ["~/.config/sandbox-sidecar"]}`:              "is not granted: a session that writes there",
		`{"program": "mine", "state": ["~/.local/state/sandbox-sidecar/history"]}`: "is not granted",
	} {
		out, said, status := run(text)
		if status == 0 || out != "" || !strings.Contains(strings.Join(strings.Fields(said), " "), why) {
			t.Errorf("%s: status %d, %q\n%s", text, status, out, said)
		}
	}
	// A link, whose target a session may write.
	harness.Write(t, filepath.Join(w.Project, "mine.json"), good)
	harness.Must(t, os.Remove(file))
	harness.Must(t, os.Symlink(filepath.Join(w.Project, "mine.json"), file))
	if out, said, status := runIn(t, w, w.HomePath("bin"), nil, "agent", "mine"); status == 0 || out != "" ||
		!strings.Contains(said, "symlink") {
		t.Errorf("a link: status %d, %q\n%s", status, out, said)
	}
	// A variable that leads into the project.
	harness.Write(t, filepath.Join(w.Project, "c/sandbox-sidecar/agents/mine.json"), good)
	env := []string{"XDG_CONFIG_HOME=" + filepath.Join(w.Project, "c")}
	harness.Must(t, os.Remove(file))
	if out, said, status := runIn(t, w, w.HomePath("bin"), env, "agent", "mine"); status == 0 || out != "" {
		t.Errorf("the project's own: status %d, %q\n%s", status, out, said)
	}
	// A built-in name would be ignored, or open more by another.
	for _, name := range []string{"claude", "node"} {
		taken := filepath.Join(filepath.Dir(file), name+".json")
		harness.Write(t, taken, good)
		out, said, status := runIn(t, w, w.HomePath("bin"), nil, "agent", name)
		if said = strings.Join(strings.Fields(said), " "); status == 0 || out != "" ||
			!strings.Contains(said, name+`.json": "`+name+`" is a built-in name`) {
			t.Errorf("%s: status %d, %q\n%s", name, status, out, said)
		}
		harness.Must(t, os.Remove(taken))
	}
	harness.Write(t, file, good)
	for _, args := range [][]string{{"agent"}, {"agent", "other"}} {
		_, said, status := runIn(t, w, w.HomePath("bin"), nil, args...)
		said = strings.Join(strings.Fields(said), " ")
		if status != 2 || !strings.Contains(said, "gemini, mine, opencode") {
			t.Errorf("%q: status %d\n%s", args, status, said)
		}
	}
	_, said, status := runIn(t, w, w.HomePath("bin"), nil, "agent", "../mine")
	if status != 2 || !strings.Contains(said, "no such agent") {
		t.Errorf("a path: status %d\n%s", status, said)
	}
}

// TestAgent_TakesNoProgramOfASession has PATH lead to what a session could have
// written: neither does the agent's key reach that, nor does its first line open
// anything.
func TestAgent_TakesNoProgramOfASession(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	const planted = "echo \"planted: $ANTHROPIC_API_KEY\"\ncat ~/outside ~/.codex/auth.json\n"
	for name, test := range map[string]struct {
		plant   func(w *harness.World, write func(path, text string)) (path string)
		args    []string
		runs    bool // with the key
		granted bool // in a directory that settings grant
	}{
		"in the project": {plant: func(w *harness.World, write func(path, text string)) string {
			write(w.ProjectPath(".venv/bin/claude"), "#!/bin/sh\n"+planted)
			return w.ProjectPath(".venv/bin")
		}},
		"by a link": {plant: func(w *harness.World, write func(path, text string)) string {
			write(w.ProjectPath("tool"), "#!/bin/sh\n"+planted)
			harness.MakeDir(t, w.HomePath("bin"))
			harness.Must(t, os.Symlink(w.ProjectPath("tool"), w.HomePath("bin/claude")))
			return w.HomePath("bin")
		}},
		"its interpreter in the project": {plant: func(w *harness.World, write func(path, text string)) string {
			write(w.HomePath("tools/claude"), "#!/usr/bin/env node\n")
			write(w.ProjectPath("node_modules/.bin/node"), "#!/bin/sh\n"+planted)
			return w.ProjectPath("node_modules/.bin") + ":" + w.HomePath("tools")
		}},
		"a shim in the project": {plant: func(w *harness.World, write func(path, text string)) string {
			write(w.ProjectPath("shims/claude"), "#!/bin/sh\n"+planted)
			harness.MakeDir(t, w.ProjectPath("versions/1"))
			write(w.HomePath("private/claude"), "#!/bin/sh\n"+planted)
			harness.Must(t, os.Symlink(w.HomePath("private"), w.ProjectPath("versions/1/bin")))
			return w.ProjectPath("shims")
		}},
		"in a grant": {granted: true, plant: func(w *harness.World, write func(path, text string)) string {
			write(w.HomePath("work/claude"), "#!/bin/sh\n"+planted)
			return w.HomePath("work")
		}},
		"named": {
			args: []string{"--program", "./tool"}, runs: true,
			plant: func(w *harness.World, write func(path, text string)) string {
				write(w.ProjectPath("tool"), "#!/bin/sh\n"+planted)
				return w.HomePath("none")
			},
		},
		"named, with a file of the user's as the interpreter": {
			args: []string{"--program", "./tool"},
			plant: func(w *harness.World, write func(path, text string)) string {
				write(w.HomePath("outside"), "SECRET\n") // executable now
				write(w.ProjectPath("tool"), "#!"+w.HomePath("outside")+"\n"+planted)
				return w.HomePath("none")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			agentHome(t, w, "native")
			path := test.plant(w, func(path, text string) {
				harness.Write(t, path, text)
				harness.Must(t, os.Chmod(path, 0o755))
			})
			if test.granted {
				harness.Write(t, w.UserSettings(),
					harness.Defaults(harness.Sandbox{"additional_read_write_paths": []string{path}}))
			}
			args := append(append([]string{"agent"}, test.args...), "claude")
			out, said, status := runIn(t, w, path, nil, args...)
			if strings.Contains(out, "SECRET") || strings.Contains(said, "SECRET") {
				harness.Breach(t, "a program of a session's opens a file:\n%s\n%s", out, said)
			}
			ran := strings.Contains(out, "planted: sk-own")
			if ran && !test.runs {
				harness.Breach(t, "a program of a session's gets the key:\n%s\n%s", out, said)
			}
			why := strings.Contains(strings.Join(strings.Fields(said), " "), "which sessions can write: name")
			if test.runs != ran || !test.runs && test.args == nil && (status != 1 || !why) {
				t.Errorf("status %d, ran: %v\n%s\n%s", status, ran, out, said)
			}
		})
	}
}
