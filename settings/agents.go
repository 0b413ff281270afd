package settings

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/agents"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// UnknownAgentError says that an agent has no set.
type UnknownAgentError struct {
	// Name is the agent's, and File where its set would be; "" if the home
	// directory is not known.
	Name, File string
}

// Error says so.
func (e *UnknownAgentError) Error() string { return display.Quote(e.Name) + ": no such agent" }

// FindAgent returns the set of an agent by its name: one of the table, else the
// user's own, agents/NAME.json beside the settings. What a session in the project
// or in another one could have written does not count. env holds "NAME=value"
// entries. The error is an *UnknownAgentError or an *agents.FileError.
func FindAgent(name, projectDir string, env []string) (toolchain.Agent, error) {
	if agent, known := toolchain.FindAgent(name); known {
		return agent, nil
	}
	unknown := &UnknownAgentError{Name: name}
	host, err := hostOf(Options{Env: env, Platform: Platform})
	if err != nil {
		return toolchain.Agent{}, err
	}
	dir := host.Kept().Agents()
	if dir == "" || !isAgentName(name) {
		return toolchain.Agent{}, unknown
	}
	unknown.File = filepath.Join(dir, name+".json")
	text, _, err := textfile.Read(unknown.File)
	switch {
	case err != nil && textfile.Missing(err):
		return toolchain.Agent{}, unknown
	case err != nil:
		return toolchain.Agent{}, &agents.FileError{File: unknown.File, Text: textfile.Cause(err)}
	}
	if why := movable(dir, unknown.File, projectDir, host); why != "" {
		return toolchain.Agent{}, &agents.FileError{File: unknown.File, Text: why}
	}
	return agents.Parse(name, unknown.File, text)
}

// isAgentName reports whether a name is fit for a file.
func isAgentName(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return name != ""
}

// movable says why a session could have written a user's set; "" if none could.
// No session writes the directory of the settings, but a link could lead elsewhere.
func movable(dir, file, projectDir string, host resolve.Host) string {
	real, err := fsguard.EvalSymlinks(file)
	if err != nil {
		return textfile.Cause(err)
	}
	above, err := fsguard.EvalSymlinks(filepath.Dir(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return textfile.Cause(err)
	}
	if real != filepath.Join(above, filepath.Base(dir), filepath.Base(file)) {
		return "it is a symlink, and sessions could change what it leads to: put the file itself there"
	}
	view := resolve.NewView(resolve.OS)
	project, home := view.Resolve(projectDir).Path, view.Resolve(host.Home).Path
	if policy.Contains(project, real) && !policy.Contains(project, home) ||
		compile.InRepository(view, filepath.Dir(real), home) {
		return "it is in a project, and sessions could have written it"
	}
	return ""
}
