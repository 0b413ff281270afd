package settings

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

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
// user's own, agents/NAME.json beside the settings. A file with the name of a set of
// the table is an error, and what a session in the project or in another one could
// have written does not count. env holds "NAME=value" entries. The error is an
// *UnknownAgentError or an *agents.FileError.
func FindAgent(name, projectDir string, env []string) (toolchain.Agent, error) {
	unknown := &UnknownAgentError{Name: name}
	agent, known := toolchain.FindAgent(name)
	host, err := hostOf(Options{Env: env, Platform: Platform})
	if err != nil {
		return toolchain.Agent{}, err
	}
	dir := host.Kept().Agents()
	if known && dir == "" {
		return agent, nil
	}
	if dir == "" || !isAgentName(name) {
		return toolchain.Agent{}, unknown
	}
	unknown.File = filepath.Join(dir, name+agentFile)
	if _, taken := toolchain.Find(name); taken {
		switch _, err := fsguard.Lstat(unknown.File); {
		case err != nil && !textfile.Missing(err):
			return toolchain.Agent{}, &agents.FileError{File: unknown.File, Text: textfile.Cause(err)}
		case err == nil:
			return toolchain.Agent{}, &agents.FileError{
				File: unknown.File, Text: display.Quote(name) + " is a built-in name: give the file another one",
			}
		case known:
			return agent, nil
		}
		return toolchain.Agent{}, &UnknownAgentError{Name: name} // no file can be it
	}
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

// agentFile is how the name of a user's own file ends, and mostAgents bounds the
// files that are listed.
const (
	agentFile  = ".json"
	mostAgents = 100
)

// AgentNames lists the names of the table and those of the user's own files, sorted.
// env holds "NAME=value" entries.
func AgentNames(env []string) []string {
	names := toolchain.AgentNames()
	if host, err := hostOf(Options{Env: env, Platform: Platform}); err == nil && host.Kept().Agents() != "" {
		entries, _ := fsguard.ReadDir(host.Kept().Agents(), mostAgents) // a directory that is not there has none
		for _, entry := range entries {
			name, is := strings.CutSuffix(entry.Name, agentFile)
			if _, taken := toolchain.Find(name); is && isAgentName(name) && !taken {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
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
	return notesOf(host).wroteAgents(view, above, real)
}
