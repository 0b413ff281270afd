package main

import (
	"log/slog"
	"os"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/darwin"
)

func newBackend(logger *slog.Logger) platform.Backend {
	backend := &darwin.Backend{Executable: os.Args[0], Known: places.Of(os.Getenv).Seatbelt(), Logger: logger}
	if path, err := os.Executable(); err == nil {
		backend.Executable = path
		if real, err := fsguard.EvalSymlinks(path); err == nil {
			backend.Fixed = []string{real}
		}
	}
	if dir, err := lifecycle.StateDir(os.Environ()); err == nil {
		backend.Closed = []string{places.Closed(dir)}
	}
	// With a runtime directory, that is another one.
	if dir := places.Of(os.Getenv).State(); dir != "" && !slices.Contains(backend.Closed, dir) {
		backend.Closed = append(backend.Closed, dir)
	}
	return backend
}

func hostsGap() string { return "" }

// answeringThreads is 0: nobody answers system calls here.
func answeringThreads() int { return 0 }

// backendForOne is the backend of a process that starts one session.
func backendForOne(logger *slog.Logger) platform.Backend { return newBackend(logger) }

// closeWatches has nothing to do: nothing watches protected paths here.
func closeWatches(*lifecycle.Tracker) {}

// adopts reports whether this process must adopt its sessions' orphans.
func adopts() bool { return false }

// inSession cannot be known on macOS: a shell of this program starts no second
// session there, and says so.
func inSession() bool { return false }
