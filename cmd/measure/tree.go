package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// source is a file of a project.
type source struct {
	name string // relative to the project's directory, with slashes
	text []byte
}

// sources reads the Go and Markdown files of a project, in the order of their
// names.
func sources(dir string) ([]source, error) {
	names, err := fileNames(dir)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []source
	for _, name := range slices.Compact(names) {
		if !isMeasured(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // git knows it, and it is deleted
		}
		if err != nil {
			return nil, err
		}
		all = append(all, source{name, text})
	}
	return all, nil
}

// isMeasured reports whether a file counts, by its name.
func isMeasured(name string) bool {
	if ext := path.Ext(name); ext != ".go" && ext != ".md" {
		return false
	}
	return !slices.ContainsFunc(strings.Split(path.Dir(name), "/"), isSkippedDir)
}

func isSkippedDir(name string) bool {
	switch name {
	case "testdata", "vendor", "node_modules":
		return true
	}
	return len(name) > 1 && (name[0] == '.' || name[0] == '_')
}

// fileNames asks git, which knows what is ignored. A directory that is in no
// repository is walked.
func fileNames(dir string) ([]string, error) {
	command := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = dir
	listed, err := command.Output()
	if err == nil && len(listed) > 0 {
		return strings.Split(string(bytes.TrimSuffix(listed, []byte{0})), "\x00"), nil
	}
	var names []string
	root := os.DirFS(dir)
	return names, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && isSkippedDir(entry.Name()):
			return fs.SkipDir
		case entry.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
}
