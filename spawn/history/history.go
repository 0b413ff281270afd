// Package history keeps what shells and other programs remember of what was
// typed, for each project apart from the user's own.
//
// [Places.Find] says what a policy must hold for a session to use a project's
// history, and [Look] finds what it needs to know of the machine. [Prepare] makes
// the project's directory, and says which variables name what is there. See
// docs/design/history.md.
package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// program is one whose history the project has.
type program struct {
	// variable names the file to the program; "" if none does.
	variable string
	// name is the file's name in the project's directory.
	name string
	// own is the user's file, in the home directory.
	own string
}

// shells are the programs that read HISTFILE. Their files have different forms.
var shells = []program{
	{"HISTFILE", "bash_history", ".bash_history"},
	{"HISTFILE", "zsh_history", ".zsh_history"},
	{"HISTFILE", "ksh_history", ""},
	{"HISTFILE", "mksh_history", ""},
}

var programs = []program{
	{"PYTHON_HISTORY", "python_history", ".python_history"},
	{"NODE_REPL_HISTORY", "node_repl_history", ".node_repl_history"},
	{"PSQL_HISTORY", "psql_history", ".psql_history"},
	{"SQLITE_HISTORY", "sqlite_history", ".sqlite_history"},
	{"LESSHISTFILE", "lesshst", ".lesshst"},
	{"", viminfo, ".viminfo"},
	{"", fishDir + "/fish_history", fishData + "/fish_history"},
}

const (
	viminfo  = "viminfo"
	fishDir  = "fish"
	fishData = ".local/share/fish"
	// maxOwn bounds what is copied of a user's own file.
	maxOwn = 4 << 20
	// maxEntries bounds the names in a directory that a session could fill.
	maxEntries = 10_000
)

// Session is what a session needs to use its project's history.
type Session struct {
	// Rules grant the project's directory, and what programs read at start.
	Rules []policy.Rule
	// Replaced are put in the place of what programs use without being asked.
	Replaced []policy.Replaced
	// Env are variables, as "NAME=value".
	Env []string
}

// Request is about one session.
type Request struct {
	// Project is the project's real path.
	Project string
	// Policy is the session's own.
	Policy *policy.Policy
	// Outer is the environment before the policy's filter.
	Outer []string
	// Program is the session's leader.
	Program string
}

// Places are where histories and what programs read at start are, whatever a
// policy says.
type Places struct {
	dir    string   // of all projects; real
	none   error    // why there is no history; nil if there can be one
	fish   string   // where fish keeps its own; real, "" if unknown
	vimrcs []string // of the system; real
}

