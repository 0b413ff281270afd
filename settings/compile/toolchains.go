package compile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/gnupg"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sshconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

const toolchainsKey = "toolchains"

// chosen is a toolchain that a layer names, with the place of the name.
type chosen struct {
	toolchain.Toolchain
	agent  *Agent // if a command line names it; else nil
	origin policy.Origin
	at     document.Position
}

// hasToolchain reports whether a toolchain is among those chosen.
func hasToolchain(list []chosen, name string) bool {
	return slices.ContainsFunc(list, func(c chosen) bool { return c.Name == name })
}

func (e *evaluation) toolchainNames() []string {
	var names []string
	for _, c := range e.toolchains {
		names = append(names, c.Name)
	}
	return names
}

// toolchainsOf returns the toolchains that a layer names, each once. It adds a
// diagnostic for an unknown name.
func toolchainsOf(s *settings, r *reporter) []chosen {
	from, ok := s.from[toolchainsKey]
	if !ok {
		return nil
	}
	var list []chosen
	for i, name := range s.values.Toolchains {
		t, known := toolchain.Find(name)
		if !known {
			r.add(from.file, from.element(i), document.SeverityError, toolchainsKey, "%s: no such toolchain, %s",
				display.Quote(name), knownToolchains(name))
			continue
		}
		if !hasToolchain(list, name) {
			at := from.element(i)
			origin := from.policy(toolchainsKey, at)
			origin.Entry = name
			list = append(list, chosen{Toolchain: t, origin: origin, at: at})
		}
	}
	return list
}

// knownToolchains is a hint for a name that is unknown.
func knownToolchains(name string) string {
	names := toolchain.Names()
	if near := document.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known are " + strings.Join(names, ", ")
}

// chooseToolchains decides which toolchains count: an untrusted project can only
// drop some.
func chooseToolchains(l layers, r *reporter) []chosen {
	list := l.withAgent(toolchainsOf(&l.user, r))
	for i := range l.bounds {
		if bound := &l.bounds[i]; bound.sets(toolchainsKey) {
			required := toolchainsOf(bound, r)
			list = slices.DeleteFunc(list, func(c chosen) bool { return !hasToolchain(required, c.Name) })
		}
	}
	if !l.projectSets(toolchainsKey) {
		return list
	}
	asked := toolchainsOf(l.project, r)
	list = slices.DeleteFunc(list, func(c chosen) bool { return !hasToolchain(asked, c.Name) })
	names := []string{}
	for _, c := range list {
		names = append(names, c.Name)
	}
	l.tightened.values.Toolchains = names
	l.decide(toolchainsKey)
	return list
}

// toolchainGrants resolves what the toolchains grant. Paths that do not exist
// are left out without a diagnostic: nobody has every tool. create lists the
// directories to be made before a session starts.
func toolchainGrants(view fsView, toolchains []chosen, r *reporter) (list []grant, create []string) {
	for _, c := range toolchains {
		if c.agent != nil {
			list = append(list, view.programGrants(c, r)...)
		}
		for _, p := range c.Places {
			if p.Line > 0 && view.refusesPlace(p) != "" {
				continue // see placeGap
			}
			for _, path := range view.placePaths(c, p, r) {
				target := view.Resolve(path)
				if target.Err != nil || !target.Exists && !p.Create {
					continue
				}
				origin := c.origin
				origin.Reason, origin.Line = p.Why, max(origin.Line, p.Line)
				if !target.Exists {
					create = append(create, target.Path)
				}
				access := p.Access
				if p.AlwaysPrivate && view.host.Platform != "linux" {
					access &^= policy.Write // there are no overlays
				}
				g := grant{
					path: target.Path, links: target.Links, cache: p.Cache(), hidden: p.Hidden,
					alwaysPrivate: p.AlwaysPrivate,
					request:       request{text: c.Name, access: access, origin: origin, at: c.at},
				}
				if p.Public && !view.public(g, target.Mode, r) {
					continue
				}
				list = append(list, g)
				if p.SSHConfig {
					list = append(list, view.namedBySSH(g, r)...)
				}
			}
		}
	}
	return list, create
}

// placePaths are the paths that a place stands for, on this platform.
func (v fsView) placePaths(c chosen, p toolchain.Place, r *reporter) []string {
	if p.Platform != "" && p.Platform != v.host.Platform {
		return nil
	}
	var paths []string
	for _, dir := range v.placeDirs(c, p, r) {
		paths = append(paths, v.matches(filepath.Join(dir, p.Below))...)
	}
	return paths
}

