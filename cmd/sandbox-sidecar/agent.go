//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/agents"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// runAgent runs an agent with its set: exec, with what that agent needs for this
// command.
func runAgent(flags *flagSet, args []string) error {
	project := addProjectFlags(flags, settings.KindTool)
	project.addModeFlag(flags)
	project.addAgentFlags(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	if project.agent = flags.Arg(0); project.agent == "" {
		return misuse(flags, "name an agent: %s", knownAgents())
	}
	a, err := project.findAgent(flags)
	if err != nil {
		return err
	}
	before := a.Before(flags.Args()[1:])
	argv := slices.Concat([]string{a.Program}, before, flags.Args()[1:])
	if len(before) > 0 {
		printNotes([]string{fmt.Sprintf("%s gets %q: %s", a.Name, strings.Join(before, " "), a.Why)})
	}
	switch {
	case inSession():
		err = project.runInside(flags, argv)
	case a.unfound != nil:
		err = a.unfoundError()
	default:
		err = project.run(flags, job{argv: argv, program: a.program.Path, env: environ()})
	}
	return namingProgram(err)
}

// namingProgram has the hint of an error name the flag that names another program.
func namingProgram(err error) error {
	if failed, is := errors.AsType[*spawn.Error](err); is {
		failed.Hint = strings.Replace(failed.Hint, spawn.HintAnother, "name its program with --program", 1)
	}
	return err
}

// knownAgents lists the names that `agent` takes.
func knownAgents() string { return strings.Join(settings.AgentNames(os.Environ()), ", ") }

// namedAgent is an agent that a command line names, as it is on this machine.
type namedAgent struct {
	toolchain.Agent
	named    string // what is looked up
	program  agents.Program
	chosen   bool  // by --program
	unfound  error // why there is no program
	services []agents.Service
}

// findAgent looks up the agent of the flags, and its program; nil if they name
// none.
func (p *projectFlags) findAgent(flags *flagSet) (*namedAgent, error) {
	if p.agent == "" || p.found != nil {
		return p.found, nil
	}
	agent, err := settings.FindAgent(p.agent, p.projectDir(), os.Environ())
	var unknown *settings.UnknownAgentError
	if errors.As(err, &unknown) {
		text := fmt.Sprintf("%v; known are %s", err, knownAgents())
		if unknown.File != "" {
			text += "; docs/agents.md says what to write into " + quoted(unknown.File)
		}
		return nil, misuse(flags, "%s", text)
	}
	if err != nil {
		return nil, err
	}
	a := &namedAgent{Agent: agent, chosen: p.program != "", named: cmp.Or(p.program, agent.Program)}
	a.program, a.unfound = agents.Locate(exec.LookPath, a.named)
	var names []string
	for _, variable := range a.Passed {
		names = append(names, variable.Name)
	}
	a.services = agents.Services(names, os.Getenv)
	p.found = a
	return a, nil
}

// projectDir is the project of the flags, absolute, whether it exists or not.
func (p *projectFlags) projectDir() string {
	if dir, err := filepath.Abs(p.project); err == nil {
		return dir
	}
	return p.project
}

// unfoundError is why the program does not start.
func (a *namedAgent) unfoundError() error {
	var shim *agents.ShimError
	if errors.As(a.unfound, &shim) {
		hint := "name the program itself with --program"
		if len(shim.Found) > 0 {
			hint += ", such as " + quoted(shim.Found[0])
		}
		return notExecuted(a.named, shim.Error(), hint)
	}
	return notFound(a.named, a.unfound)
}

// layer is the agent as the settings take it, for sessions in a project.
func (a *namedAgent) layer(project string) *compile.Agent {
	layer := &compile.Agent{
		Toolchain: a.Toolchain, File: a.File, Hosts: a.Hosts, Program: a.program.Path, Ways: a.program.Ways,
		Named: a.chosen,
	}
	layer.Variables = slices.Concat(layer.Variables, a.Passed)
	real := realPath(project)
	for _, part := range a.program.Parts {
		if at := realPath(part.Path); at != "" && !policy.Contains(real, at) { // which sessions may read anyway
			layer.Programs = append(layer.Programs, part)
		}
	}
	for _, service := range a.services {
		if service.Local() && service.Obeys == "" {
			layer.Hosts = append(slices.Clip(layer.Hosts),
				toolchain.Registry{Host: service.Host, Why: "the model of " + service.Variable})
		}
	}
	return layer
}

// environ is an environment as the agent needs it in a session with a policy.
func (a *namedAgent) environ(env []string, of policy.Policy) []string {
	env = slices.Clone(env)
	if a.program.First != "" {
		env = append(env, "PATH="+a.program.First+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	if !of.Restricted || of.Network.Allowed {
		return env
	}
	for _, service := range a.services {
		if service.Local() && settings.Platform == "linux" {
			env = append(env, service.Variable+"="+service.Inside)
		}
	}
	return env
}

// notes say what the user may not expect of the agent in a session with a policy.
func (a *namedAgent) notes(of policy.Policy) (notes []string) {
	if !of.Restricted || of.Network.Allowed && of.Network.Localhost == policy.LocalhostAll {
		return nil
	}
	if gap := hostsGap(); gap != "" && !of.Network.Allowed {
		return []string{"no host can be reached: " + gap + "; --network opens what your settings allow"}
	}
	for _, service := range a.services {
		allowed := slices.ContainsFunc(of.Network.AllowedHosts, func(h policy.Host) bool {
			return h.Pattern == service.Host
		})
		switch {
		case service.Obeys != "":
			notes = append(notes, fmt.Sprintf("%s leads to %s, which is not opened: %s obeys whoever connects",
				service.Variable, service.Host, service.Obeys))
		case service.Local() && of.Network.Localhost == policy.LocalhostNone:
			notes = append(notes, fmt.Sprintf("%s leads to %s, which is not opened: \"localhost\" is \"none\"",
				service.Variable, service.Host))
		case of.Network.Allowed: // by the address that the variable has
		case service.Local() && allowed:
			notes = append(notes, fmt.Sprintf("%s: %s of this machine is reached as %s", service.Variable, service.Host,
				strings.Replace(service.Host, "localhost", hosts.HostName, 1)))
		case !allowed && !a.reaches(service.Host):
			notes = append(notes, fmt.Sprintf("%s leads to %s: add %s to \"allowed_hosts\" if it is refused",
				service.Variable, service.Host, quoted(service.Host)))
		}
	}
	return notes
}

// namingAgent has the error of an agent's program that was not executed name what
// opens it.
func (p *projectFlags) namingAgent(err error, program string) error {
	var failed *spawn.Error
	var cause *spawn.NotExecutedError
	if !errors.As(err, &failed) || !errors.As(err, &cause) || p.agent != "" {
		return err
	}
	name, is := toolchain.AgentOf(program)
	if _, unfound := exec.LookPath(program); is && unfound == nil {
		failed.Hint = presentation.AgentHint(name)
	}
	return err
}

// reaches reports whether the set has a host.
func (a *namedAgent) reaches(host string) bool {
	return slices.ContainsFunc(slices.Concat(a.Registries(), a.Hosts), func(r toolchain.Registry) bool {
		return r.Host == host
	})
}
