// Package agents finds the program of an agent with what it needs beside it, and
// the services of this machine that its variables name.
//
// [Locate] finds the program, [Local] the services. Both run nothing.
package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Program is an agent's program, as it can be executed in a session.
type Program struct {
	// Path is what to execute. That a shim leads to another program is followed.
	Path string
	// Parts are what is executed, the program itself first.
	Parts []Part
	// Ways are all paths that led to the parts, those of shims too. Who can write
	// one of them decides what is executed.
	Ways []string
	// First is a directory to put first in PATH, so that a script finds its
	// interpreter; "" if PATH leads there already.
	First string
}

// Part is a program with what it reads.
type Part struct {
	// Path is absolute, and may have symlinks.
	Path string
	// Beside are files and directories without which it does not run.
	Beside []string
}

// ShimError says that a program stands for others, and that nobody can tell for
// which one.
type ShimError struct {
	Path string
	// Found are the programs of that name.
	Found []string
}

// Error says what the shim leads to.
func (e *ShimError) Error() string {
	if len(e.Found) == 0 {
		return fmt.Sprintf("%s starts a program that is not found", display.Quote(e.Path))
	}
	return fmt.Sprintf("%s starts one of %d versions of a program", display.Quote(e.Path), len(e.Found))
}

// Look finds a program as execvp(3) does.
type Look func(name string) (path string, err error)

// Locate finds a program by its name or path, with its interpreter and with what
// both read: node_modules, a Python environment. It follows shims of asdf, mise
// and the like to the only version there is. The error is that of look, or a
// *ShimError.
func Locate(look Look, name string) (Program, error) {
	var ways []string
	noting := func(name string) (string, error) {
		path, err := look(name)
		if err == nil {
			ways = append(ways, path)
		}
		return path, err
	}
	path, err := locate(noting, name)
	if err != nil {
		return Program{}, err
	}
	p, err := programAt(noting, path)
	for _, part := range p.Parts {
		ways = append(ways, part.Path)
	}
	p.Ways = ways
	return p, err
}

// programAt is a program with what it needs.
func programAt(look Look, path string) (Program, error) {
	p := Program{Path: path}
	real, err := fsguard.EvalSymlinks(path)
	if err != nil {
		return Program{}, err
	}
	part := Part{Path: path, Beside: modules(real)}
	head := headOf(real)
	p.Parts = []Part{part}
	words := shebang(head)
	if len(words) == 0 {
		return p, nil
	}
	if bytes.Contains(head, []byte("/global/")) { // a script of pnpm
		p.Parts[0].Beside = append(p.Parts[0].Beside, glob(filepath.Dir(real), "global", "*", "node_modules")...)
	}
	interpreter := words[0]
	if !executable(interpreter) {
		return p, nil // the kernel does not execute it
	}
	if filepath.Base(interpreter) == "env" {
		if interpreter, p.First, err = interpreterOf(look, path, words[1:]); err != nil || interpreter == "" {
			return p, err
		}
	}
	p.Parts = append(p.Parts, Part{Path: interpreter, Beside: python(interpreter)})
	if strings.HasPrefix(filepath.Base(interpreter), "python") {
		p.Parts[0].Beside = append(p.Parts[0].Beside,
			glob(filepath.Dir(filepath.Dir(path)), "lib", "python3*", "site-packages")...)
	}
	return p, nil
}

// locate is Locate for the path alone.
func locate(look Look, name string) (string, error) {
	path, err := look(name)
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return followShim(path)
}

// followShim returns the program that a shim stands for, and any other path as it
// is.
func followShim(path string) (string, error) {
	real, err := fsguard.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if filepath.Base(real) == "volta-shim" {
		return "", &ShimError{Path: path}
	}
	dir, name := filepath.Split(path)
	root := filepath.Dir(filepath.Clean(dir))
	if filepath.Base(dir) != "shims" {
		return path, nil
	}
	var candidates []string
	for _, pattern := range [][]string{
		{"installs", "*", "*", "bin", name}, {"installs", "*", "*", name}, {"versions", "*", "bin", name},
	} {
		candidates = append(candidates, glob(root, pattern...)...)
	}
	var found []string
	seen := map[string]bool{}
	for _, candidate := range candidates {
		// mise has links such as "latest" beside the directory of a version.
		at, err := fsguard.EvalSymlinks(filepath.Dir(candidate))
		if err != nil || seen[at] || !executable(candidate) {
			continue
		}
		seen[at] = true
		found = append(found, filepath.Join(at, name))
	}
	if len(found) != 1 {
		return "", &ShimError{Path: path, Found: found}
	}
	return found[0], nil
}

