//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// world is a home and a project for all measurements, outside of the temporary
// directories, which sandboxes open.
type world struct {
	root, home, project string
	// sidecar is the program.
	sidecar string
	// on, offline and off are settings files: sandboxed by the defaults,
	// without network too, and not sandboxed.
	on, offline, off string
	// stopwatch measures system calls; see tests/stopwatch.
	stopwatch string
	env       []string
}

func newWorld(program, stopwatch string) (*world, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp(cache, "sidecar-bench-")
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	w := &world{
		root: root, home: filepath.Join(root, "home"), project: filepath.Join(root, "project"), sidecar: program,
	}
	for _, dir := range []string{w.home, w.project} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	w.env = []string{
		"HOME=" + w.home, "PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"SHELL=/bin/bash", "LANG=C.UTF-8",
	}
	// Sessions may execute files of the project.
	w.stopwatch = filepath.Join(w.project, "stopwatch")
	text, err := os.ReadFile(stopwatch)
	if err == nil {
		err = os.WriteFile(w.stopwatch, text, 0o700)
	}
	if err != nil {
		return nil, err
	}
	for _, file := range []struct {
		name    string
		path    *string
		sandbox map[string]any
	}{
		{"on", &w.on, map[string]any{"enabled": true}},
		{"offline", &w.offline, map[string]any{"enabled": true, "allow_network": false}},
		{"off", &w.off, map[string]any{"enabled": false}},
	} {
		if *file.path, err = w.settings(file.name, file.sandbox); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// settings writes a settings file in a directory of its own, because the
// sidecar watches the directory.
func (w *world) settings(name string, sandbox map[string]any) (string, error) {
	data, err := json.Marshal(map[string]any{"terminal": map[string]any{"sandbox": sandbox}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.root, "settings-"+name, "settings.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	// Renamed, as editors save, so that the sidecar never reads half of it.
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}

// text makes a file in the project that repeats one letter, with the given size
// in bytes.
func (w *world) text(name string, size int) (string, error) {
	data := make([]byte, size)
	for i := range data {
		data[i] = 'x'
	}
	path := filepath.Join(w.project, name)
	return path, os.WriteFile(path, data, 0o600)
}

// tidy removes everything. Go's module cache is read-only.
func (w *world) tidy() {
	_ = filepath.WalkDir(w.root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(w.root); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

func makeDirs(paths []string) error {
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
	}
	return nil
}
