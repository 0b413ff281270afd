//go:build linux

package ordinary

import (
	"encoding/json"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// tools are the files of the directory of that name: programs that developers
// run every day. Their keys:
//
//	programs: programs that must be installed, or the tool is skipped
//	suggested: the setting that the tool needs, as "KEY VALUE". Without it the
//	  script must fail, and exactly this must be suggested. The test pastes it.
//	note: what else a user should know
//
// The sections are those of rows.
func tools(t testing.TB) []harness.CaseFile {
	t.Helper()
	return harness.CaseFiles(t, "tools", []string{"programs", "suggested", "note"}, []string{"prepare", "script"})
}

func TestToolsWork(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, tool := range tools(t) {
		t.Run(tool.Name, func(t *testing.T) {
			t.Parallel()
			for _, program := range strings.Fields(tool.Key("programs")) {
				needProgram(t, program)
			}
			first := try(t, tool, harness.Defaults(nil))
			suggested := tool.Key("suggested")
			if suggested == "" {
				if first.failure != "" {
					t.Errorf("with default settings: %s", first)
				}
				return
			}
			if first.failure == "" || !slices.Equal(first.suggested, []string{suggested}) {
				t.Errorf("with default settings: want a failure that suggests only %q: %s", suggested, first)
			}
			if tried := try(t, tool, harness.Defaults(first.settings)); tried.failure != "" {
				t.Errorf("with the suggested setting: %s", tried)
			}
		})
	}
}

// attempt is how a script ended.
type attempt struct {
	failure, output string
	// suggested are the settings that would help, as people read them, and
	// settings those that a user would have after pasting them.
	suggested []string
	settings  harness.Sandbox
}

func (a attempt) String() string {
	return fmt.Sprintf("%s, suggested: %q, output:\n%s", a.failure, a.suggested, a.output)
}

// try runs a tool's script in a world of its own.
func try(t *testing.T, tool harness.CaseFile, settings string) attempt {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	prepare(t, w, tool, w.Outside)
	e := harness.Start(t, w, harness.Options{Settings: settings, Env: []string{"PATH=" + searchPath}})
	denials := harness.RecordDenials(e)
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "/bin/bash", Args: []string{"-e", "script"}})
	tried := attempt{settings: harness.Sandbox{}}
	if exit := session.Exit(); exit.ExitCode == nil {
		tried.failure = "it was killed"
	} else if *exit.ExitCode != 0 {
		tried.failure = fmt.Sprintf("exit status %d", *exit.ExitCode)
	}
	session.Close(0) // every denial is reported by now
	tried.output = session.Output()
	for _, denial := range denials.All() {
		if denial.Suggestion != nil {
			tried.paste(t, denial.Suggestion)
		}
	}
	return tried
}

// paste adds a suggestion to the settings, once.
func (a *attempt) paste(t *testing.T, s *protocol.Suggestion) {
	t.Helper()
	var value any
	harness.Must(t, json.Unmarshal(s.Value, &value))
	me, err := user.Current()
	harness.Must(t, err)
	text := fmt.Sprint(s.Setting, " ", value)
	if strings.HasSuffix(text, "-"+me.Username) {
		text = strings.TrimSuffix(text, me.Username) + "$USER"
	}
	if slices.Contains(a.suggested, text) {
		return
	}
	a.suggested = append(a.suggested, text)
	list, _ := a.settings[s.Setting].([]any)
	a.settings[s.Setting] = append(list, value)
}