func executable(path string) bool {
	info, err := fsguard.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// interpreterOf finds the interpreter that env(1) would. One beside the script
// belongs to it, and counts more. first is the directory to put first in PATH.
func interpreterOf(look Look, script string, words []string) (path, first string, err error) {
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		return strings.HasPrefix(word, "-") || strings.Contains(word, "=")
	})
	if len(words) == 0 {
		return "", "", nil
	}
	known, lookErr := look(words[0])
	if beside := filepath.Join(filepath.Dir(script), words[0]); executable(beside) {
		if path, err = followShim(beside); err == nil && path == beside {
			if known != beside {
				first = filepath.Dir(beside)
			}
			return beside, first, nil
		}
	}
	if lookErr != nil {
		return "", "", lookErr
	}
	if path, err = filepath.Abs(known); err != nil {
		return "", "", err
	}
	if path, err = followShim(path); err == nil && path != known {
		first = filepath.Dir(path)
	}
	return path, first, err
}

// headOf is the beginning of a file.
func headOf(path string) []byte {
	const most = 4096
	file, err := fsguard.ReadFile(path, most)
	if err != nil {
		return nil
	}
	return file.Data[:min(len(file.Data), most)]
}

// mostShebang is how much of a script the kernel reads (BINPRM_BUF_SIZE).
const mostShebang = 256

// shebang are the words of a script's first line, as the kernel parts them
// (fs/binfmt_script.c): by spaces and tabs alone; nil if there are none.
func shebang(head []byte) []string {
	line, whole := bytes.CutPrefix(head[:min(len(head), mostShebang)], []byte("#!"))
	if !whole {
		return nil
	}
	if line, _, whole = bytes.Cut(line, []byte("\n")); !whole || bytes.IndexByte(line, 0) >= 0 {
		return nil
	}
	words := strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' })
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil
	}
	return words
}

// modules is the outermost node_modules that holds a program: packages find each
// other there.
func modules(real string) (found []string) {
	for dir := filepath.Dir(real); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "node_modules" {
			found = []string{dir}
		}
	}
	return found
}

// python is what an interpreter of Python reads: its virtual environment, and
// the installation that this was made of.
func python(interpreter string) (found []string) {
	root := filepath.Dir(filepath.Dir(interpreter))
	if _, err := fsguard.Stat(filepath.Join(root, "pyvenv.cfg")); err == nil {
		found = append(found, root)
	}
	real, err := fsguard.EvalSymlinks(interpreter)
	if err != nil || !strings.HasPrefix(filepath.Base(real), "python") {
		return found
	}
	prefix := filepath.Dir(filepath.Dir(real))
	if len(glob(prefix, "lib", "python3*")) > 0 && !slices.Contains(found, prefix) {
		found = append(found, prefix)
	}
	return found
}

// maxGlob bounds the entries of a directory that are looked at.
const maxGlob = 1000

// glob lists what names below a directory exist. A * stands for any characters.
func glob(dir string, names ...string) []string {
	paths := []string{dir}
	for _, name := range names {
		var next []string
		for _, path := range paths {
			if !strings.Contains(name, "*") {
				next = append(next, filepath.Join(path, name))
				continue
			}
			entries, err := fsguard.ReadDir(path, maxGlob)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				continue // what cannot be listed has nothing for us
			}
			for _, entry := range entries {
				if matched, err := filepath.Match(name, entry.Name); err == nil && matched {
					next = append(next, filepath.Join(path, entry.Name))
				}
			}
		}
		paths = next
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		_, err := fsguard.Stat(path)
		return err != nil
	})
	slices.Sort(paths)
	return paths
}