// passphrase is an option of GnuPG's configuration. It is compiled when it is
// needed: every stage starts with this package, too.
var passphrase = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*(--)?passphrase[ \t=]`)
})

// public reports whether a grant opens a regular file without a private key.
func (v fsView) public(g grant, mode fs.FileMode, r *reporter) bool {
	if !mode.IsRegular() {
		return false
	}
	data, err := v.FS.ReadFile(g.path)
	what := ""
	switch {
	case bytes.Contains(data, []byte("PRIVATE KEY")), bytes.Contains(data, []byte("\nPrivate-Lines:")): // of PuTTY
		what = "a private key"
	case passphrase().Match(data):
		what = "a passphrase"
	}
	if what != "" {
		r.add(g.origin.File, g.at, document.SeverityWarning, toolchainsKey, "%s: %s holds %s: not granted",
			display.Quote(g.text), display.Quote(g.path), what)
		return false
	}
	return err == nil || errors.Is(err, textfile.ErrTooLarge) // no key is so large
}

// sshConfig reads a configuration of ssh.
func (v fsView) sshConfig(file string) sshconfig.Names {
	return sshconfig.Read(sshconfig.Host{
		Home: v.host.Home, Env: v.host.Env, Tokens: v.sshTokens(),
		ReadFile: func(path string) ([]byte, error) { return v.FS.ReadFile(v.Resolve(path).Path) },
		Glob:     v.glob,
	}, file)
}

// maxGlob bounds the paths of one pattern, and the directories that are listed for
// it, together.
const maxGlob = 128

// globber finds what a path with patterns stands for.
type globber struct {
	view fsView
	left int  // of maxGlob; less than 0 if that was too little
	dirs bool // only directories are wanted
}

// glob lists what a path with patterns stands for.
func (v fsView) glob(path string) []string {
	g := globber{view: v, left: maxGlob}
	return g.find(path)
}

func (g *globber) find(path string) (list []string) {
	const special = "*?["
	at := strings.IndexAny(path, special)
	if at < 0 {
		if g.dirs && !g.isDir(path) {
			return nil
		}
		return []string{path}
	}
	dir := path[:strings.LastIndexByte(path[:at], '/')+1]
	pattern, rest, deeper := strings.Cut(path[len(dir):], "/")
	if g.left--; g.left < 0 {
		return nil
	}
	for _, name := range g.view.names(g.view.Resolve(dir).Path) {
		matched, err := filepath.Match(pattern, name)
		if err != nil || !matched || strings.HasPrefix(name, ".") != strings.HasPrefix(pattern, ".") ||
			(g.dirs || deeper) && (strings.ContainsAny(name, special) || !g.isDir(dir+name)) {
			continue
		}
		if deeper {
			list = append(list, g.find(dir+name+"/"+rest)...)
			continue
		}
		if g.left--; g.left < 0 {
			return list
		}
		list = append(list, dir+name)
	}
	return list
}

func (g *globber) isDir(path string) bool {
	target := g.view.Resolve(path)
	return target.Err == nil && target.Exists && target.Mode.IsDir()
}

// namedBySSH are the public files that a configuration of ssh names.
func (v fsView) namedBySSH(config grant, r *reporter) []grant {
	names := v.sshConfig(config.path)
	var list []grant
	for _, group := range []struct {
		paths []string
		why   string
	}{
		{names.Included, "a part of the configuration"},
		{names.KnownHosts, "the keys of known servers"},
		{names.Public, "a public key that the configuration names"},
	} {
		for _, path := range group.paths {
			target := v.Resolve(path)
			if target.Err != nil || !target.Exists {
				continue
			}
			g := config
			g.path, g.links = target.Path, slices.Concat(config.links, target.Links)
			g.origin.Reason, g.namedBy = group.why, append([]string{config.path}, names.Included...)
			if v.public(g, target.Mode, r) {
				list = append(list, g)
			}
		}
	}
	for _, pattern := range names.Patterns {
		// ssh lists the directory to find the files of a pattern.
		dir := v.Resolve(filepath.Dir(pattern))
		if !v.holdsOnly(dir, filepath.Base(pattern)) {
			continue
		}
		g := config
		g.path, g.links = dir.Path, slices.Concat(config.links, dir.Links)
		g.origin.Reason = "a directory whose files the configuration includes"
		g.namedBy = append([]string{config.path}, names.Included...)
		list = append(list, g)
	}
	return list
}

// holdsOnly reports whether a directory holds nothing but files that a pattern
// includes and that hold no private key. What begins with a dot is not included,
// but must not hold one either.
func (v fsView) holdsOnly(dir resolve.Target, pattern string) bool {
	names := v.names(dir.Path)
	if dir.Err != nil || !dir.Exists || !dir.Mode.IsDir() || len(names) == 0 {
		return false
	}
	for _, name := range names {
		path := filepath.Join(dir.Path, name)
		matched, err := filepath.Match(pattern, name)
		entry := v.Entry(path)
		if err != nil || !matched || entry.Err != nil {
			return false
		}
		if entry.Mode&fs.ModeSymlink != 0 {
			continue // the grant does not open what it leads to
		}
		if !v.public(grant{path: path}, entry.Mode, &reporter{}) {
			return false
		}
	}
	return true
}

// sshTokens are what stands behind "%" in a configuration of ssh and is the same
// for all servers.
func (v fsView) sshTokens() map[byte]string {
	name, _ := v.FS.Hostname()
	short, _, _ := strings.Cut(name, ".")
	return map[byte]string{
		'i': strconv.Itoa(os.Getuid()), 'u': cmp.Or(v.host.Env["USER"], v.host.Env["LOGNAME"]), 'l': name, 'L': short,
	}
}

// maxAgents bounds the agents that a configuration of ssh names.
const maxAgents = 8

// agentsNamedBySSH are the sockets that the user's configuration of ssh names,
// each with the files that name it.
func (v fsView) agentsNamedBySSH() []grant {
	if v.host.Home == "" {
		return nil
	}
	config := v.Resolve(filepath.Join(v.host.Home, ".ssh", "config"))
	if config.Err != nil || !config.Exists {
		return nil
	}
	var list []grant
	names := v.sshConfig(config.Path)
	for _, path := range names.Agents[:min(len(names.Agents), maxAgents)] {
		if target := v.Resolve(path); target.Err == nil {
			list = append(list, grant{
				path: target.Path, links: slices.Concat(config.Links, target.Links),
				namedBy: append([]string{config.Path}, names.Included...), request: request{text: path},
			})
		}
	}
	return list
}

// toolchainSockets are the sockets of agents that the toolchains grant.
func toolchainSockets(view fsView, toolchains []chosen) []socket {
	var list []socket
	for _, c := range toolchains {
		origin := c.origin
		origin.Reason = "an agent, which uses the keys for sessions"
		path, name := view.agentSocket(c.Keys)
		if target := view.Resolve(path); filepath.IsAbs(path) && target.Err == nil {
			list = append(list, socket{agent: c.Keys, grant: grant{
				path: target.Path, links: target.Links, request: request{text: name, origin: origin, at: c.at},
			}})
		}
		if c.Keys != policy.SSHAgent {
			continue
		}
		for _, g := range view.agentsNamedBySSH() {
			g.origin, g.at = origin, c.at
			named := socket{agent: c.Keys, inPlace: true, grant: g}
			if i := slices.IndexFunc(list, func(s socket) bool { return s.named() == named.named() }); i >= 0 {
				named.text, list = list[i].text, slices.Delete(list, i, i+1) // one filter in both places
			}
			list = append(list, named)
		}
	}
	return list
}

// agentSocket is where an agent's socket is, or is to be, and how a settings
// file may name it; "" if nobody knows.
func (v fsView) agentSocket(agent policy.Agent) (path, name string) {
	switch agent {
	case policy.SSHAgent:
		return v.host.Env["SSH_AUTH_SOCK"], "$SSH_AUTH_SOCK"
	case policy.GPGAgent:
		if v.host.Home == "" {
			return "", ""
		}
		usual := filepath.Join(v.host.Home, ".gnupg")
		home := cmp.Or(v.host.Env["GNUPGHOME"], usual)
		path = filepath.Join(home, gnupg.Socket)
		for _, dir := range gnupg.SocketDirs(v.Resolve(usual).Path, v.Resolve(home).Path, home, os.Getuid()) {
			if at := filepath.Join(dir, gnupg.Socket); v.Resolve(at).Exists {
				path = at
				break
			}
		}
		return path, path
	}
	return "", ""
}

// placeDirs are the directories that a place is in: those of its variable, or
// the usual one if the variable is not set. moved.go judges those that the
// variable names.
func (v fsView) placeDirs(c chosen, p toolchain.Place, r *reporter) []string {
	if p.Variable == "" || v.host.Env[p.Variable] == "" {
		if dir, err := v.host.Expand(p.At, ""); err == nil {
			return []string{dir}
		}
		return nil
	}
	var dirs []string
	for _, dir := range filepath.SplitList(v.host.Env[p.Variable]) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if v.admits(c, p, dir, r) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// oneOf names the first of a few names.
func oneOf(names []string) string {
	const most = 3
	var list []string
	for _, name := range names[:min(len(names), most)] {
		list = append(list, display.Quote(name))
	}
	text := strings.Join(list, " or ")
	if len(names) > most {
		text += " or the like"
	}
	return text
}

// firstOf is the first of the places that a variable moves.
func firstOf(c chosen, p toolchain.Place) toolchain.Place {
	i := slices.IndexFunc(c.Places, func(other toolchain.Place) bool {
		return other.Variable == p.Variable && other.Platform == p.Platform
	})
	return c.Places[i]
}

// isUsual reports whether a real path lies in a usual place of the toolchain
// that grants as much.
func (v fsView) isUsual(c chosen, p toolchain.Place, real string) bool {
	return slices.ContainsFunc(c.Places, func(usual toolchain.Place) bool {
		if usual.At == "" || usual.Platform != "" && usual.Platform != v.host.Platform || !usual.Access.Has(p.Access) {
			return false
		}
		dir, err := v.host.Expand(filepath.Join(usual.At, usual.Below), "")
		return err == nil && policy.Contains(v.Resolve(dir).Path, real)
	})
}

func (b bounding) toolchains(s *settings) {
	if s.sets(toolchainsKey) { // chooseToolchains has dropped the others
		names := []string{}
		for _, c := range b.evaluation.toolchains {
			names = append(names, c.Name)
		}
		b.decides(s, toolchainsKey, names)
	}
}
