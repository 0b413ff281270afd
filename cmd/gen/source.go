//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is one Go file.
type Source struct {
	Name string
	Text string
}

// readSources reads the Go files of a directory, without tests. The files of
// first come first and those of last come last; the others are sorted by name
// between them. The artefacts have the same order.
func readSources(dir string, first, last []string) ([]Source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	var sources []Source
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read package: %w", err)
		}
		sources = append(sources, Source{Name: name, Text: string(text)})
	}
	rank := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		if i := slices.Index(last, name); i >= 0 {
			return len(first) + 1 + i
		}
		return len(first)
	}
	// ReadDir sorts by name, and a stable sort keeps that among equals.
	slices.SortStableFunc(sources, func(a, b Source) int { return rank(a.Name) - rank(b.Name) })
	return sources, nil
}

// readProtocol parses rpc/protocol below the module's root.
func readProtocol(root string) (*Package, error) {
	sources, err := readSources(filepath.Join(root, "rpc", "protocol"),
		[]string{"lifecycle.go", "terminal.go", "denied.go", "settings.go"},
		[]string{"errors.go", "doc.go", "descriptor.go"})
	if err != nil {
		return nil, err
	}
	return parsePackage(sources, "ErrorData")
}

// readSettings parses the settings block below the module's root.
func readSettings(root string) (*Package, error) {
	const name = "sandbox.go" // the rest of the package is no part of the reference
	text, err := os.ReadFile(filepath.Join(root, "settings", "document", name))
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	return parsePackage([]Source{{Name: name, Text: string(text)}}, settingsRoot)
}

// settingsRoot is the struct that describes the "terminal.sandbox" block.
const settingsRoot = "Sandbox"

// moduleRoot finds the directory of go.mod at or above dir.
func moduleRoot(dir string) (string, error) {
	start := dir
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("find go.mod: at or above %s: %w", start, os.ErrNotExist)
		}
		dir = parent
	}
}
