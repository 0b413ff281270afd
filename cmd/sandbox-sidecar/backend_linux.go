package main

import (
	"log/slog"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux"
)

func newBackend(*slog.Logger) platform.Backend { return linux.Backend{} }

// backendForOne is the backend of a process that starts one session. It guesses
// which namespaces this machine has, as finding out takes longer.
func backendForOne(*slog.Logger) platform.Backend { return linux.Backend{Guess: true} }

// closeWatches closes what watches protected paths, without waiting for the
// kernel. No session may run any more.
func closeWatches(tracker *lifecycle.Tracker) {
	if watches := linux.DetachWatches(); watches != nil {
		tracker.CloseInWatchdog(watches)
	}
}

// adopts reports whether this process must adopt its sessions' orphans.
func adopts() bool { return linux.MustAdopt() }
