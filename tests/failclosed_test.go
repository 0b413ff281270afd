package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Wrong, missing or empty settings: no command runs under them, and the error
// names the reason. The control of each file is the same without a mistake: the
// command runs, confined.

// mistake is one row.
type mistake struct {
	// file is the one with the mistake.
	file, name string
	// args are the flags of a command.
	args func(w *harness.World) []string
	// spoil writes the settings with the mistake, right without it; block is
	// the content of "terminal.sandbox".
	spoil, right func(t *testing.T, w *harness.World, block string)
	// says is part of the first line of stderr.
	says string
	// named is true for a file named on the command line. If it is missing, no
	// question about settings is answered either.
	named bool
}

func named(w *harness.World) string { return filepath.Join(w.Home, "named.json") }

func projectSettings(w *harness.World) string {
	return filepath.Join(w.Project, ".zed", "settings.json")
}

func zedSettings(w *harness.World) string {
	return filepath.Join(w.Home, ".config", "zed", "settings.json")
}

// text writes a file from a form in which %s is the block.
func text(path func(*harness.World) string, form string) func(*testing.T, *harness.World, string) {
	return func(t *testing.T, w *harness.World, block string) {
		t.Helper()
		harness.Write(t, path(w), strings.ReplaceAll(form, "%s", block))
	}
}

const wellWritten = `{"terminal": {"sandbox": %s}}`

