package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/darwin"
)

func newBackend(logger *slog.Logger) platform.Backend {
	backend := &darwin.Backend{Executable: os.Args[0], Logger: logger}
	if path, err := os.Executable(); err == nil {
		backend.Executable = path
		if real, err := filepath.EvalSymlinks(path); err == nil {
			backend.Fixed = []string{real}
		}
	}
	if dir, err := lifecycle.StateDir(os.Environ()); err == nil {
		if filepath.Base(dir) == "run" {
			dir = filepath.Dir(dir) // which projects are trusted stands beside
		}
		backend.Closed = []string{dir}
	}
	if logger.Enabled(context.Background(), slog.LevelDebug) {
		backend.Denied = func(d darwin.Denial) {
			logger.Debug("refused by the sandbox", "session", d.Tag, "process", d.Process, "pid", d.PID, "operation", d.Operation, "target", d.Target,
				"count", d.Count)
		}
	}
	return backend
}

// adopts says whether this process has to be the parent of its sessions' orphans.
func adopts() bool { return false }