// Look finds the places. What they name may not exist yet. The error is that of
// a file system that does not answer (fsguard.ErrNoAnswer). Then the places are
// taken as they are written, and Prepare finds out.
func Look(env []string) (Places, error) {
	var p Places
	var silent error
	answered := func(err error) error {
		if errors.Is(err, fsguard.ErrNoAnswer) {
			silent = err
			return nil
		}
		return err
	}
	real := func(path string) (string, error) {
		real, err := realPath(path)
		if err != nil && answered(err) == nil {
			return path, nil
		}
		return real, err
	}
	path, err := statePath(env)
	if err == nil {
		p.dir, err = real(path)
	}
	if err == nil {
		if err = answered(private(p.dir)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	p.none = err
	if home := lookUp(env, "HOME"); filepath.IsAbs(home) {
		if path, err := real(filepath.Join(home, fishData)); err == nil {
			p.fish = path
		}
	}
	for _, rc := range vimrcs {
		path, err := fsguard.EvalSymlinks(rc)
		if err != nil {
			if answered(err) == nil {
				p.vimrcs = append(p.vimrcs, rc)
			}
			continue
		}
		info, err := fsguard.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.Size() <= maxOwn || err != nil && answered(err) == nil {
			p.vimrcs = append(p.vimrcs, path)
		}
	}
	return p, silent
}

// Find says which rules and replacements a session's policy needs, and asks the
// machine nothing. What they name may not exist yet; Prepare makes it. The answer
// does not depend on Outer and Program. Session.Env is empty.
func (p Places) Find(r Request) (Session, error) {
	if p.none != nil {
		return Session{}, p.none
	}
	r.Policy = Without(r.Policy)
	if exposed(r.Policy, p.dir) {
		return Session{}, fmt.Errorf("%s: sessions may write it", p.dir)
	}
	own, start := filepath.Join(p.dir, places.HistoryName(r.Project)), filepath.Join(p.dir, "start")
	s := Session{Rules: []policy.Rule{rule(own, policy.Read|policy.Write), rule(start, policy.Read)}}
	// fish has no variable for its history alone.
	if p.fish != "" && r.Policy.At(p.fish) == 0 {
		source := filepath.Join(own, fishDir)
		s.Replaced = append(s.Replaced, policy.Replaced{Path: p.fish, Source: source})
		// Landlock does not look above a mount's root.
		s.Rules = append(s.Rules, rule(source, policy.Read|policy.Write))
	}
	if rc := p.vimrc(r.Policy); rc != "" {
		s.Replaced = append(s.Replaced, policy.Replaced{Path: rc, Source: filepath.Join(start, "vimrc")})
	}
	return s, nil
}

// exposed reports whether sessions may write a directory where no mounts protect
// it. The sidecar would write where a session of another machine has been.
func exposed(p *policy.Policy, dir string) bool {
	unprotected := *p
	unprotected.Protected = nil
	return unprotected.Outside(dir).Has(policy.Write)
}

// vimrc is the system's configuration of vim, if a session may read it; "" if
// there is none.
func (p Places) vimrc(session *policy.Policy) string {
	for _, path := range p.vimrcs {
		if session.At(path).Has(policy.Read) {
			return path
		}
	}
	return ""
}

// realPath is a path without symlinks, as far as it exists.
func realPath(path string) (string, error) {
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		real, err := fsguard.EvalSymlinks(dir)
		switch {
		case err == nil:
			return filepath.Join(real, rest), nil
		case !errors.Is(err, fs.ErrNotExist) || dir == "/":
			return "", err
		}
		if info, err := fsguard.Lstat(dir); err == nil {
			return "", fmt.Errorf("%s leads nowhere (%s)", dir, info.Mode().Type())
		}
	}
}

// originKey marks the rules of this package.
const originKey = "history"

func ours(r policy.Rule) bool {
	return r.Origin.File == policy.OriginSession && r.Origin.Key == originKey
}

// Granted reports whether a policy lets its session use a history.
func Granted(p *policy.Policy) bool { return slices.ContainsFunc(p.Rules, ours) }

// Without is a policy that lets its session use no history.
func Without(p *policy.Policy) *policy.Policy { return Limited(p, Session{}) }

// Limited is a policy that holds nothing of a history but what a session has.
func Limited(p *policy.Policy, to Session) *policy.Policy {
	limited := *p
	sources := []string{}
	limited.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r policy.Rule) bool {
		if ours(r) {
			sources = append(sources, r.Path)
		}
		return ours(r) && !slices.Contains(to.Rules, r)
	})
	limited.Replaced = slices.DeleteFunc(slices.Clone(p.Replaced), func(r policy.Replaced) bool {
		is := slices.ContainsFunc(sources, func(source string) bool { return policy.Contains(source, r.Source) })
		return is && !slices.Contains(to.Replaced, r)
	})
	return &limited
}

// Prepare makes the project's directory, and fills it from the user's own files
// if the session may read those.
func Prepare(r Request) (Session, error) {
	dir, err := stateDir(r.Outer)
	if err != nil {
		return Session{}, err
	}
	if exposed(r.Policy, dir) {
		return Session{}, fmt.Errorf("%s: sessions may write it", dir)
	}
	r.Policy = Without(r.Policy)
	own := filepath.Join(dir, places.HistoryName(r.Project))
	if err := r.fill(own); err != nil {
		return Session{}, err
	}
	if _, err := clean(own, nil); err != nil {
		return Session{}, err
	}
	start := filepath.Join(dir, "start")
	if err := makeDir(start); err != nil {
		return Session{}, err
	}
	if home := lookUp(r.Outer, "HOME"); r.program() == "fish" && filepath.IsAbs(home) {
		// Only what exists can be replaced. fish makes it at its first start.
		_ = fsguard.MkdirAll(filepath.Join(home, fishData), 0o700)
	}
	found, err := Look(r.Outer)
	if err != nil {
		return Session{}, err
	}
	s, err := found.Find(r)
	if err != nil {
		return Session{}, err
	}
	s.variables(r, own)
	if err := s.zsh(r, start); err != nil {
		return Session{}, err
	}
	if err := s.python(r, start); err != nil {
		return Session{}, err // on a full disk the next one fails, too
	}
	if err := s.vim(found.vimrc(r.Policy), own, start); err != nil {
		return Session{}, err
	}
	s.Replaced = slices.DeleteFunc(s.Replaced, func(replaced policy.Replaced) bool {
		_, err := fsguard.Lstat(replaced.Path)
		return err != nil
	})
	return s, nil
}