// mistakes are the rows.
func mistakes() []mistake {
	own := (*harness.World).UserSettings
	none := func(*harness.World) []string { return nil }
	var rows []mistake

	// A file that is named and cannot be read.
	flag := func(w *harness.World) []string { return []string{"--settings", named(w)} }
	for name, row := range map[string]struct {
		says string
		make func(path string) error
	}{
		"missing": {"cannot read: there is no such file", func(string) error { return nil }},
		"a dangling symlink": {"a symlink to a file that does not exist", func(path string) error {
			return os.Symlink("nowhere", path)
		}},
		"a directory": {"not a regular file", func(path string) error { return os.Mkdir(path, 0o700) }},
		"a FIFO":      {"not a regular file", func(path string) error { return unix.Mkfifo(path, 0o600) }},
		"too large": {"larger than 4 MiB", func(path string) error {
			return errors.Join(os.WriteFile(path, nil,
				0o600), os.Truncate(path, 5<<20))
		}},
		"empty": {"empty; write {}", func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		"cut off": {"not valid JSON", func(path string) error {
			return os.WriteFile(path, []byte(`{"terminal":`),
				0o600)
		}},
		"without permission": {"permission denied", func(path string) error {
			return os.WriteFile(path, []byte("{}"), 0)
		}},
	} {
		if name == "without permission" && os.Geteuid() == 0 {
			continue // root reads everything; an ordinary user runs this row
		}
		rows = append(rows, mistake{
			file: "--settings", name: "--settings, " + name, args: flag, says: row.says, named: true,
			right: text(named, wellWritten),
			spoil: func(t *testing.T, w *harness.World, _ string) {
				t.Helper()
				if err := row.make(named(w)); err != nil {
					t.Fatal(err)
				}
			},
		})
	}

	// Values of a wrong type, in each file and in a platform's block.
	for name, path := range map[string]func(*harness.World) string{
		"own": own, "Zed's": zedSettings,
		"the project's": projectSettings,
	} {
		for value, says := range map[string]string{
			`{"enabled": "yes"}`: "enabled: expected true or false, found a string",
			`{"enabled": true, "apply_to": ["both"]}`: `apply_to: expected one of "terminal", "tool", "both", ` +
				`"neither", found an array`,
			`{"enabled": true, "allow_network": "no"}`:   "allow_network: expected true or false",
			`{"enabled": true, "protected_paths": true}`: "protected_paths: expected an array of strings",
			`{"enable": true}`:                           `enable: unknown setting, did you mean "enabled"?`,
		} {
			rows = append(rows, mistake{
				file: name, name: name + " " + value, args: none, says: says,
				spoil: text(path, `{"terminal": {"sandbox": `+value+`}}`), right: text(path, wellWritten),
			})
		}
		rows = append(rows,
			mistake{
				file: name, name: name + ", broken", args: none, says: "not valid JSON",
				spoil: text(path, `{"terminal": {"sandbox": %s}`), right: text(path, wellWritten),
			},
			mistake{
				file: name, name: name + ", dotted", args: none, says: "is one name with dots",
				spoil: text(path, `{"terminal.sandbox": %s}`), right: text(path, wellWritten),
			},
			mistake{
				file: name, name: name + ", at the top", args: none, says: "is in the wrong place",
				spoil: text(path, `{"sandbox": %s}`), right: text(path, wellWritten),
			},
			mistake{
				file: name, name: name + ", misspelt", args: none, says: `did you mean "sandbox"?`,
				spoil: text(path, `{"terminal": {"sandbx": %s}}`), right: text(path, wellWritten),
			},
		)
	}

	// Mistakes that only count in the sidecar's own file.
	for form, says := range map[string]string{
		`{"enabled": true}`:                                  `"enabled" is in the wrong place`,
		`{"terminal": {"enabled": true}}`:                    `"terminal.enabled" is in the wrong place`,
		`{"terminl": {"sandbox": %s}}`:                       `did you mean "terminal"?`,
		`{"linux": {"sandbox": %s}, "macos": {"enabled":1}}`: `"linux.sandbox" is in the wrong place`,
		`{"terminal": {"sandbox": %s}, "terminal": {}}`:      "terminal is written twice",
		"":            "empty; write {}",
		" \r\n":       "empty; write {}",
		"// my block": "empty; write {}",
	} {
		rows = append(rows, mistake{
			file: "own", name: "own " + fmt.Sprintf("%q", form), args: none, says: says, spoil: text(own, form),
			right: text(own, wellWritten),
		})
	}

	rows = append(rows, mistake{
		file: "own", name: "the settings directory is a dangling symlink", args: none,
		says: "a symlink that leads nowhere", right: text(own, wellWritten),
		spoil: func(t *testing.T, w *harness.World, _ string) {
			t.Helper()
			if err := errors.Join(os.Mkdir(filepath.Join(w.Home, ".config"), 0o700), os.Symlink("../unmounted",
				filepath.Dir(w.UserSettings()))); err != nil {
				t.Fatal(err)
			}
		},
	})
	slices.SortFunc(rows, func(a, b mistake) int { return strings.Compare(a.name, b.name) })
	return rows
}

func TestFailsClosed(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	controls := map[string]bool{}
	for i, row := range mistakes() {
		if !controls[row.file] {
			controls[row.file] = true
			t.Run("control, "+row.file, func(t *testing.T) {
				t.Parallel()
				w := harness.NewWorld(t)
				row.right(t, w, block(t))
				ran := row.run(t, w, "exec", append([]string{"--"}, attempt(t, w)...)...)
				ran.expect(t, 1, "ran\n", "", "ermission denied")
			})
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t)
			row.spoil(t, w, block(t))
			command := attempt(t, w)
			for j, kind := range []string{"terminal", "tool"} {
				for k, name := range []string{"exec", "learn"} {
					if !harness.Turn(t, i+j+k, 2) {
						continue
					}
					ran := row.run(t, w, name, append([]string{"--kind", kind, "--"}, command...)...)
					ran.expect(t, 1, "", row.says, "nothing starts until it is fixed")
				}
			}
			policy := row.run(t, w, "policy", "--kind", "tool")
			explain := row.run(t, w, "explain", "--kind", "tool", "read", filepath.Join(w.Outside, "secret"))
			if row.named {
				policy.expect(t, 1, "", row.says, "nothing starts until it is fixed")
				explain.expect(t, 1, "", row.says, "nothing starts until it is fixed")
			} else {
				policy.expect(t, 0, "tools will not start until it is fixed: ", row.says, "")
				explain.expect(t, 0, "refused: a tool does not start: ", row.says, "")
			}
		})
	}
}

// block is a "terminal.sandbox" that sandboxes everything.
func block(t *testing.T) string {
	t.Helper()
	var file struct {
		Terminal struct {
			Sandbox json.RawMessage `json:"sandbox"`
		} `json:"terminal"`
	}
	if err := json.Unmarshal([]byte(harness.Settings(nil)), &file); err != nil {
		t.Fatal(err)
	}
	return string(file.Terminal.Sandbox)
}

// attempt is a command that prints a line and fails with status 1 if it is
// confined.
func attempt(t *testing.T, w *harness.World) []string {
	t.Helper()
	secret := filepath.Join(w.Outside, "secret")
	harness.Write(t, secret, "outside secret\n")
	return []string{"sh", "-c", `echo ran; cat "$1" || exit 1`, "sh", secret}
}

// ran is the result of a command.
type ran struct {
	line           string
	status         int
	stdout, stderr string
}

