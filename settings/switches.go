package settings

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// Switch is a key of a single value, with the value that counts and its origin.
type Switch struct {
	Key string
	// Value is JSON.
	Value  string
	Origin policy.Origin
}

// switches lists the keys that decide about a policy beside its lists.
func (e *evaluation) switches(kind document.Kind) []Switch {
	var list []Switch
	if mode := e.merged.Mode; mode != nil {
		list = append(list, Switch{Key: "mode", Value: fmt.Sprintf("%q", *mode), Origin: e.originOf("mode")})
	}
	for _, s := range []struct {
		key   string
		value any
	}{
		{"enabled", *e.merged.Enabled},
		{"apply_to", *e.merged.ApplyTo},
		{"allow_network", e.policy.Network.Allowed},
		{temporaryKey, *e.merged.TemporaryFiles},
		{cachesKey, *e.merged.ToolchainCaches},
		{processesKey, e.policy.Limits.Processes},
		{memoryKey, *e.merged.Limits.Memory},
		{weightKey, e.policy.Limits.CPUWeight},
		{"on_unavailable", e.onUnavailable(kind)},
		{"on_denied", e.policy.OnDenied},
	} {
		value, err := json.Marshal(s.value)
		if err != nil {
			panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %s: %v", s.key, err))
		}
		list = append(list, Switch{Key: s.key, Value: string(value), Origin: e.originOf(s.key)})
	}
	return list
}

// Undecided reports whether no settings file says if the sandbox is on, so that
// the user may not know that it is off.
func (c *Compiled) Undecided() bool {
	return !c.Policy.Restricted && slices.ContainsFunc(c.Switches, func(s Switch) bool {
		return s.Key == "enabled" && s.Origin.File == policy.OriginBuiltIn
	})
}

// originOf is the origin of the value of a key as a whole.
func (e *evaluation) originOf(key string) policy.Origin {
	if from, bound := e.bounds.from[key]; bound {
		return from.policy(key, from.At)
	}
	if e.project != nil && e.origins[key] == e.projectFile {
		return e.project.originOf(key)
	}
	return e.user.originOf(key)
}

const shellKey = "shell"

// shell is the program with its arguments that a kind of session runs; nil: the
// usual one. An untrusted project has no say, because sessions that are not
// sandboxed run it, too.
func (s *Snapshot) shell(e *evaluation, kind document.Kind) []string {
	argv := e.merged.Shell
	if len(argv) == 0 && kind == document.KindTerminal {
		for _, state := range s.user {
			if state.Good != nil && state.Good.EditorShell != nil {
				argv = state.Good.EditorShell
			}
		}
	}
	if !isShell(argv) {
		return nil
	}
	program := argv[0]
	if strings.HasPrefix(program, "~/") {
		var err error
		if program, err = s.host.Expand(program, ""); err != nil {
			return nil
		}
	}
	// An editor's shell may be this program, so that the editor's own terminals
	// are sandboxed.
	if filepath.Base(program) == "sandbox-sidecar" || slices.Contains(s.ownPaths, program) {
		return nil
	}
	return append([]string{program}, argv[1:]...)
}

// isShell reports whether a list is a program with its arguments: a name in
// PATH, or an absolute path, which may begin with "~/".
func isShell(argv []string) bool {
	if len(argv) == 0 || argv[0] == "" {
		return false
	}
	return !strings.Contains(argv[0], "/") || filepath.IsAbs(argv[0]) || strings.HasPrefix(argv[0], "~/")
}

// diagnoseShell reports a shell that cannot be one.
func (e *evaluation) diagnoseShell(r *reporter) {
	if from, set := e.user.from[shellKey]; set && !isShell(e.user.values.Shell) {
		r.add(from.file, from.At, document.SeverityError, shellKey,
			"expected a program with its arguments: a name in PATH, or an absolute path; the usual shell runs")
	}
}