func rule(path string, access policy.Access) policy.Rule {
	return policy.Rule{Path: path, Access: access, Origin: policy.Origin{File: policy.OriginSession, Key: originKey}}
}

// statePath is the directory of all projects.
func statePath(env []string) (string, error) {
	dir := places.OfList(env).History()
	if dir == "" {
		return "", errors.New("neither XDG_STATE_HOME nor HOME is set")
	}
	return dir, nil
}

// stateDir makes the directory of all projects, which only the user may enter.
func stateDir(env []string) (string, error) {
	dir, err := statePath(env)
	if err != nil {
		return "", err
	}
	if err := fsguard.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	dir, err = fsguard.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return dir, private(dir)
}

// private returns an error unless a directory is the user's, and closed to
// others.
func private(dir string) error {
	info, err := fsguard.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: not a private directory of this user (mode 0700)", dir)
	}
	return nil
}

func makeDir(path string) error {
	if err := fsguard.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return private(path)
}

// fill makes a project's directory, unless it exists.
func (r Request) fill(own string) error {
	if _, err := fsguard.Lstat(own); err == nil {
		return private(own)
	}
	contents := map[string][]byte{}
	for _, p := range slices.Concat(shells, programs) {
		if text := r.readOwn(p.own); len(text) > 0 {
			contents[p.name] = text
		}
	}
	order, err := json.Marshal(contents)
	if err != nil {
		return err
	}
	if _, err := makeFilled(own, order); err != nil {
		return err
	}
	return private(own) // perhaps another sidecar's
}

// makeFilled makes a project's directory in one step, so that the sidecar never
// writes where a session may have put something.
var makeFilled = fsguard.Define("make history", func(own string, order []byte) ([]byte, error) {
	var contents map[string][]byte
	if err := json.Unmarshal(order, &contents); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(own), ".new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if err := os.Mkdir(filepath.Join(temp, fishDir), 0o700); err != nil {
		return nil, err
	}
	for name, text := range contents {
		if err := os.WriteFile(filepath.Join(temp, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.Rename(temp, own); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return nil, nil
})

// readOwn is the content of a user's own file, if the session may read it.
func (r Request) readOwn(name string) []byte {
	home := lookUp(r.Outer, "HOME")
	if name == "" || !filepath.IsAbs(home) {
		return nil
	}
	path, err := fsguard.EvalSymlinks(filepath.Join(home, name))
	if err != nil || !r.Policy.Outside(path).Has(policy.Read) {
		return nil
	}
	data, err := fsguard.ReadPlain(path, maxOwn) // what the policy was asked about, and no other
	if err != nil || len(data) > maxOwn {
		return nil
	}
	return data
}

// clean removes what no program keeps there: a directory in the place of a
// file, which would end the history, and what fish would run. It follows no
// symlink.
var clean = fsguard.Define("clean history", func(own string, _ []byte) ([]byte, error) {
	root, err := os.OpenRoot(own)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, p := range slices.Concat(shells, programs) {
		if filepath.Dir(p.name) != "." {
			continue
		}
		if info, err := root.Lstat(p.name); err == nil && !info.Mode().IsRegular() {
			if err := root.RemoveAll(p.name); err != nil {
				return nil, err
			}
		}
	}
	if info, err := root.Lstat(fishDir); err == nil && !info.IsDir() {
		if err := root.Remove(fishDir); err != nil {
			return nil, err
		}
	}
	if err := root.Mkdir(fishDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	fish, err := root.Open(fishDir)
	if err != nil {
		return nil, err
	}
	defer fish.Close()
	entries, _ := fish.ReadDir(maxEntries)
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasPrefix(entry.Name(), "fish_history") {
			if err := root.RemoveAll(filepath.Join(fishDir, entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
})

func lookUp(env []string, name string) string {
	value, _ := lookUpSet(env, name)
	return value
}

func lookUpSet(env []string, name string) (value string, set bool) {
	for _, entry := range env {
		if value, is := strings.CutPrefix(entry, name+"="); is {
			return value, true
		}
	}
	return "", false
}