func (m mistake) run(t *testing.T, w *harness.World, name string, args ...string) ran {
	t.Helper()
	var out, errs strings.Builder
	command := exec.Command(harness.Binary(t), append(append([]string{name}, m.args(w)...), args...)...)
	command.Dir, command.Env, command.Stdout, command.Stderr = w.Project, harness.Environ(w), &out, &errs
	var failed *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return ran{
		strings.Join(command.Args[1:], " "), command.ProcessState.ExitCode(),
		harness.Unfold(out.String()), harness.Unfold(errs.String()),
	}
}

// expect compares. stdout begins with out, and is empty if out is. The first
// line of stderr holds first, and some line holds says.
func (r ran) expect(t *testing.T, status int, out, first, says string) {
	t.Helper()
	line, _, _ := strings.Cut(r.stderr, "\n")
	if r.status != status || !strings.HasPrefix(r.stdout, out) || out == "" && r.stdout != "" ||
		strings.Contains(r.stdout, "outside secret\n") ||
		!strings.Contains(line, first) || !strings.Contains(r.stderr, says) || strings.Count(r.stderr, first) != 1 &&
		first != "" {
		t.Errorf("%s\nstatus %d, want %d\nstdout %q, want %q\nstderr %q, want first %q, once, and %q", r.line, r.status,
			status, r.stdout, out, r.stderr, first, says)
	}
}

// The user's file is spoiled while a sidecar runs.
func TestFailsClosed_WhileItRuns(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for name, contents := range map[string][]string{
		"emptied":                   {""},
		"emptied, then broken":      {"", `{"terminal": {"sandbox": {"enabled": fal`},
		"white space, then emptied": {"\n\n", ""},
		"comments":                  {"// later"},
		"a wrong type":              {`{"terminal": {"sandbox": {"enabled": "no"}}}`},
		"a wrong type, then broken": {`{"terminal": {"sandbox": {"enabled": "no"}}}`, "{"},
		"misspelt":                  {`{"terminal": {"sandbx": {"enabled": true}}}`},
		"at the top":                {`{"enabled": true}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorld(t)
			command := attempt(t, w)
			e := harness.Start(t, w, harness.Options{})
			for _, content := range contents {
				harness.Write(t, w.UserSettings(), content)
			}
			result, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
				Cwd: w.Project, Kind: protocol.Tool,
				Command: command[0], Args: command[1:],
			})
			var refused *client.Error
			switch {
			case errors.As(err, &refused) && refused.Code == protocol.CodeSettingsInvalid:
			case err != nil || !result.Sandbox.Applied || len(result.Sandbox.Warnings) == 0:
				t.Errorf("a tool runs unconfined or without a word: %v, %+v", err, result.Sandbox)
			}
			if terminal := e.Spawn(protocol.SpawnParams{Command: "true"}); !terminal.Sandbox.Applied ||
				len(terminal.Sandbox.Warnings) == 0 {
				t.Errorf("a terminal runs unconfined or without a word: %+v", terminal.Sandbox)
			}
			// The control: {} asks for nothing.
			harness.Write(t, w.UserSettings(), "{}")
			free := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: command[0], Args: command[1:]})
			if status := free.Exit().ExitCode; free.Sandbox.Applied || status == nil || *status != 0 {
				t.Errorf("control: applied %t, %v", free.Sandbox.Applied, status)
			}
		})
	}
}

// An editor names a file that does not exist.
func TestFailsClosed_UserSettingsPath(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Initialize: func(p *protocol.InitializeParams) {
		p.InitializationOptions = &protocol.InitializationOptions{UserSettingsPath: named(w)}
	}})
	for _, kind := range []protocol.Kind{protocol.Terminal, protocol.Tool} {
		_, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{Cwd: w.Project, Kind: kind, Command: "true"})
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != protocol.CodeSettingsInvalid ||
			!strings.Contains(refused.Message,
				named(w)) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	harness.Write(t, named(w), harness.Settings(nil))
	if s := e.Spawn(protocol.SpawnParams{Command: "true"}); !s.Sandbox.Applied {
		t.Errorf("control: the file that has appeared does not count: %+v", s.Sandbox)
	}
	if err := os.Remove(named(w)); err != nil {
		t.Fatal(err)
	}
	if s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true"}); !s.Sandbox.Applied ||
		len(s.Sandbox.Warnings) == 0 {
		t.Errorf("the file that has gone does not count any more: %+v", s.Sandbox)
	}
}
