//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// demoSettings turn the sandbox on, whatever the user's files say. They grant the
// tools on PATH that are installed in the home directory, such as a version
// manager's python3. It returns the granted directories too.
func demoSettings(path string) (json.RawMessage, []string, error) {
	granted := toolDirs(path)
	settings, err := json.Marshal(map[string]any{
		"terminal": map[string]any{"sandbox": map[string]any{
			"enabled": true, "apply_to": "both", "additional_executable_paths": granted,
		}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("write settings: %w", err)
	}
	return settings, granted, nil
}

// toolDirs are the directories on PATH outside of the system's. A directory of
// shims is replaced by its parent, which holds the version manager's programs. A
// bare "bin" is not replaced: there are private files in ~/.local and ~/.cargo.
func toolDirs(path string) []string {
	dirs := []string{}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || inSystem(dir) {
			continue
		}
		if filepath.Base(dir) == "shims" {
			dir = filepath.Dir(dir)
		}
		info, err := os.Stat(dir)
		covered := slices.ContainsFunc(dirs, func(other string) bool {
			return dir == other || strings.HasPrefix(dir, other+"/")
		})
		if err == nil && info.IsDir() && !covered {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func inSystem(dir string) bool {
	return slices.ContainsFunc([]string{"/bin", "/sbin", "/usr", "/opt", "/nix", "/run/current-system", "/snap"},
		func(root string) bool {
			return dir == root || strings.HasPrefix(dir, root+"/")
		})
}
