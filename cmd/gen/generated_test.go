//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// moduleDir is the module's root directory.
func moduleDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := moduleRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestGeneratedFiles_AreUpToDate(t *testing.T) {
	t.Parallel()
	if err := generate(moduleDir(t), false); err != nil {
		t.Error(err)
	}
}

func TestGenerate_WritesOnceAndNamesWhatIsStale(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"rpc/protocol", "settings", "tests/kernels"} {
		if err := os.CopyFS(filepath.Join(root, dir), os.DirFS(filepath.Join(moduleDir(t), dir))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"settings/schema.go", "settings/schema.json"} {
		if err := os.Remove(filepath.Join(root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}

	var stale *StaleError
	if err := generate(root, false); !errors.As(err, &stale) {
		t.Fatalf("nothing is generated: got %v, want a StaleError", err)
	}
	if len(stale.Paths) != 9 {
		t.Errorf("nothing is generated: stale are %q, want all of them", stale.Paths)
	}
	if err := generate(root, true); err != nil {
		t.Fatal(err)
	}
	if err := generate(root, false); err != nil {
		t.Errorf("just written: %v", err)
	}

	// A second run must not touch files that are up to date: build tools compare
	// modification times.
	doc := filepath.Join(root, "docs", "protocol.md")
	if err := os.Chmod(doc, 0o444); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := generate(root, true); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(doc); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("a file that is up to date was written again (%v)", err)
	}

	source := filepath.Join(root, "rpc", "protocol", "errors.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "\n// CodeNew is new.\nconst CodeNew Code = -32099\n"...)
	if err := os.WriteFile(source, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := generate(root, false); !errors.As(err, &stale) {
		t.Fatalf("a new error code: got %v, want a StaleError", err)
	}
	want := []string{
		"docs/protocol.md", "clients/vscode/src/protocol.gen.ts", "clients/neovim/lua/sandbox_sidecar/protocol_gen.lua",
	}
	if !slices.Equal(stale.Paths, want) {
		t.Errorf("a new error code: stale are %q, want %q", stale.Paths, want)
	}
}

func TestModuleRoot_IsFoundFromBelow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	below := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := moduleRoot(below); err != nil || got != root {
		t.Errorf("moduleRoot(%q) = %q, %v; want %q", below, got, err, root)
	}
	if _, err := moduleRoot(string(filepath.Separator)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a go.mod: got %v, want fs.ErrNotExist", err)
	}
}
