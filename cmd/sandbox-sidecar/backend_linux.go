package main

import (
	"log/slog"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux"
)

func newBackend(*slog.Logger) platform.Backend { return linux.Backend{} }

// backendForOne is that of a process that starts one session, which finds out
// itself what this machine has.
func backendForOne(*slog.Logger) platform.Backend { return linux.Backend{Guess: true} }

// adopts says whether this process has to be the parent of its sessions'
// orphans.
func adopts() bool { return linux.MustAdopt() }
