package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

const toolchainsKey = "toolchains"

// chosen is a toolchain that a layer names, with where it does.
type chosen struct {
	toolchain.Toolchain
	origin policy.Origin
	at     document.Position
}

// toolchainsOf returns the toolchains that a layer names, each once, with a
// remark on a name that is none.
func (e *evaluation) toolchainsOf(s *settings) []chosen {
	from, ok := s.from[toolchainsKey]
	if !ok {
		return nil
	}
	var list []chosen
	for i, name := range s.values.Toolchains {
		t, known := toolchain.Find(name)
		if !known {
			e.unknownToolchain(from, i, name)
			continue
		}
		if !slices.ContainsFunc(list, func(c chosen) bool { return c.Name == name }) {
			at := from.element(i)
			origin := from.policy(toolchainsKey, at)
			origin.Entry = name
			list = append(list, chosen{Toolchain: t, origin: origin, at: at})
		}
	}
	return list
}

func (e *evaluation) unknownToolchain(from origin, i int, name string) {
	names := toolchain.Names()
	hint := "known are " + strings.Join(names, ", ")
	if close := document.Nearest(name, names); close != "" {
		hint = fmt.Sprintf("did you mean %q?", close)
	}
	e.report(from.file, from.element(i), document.SeverityError, toolchainsKey, "%s: no such toolchain, %s", display.Quote(name), hint)
}

// chooseToolchains decides which toolchains count: an untrusted project can
// only drop some.
func (e *evaluation) chooseToolchains() {
	e.toolchains = e.toolchainsOf(&e.user)
	if !e.projectSets(toolchainsKey) {
		return
	}
	asked := e.toolchainsOf(e.project)
	e.toolchains = slices.DeleteFunc(e.toolchains, func(c chosen) bool {
		return !slices.ContainsFunc(asked, func(other chosen) bool { return other.Name == c.Name })
	})
	names := []string{}
	for _, c := range e.toolchains {
		names = append(names, c.Name)
	}
	e.merged.Toolchains = names
	e.fromProject(toolchainsKey)
}

// toolchainGrants resolves what the toolchains grant. What is not there is left
// out without a word: nobody has every tool.
func (e *evaluation) toolchainGrants() []grant {
	var list []grant
	for _, c := range e.toolchains {
		for _, p := range c.Places {
			if p.Platform != "" && p.Platform != e.host.Platform {
				continue
			}
			for _, dir := range e.placeDirs(c, p) {
				target := e.resolver.Resolve(filepath.Join(dir, p.Below))
				if target.Err != nil || !target.Exists && !p.Create {
					continue
				}
				origin := c.origin
				origin.Reason = p.Why
				if !target.Exists {
					e.create = append(e.create, target.Path)
				}
				list = append(list, grant{
					text: c.Name, path: target.Path, access: p.Access, origin: origin, at: c.at, links: target.Links,
				})
			}
		}
	}
	return list
}

// placeDirs are the directories that a place is in, as the environment says, or
// else as is usual.
func (e *evaluation) placeDirs(c chosen, p toolchain.Place) []string {
	if p.Variable == "" || e.host.Env[p.Variable] == "" {
		if dir, err := e.host.Expand(p.At, ""); err == nil {
			return []string{dir}
		}
		return nil
	}
	var dirs []string
	for _, dir := range filepath.SplitList(e.host.Env[p.Variable]) {
		if !filepath.IsAbs(dir) {
			continue
		}
		// Variables are set by programs, and programs err: nobody asked for the
		// whole home directory.
		real := e.resolver.Resolve(filepath.Join(dir, p.Below)).Path
		why := e.sensitive.Holds(real)
		if why != "" {
			why = "that is " + why
		} else if p.Access.Has(policy.Write) {
			why = e.undoes(real)
		}
		if why != "" {
			e.report(c.origin.File, c.at, document.SeverityWarning, toolchainsKey, "%s: the variable %s is %s: not granted, because %s",
				display.Quote(c.Name), p.Variable, display.Quote(dir), why)
			continue
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// toolchainVariables are the names that arrive because of the toolchains, each
// with what asks for it.
func (e *evaluation) toolchainVariables() []Variable {
	var list []Variable
	for _, c := range e.toolchains {
		for _, v := range c.Variables {
			origin := c.origin
			origin.Reason = v.Why
			list = append(list, Variable{Pattern: v.Name, Origin: origin})
		}
	}
	return list
}

// Variable is an entry of the list of variables that arrive, with where it
// comes from.
type Variable struct {
	Pattern string
	Origin  policy.Origin
}

// MakeDirs makes the caches of toolchains that are not there yet. A session
// could not make them itself: only what exists when it starts can be granted.
// It is called right before a restricted session starts, and goes on after an
// error.
func (c *Compiled) MakeDirs() error {
	var problems []error
	for _, dir := range c.create {
		if err := fsguard.MkdirAll(dir, 0o700); err != nil {
			problems = append(problems, fmt.Errorf("make directory of a toolchain: %w", err))
		}
	}
	return errors.Join(problems...)
}
