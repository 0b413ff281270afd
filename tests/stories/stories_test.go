//go:build linux

package stories

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// The files of the directory "stories". Their keys:
//
//	programs: programs that must be installed, or the story is skipped
//	settings: keys of terminal.sandbox, as JSON; "none" means no settings file
//	status: the exit status of "run"; 0 if it is not there
//
// "prepare" runs first, without the sidecar. "run" is what the user types, and
// "sees" what is on the screen then: patterns, one a line, in this order. A
// blank matches any white space, because messages are folded. "!" before a
// pattern means that it is nowhere.
//
// The way on is either "then", which the user types next, or "pasted": the user
// copies every suggested setting from the screen and types that. Both must
// succeed. All of them are run by bash -e in the project.
var (
	keys     = []string{"programs", "settings", "status"}
	sections = []string{"prepare", "run", "sees", "then", "pasted"}
)

func TestStories(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, story := range harness.CaseFiles(t, "stories", keys, sections) {
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			harness.RequirePrograms(t, strings.Fields(story.Key("programs"))...)
			newUser(t, story.Key("settings")).live(t, story)
		})
	}
}

// user is somebody at a terminal, in a project.
type user struct {
	*harness.World
	keys harness.Sandbox
	env  []string
	wrap func(*exec.Cmd) // changes what types starts; nil: nothing
}

// newUser makes one whose home no default opens.
func newUser(t *testing.T, settings string) *user {
	t.Helper()
	u := &user{World: harness.NewWorldOutsideDefaults(t), keys: harness.Sandbox{}}
	bin := filepath.Join(filepath.Dir(u.Home), "bin")
	harness.Must(t, os.Mkdir(bin, 0o755))
	harness.Must(t, os.Symlink(harness.Binary(t), filepath.Join(bin, "sandbox-sidecar")))
	u.env = append(harness.Environ(u.World), "TERM=xterm", "PATH="+bin+":"+harness.SearchPath, "OUTSIDE="+u.Outside)
	switch settings {
	case "none":
		return u
	case "":
	default:
		harness.Must(t, json.Unmarshal([]byte(settings), &u.keys))
	}
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
	return u
}

func (u *user) live(t *testing.T, story harness.CaseFile) {
	t.Helper()
	if output, status := u.types(t, story.Section("prepare")); status != "0" {
		t.Fatalf("prepare: exit status %s:\n%s", status, output)
	}
	want := story.Key("status")
	if want == "" {
		want = "0"
	}
	screen, status := u.types(t, story.Section("run"))
	if status != want {
		t.Errorf("exit status %s, want %s:\n%s", status, want, screen)
	}
	sees(t, screen, story.Section("sees"))
	if story.Section("pasted") != "" {
		u.paste(t, screen)
	}
	for _, next := range []string{story.Section("then"), story.Section("pasted")} {
		if output, status := u.types(t, next); status != "0" {
			t.Errorf("the way on leads nowhere: exit status %s:\n%s\nfirst there was:\n%s", status, output, screen)
		}
	}
}

// types runs what the user types, and returns what is on the screen then.
func (u *user) types(t *testing.T, script string) (screen, status string) {
	t.Helper()
	command := exec.Command("/bin/bash", "-e", "-c", script)
	command.Dir, command.Env = u.Project, u.env
	if u.wrap != nil {
		u.wrap(command)
	}
	output, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return string(output), strings.TrimPrefix(command.ProcessState.String(), "exit status ")
}

// folded is where a message was broken into lines, each with the program's name.
var folded = regexp.MustCompile(`\s*\n(sandbox-sidecar:)?\s*`)

// unfold makes one line of all.
func unfold(screen string) string { return folded.ReplaceAllString(screen, " ") }

func sees(t *testing.T, screen, patterns string) {
	t.Helper()
	rest := unfold(screen)
	for line := range strings.Lines(patterns) {
		line, never := strings.CutPrefix(strings.TrimSpace(line), "!")
		pattern := regexp.MustCompile(strings.ReplaceAll(line, " ", `\s+`))
		if never {
			if pattern.MatchString(unfold(screen)) {
				t.Errorf("on the screen is %q:\n%s", line, screen)
			}
			continue
		}
		at := pattern.FindStringIndex(rest)
		if at == nil {
			t.Errorf("not on the screen, or not there: %q:\n%s", line, screen)
			return
		}
		rest = rest[at[1]:]
	}
}

// suggested are the settings that messages name.
var suggested = regexp.MustCompile(`add\s+("(?:[^"\\]|\\.)*")\s+to\s+"(\w+)"|set\s+"(\w+)"\s+to\s+(true|\[.*?\])`)

// paste writes every setting that the screen names into the user's file.
func (u *user) paste(t *testing.T, screen string) {
	t.Helper()
	found := suggested.FindAllStringSubmatch(unfold(screen), -1)
	if len(found) == 0 {
		t.Fatalf("no setting is suggested:\n%s", screen)
	}
	for _, match := range found {
		key, text := match[3], match[4]
		if match[1] != "" {
			key, text = match[2], match[1]
		}
		var value any
		harness.Must(t, json.Unmarshal([]byte(text), &value))
		if match[1] != "" {
			list, _ := u.keys[key].([]any)
			value = append(list, value)
		}
		u.keys[key] = value
	}
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
}
