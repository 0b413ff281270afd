package history

import (
	"embed"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// What each program needs to find its own file of the project.

// variables names the files to the programs. A variable that the user has set
// to no file stays, and so does one that the settings pass.
func (s *Session) variables(r Request, own string) {
	shell := shells[0]
	if i := slices.IndexFunc(shells, func(p program) bool { return p.name == r.program()+"_history" }); i >= 0 {
		shell = shells[i]
	}
	for _, p := range append([]program{shell}, programs...) {
		if p.variable == "" || r.Policy.Environment.Allows(p.variable) {
			continue
		}
		value, set := lookUpSet(r.Outer, p.variable)
		if !set || value != "" && value != "-" && value != os.DevNull {
			value = filepath.Join(own, p.name)
		}
		s.Env = append(s.Env, p.variable+"="+value)
	}
}

// program is the name of the leader, without its version.
func (r Request) program() string {
	return strings.TrimRight(strings.TrimPrefix(filepath.Base(r.Program), "-"), "0123456789.")
}

// zshStart are the files of a directory that zsh takes for the user's.
//
//go:embed zshenv zprofile zshrc
var zshStart embed.FS

// zsh has the variable set again after the user's start-up files, which mostly
// set it themselves.
func (s *Session) zsh(r Request, start string) error {
	if r.program() != "zsh" {
		return nil
	}
	for _, name := range []string{"zshenv", "zprofile", "zshrc"} {
		text, err := zshStart.ReadFile(name)
		if err == nil {
			err = replace(filepath.Join(start, "."+name), string(text))
		}
		if err != nil {
			return err
		}
	}
	if r.Policy.Environment.Allows("ZDOTDIR") {
		s.Env = append(s.Env, "SANDBOX_SIDECAR_ZDOTDIR="+lookUp(r.Outer, "ZDOTDIR"))
	}
	s.Env = append(s.Env, "ZDOTDIR="+start, "SANDBOX_SIDECAR_START="+start)
	for _, entry := range s.Env {
		if file, is := strings.CutPrefix(entry, "HISTFILE="); is {
			s.Env = append(s.Env, "SANDBOX_SIDECAR_HISTFILE="+file)
		}
	}
	return nil
}

// pythonStart is what Python runs before its first prompt.
//
//go:embed startup.py
var pythonStart string

// python has its history read and written by a start-up file, because no
// variable names it before version 3.13. A start-up file of the user's that the
// settings pass counts instead.
func (s *Session) python(r Request, start string) error {
	const variable = "PYTHONSTARTUP"
	if _, set := lookUpSet(r.Outer, variable); set && r.Policy.Environment.Allows(variable) {
		return nil
	}
	path := filepath.Join(start, "startup.py")
	if err := replace(path, pythonStart); err != nil {
		return err
	}
	s.Env = append(s.Env, variable+"="+path)
	return nil
}

// viminfoLines end a copy of the system's vimrc.
//
//go:embed viminfo.vim
var viminfoLines string

// vimrcs are where systems have the configuration that vim reads first.
var vimrcs = []string{"/etc/vim/vimrc", "/etc/vimrc", "/usr/share/vim/vimrc"}

// vim has no variable at all. Its system's configuration names the file.
func (s *Session) vim(rc, own, start string) error {
	if rc == "" {
		return nil
	}
	file, err := fsguard.ReadFile(rc, maxOwn)
	if err != nil || !file.Before.Mode().IsRegular() || len(file.Data) > maxOwn {
		s.Replaced = slices.DeleteFunc(s.Replaced, func(replaced policy.Replaced) bool { return replaced.Path == rc })
		return nil
	}
	if err := replace(filepath.Join(start, "vimrc"), string(file.Data)+viminfoLines); err != nil {
		return err
	}
	s.Env = append(s.Env, "SANDBOX_SIDECAR_VIMINFO="+filepath.Join(own, viminfo))
	return nil
}

// replace writes a file in one step, unless it has that content already.
func replace(path, content string) error {
	if was, err := fsguard.ReadFile(path, len(content)); err == nil && string(was.Data) == content {
		return nil
	}
	return fsguard.Replace(path, []byte(content), 0o600)
}
