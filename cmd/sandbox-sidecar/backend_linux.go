package main

import (
	"log/slog"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux"
)

func newBackend(*slog.Logger) platform.Backend { return linux.Backend{} }

// adopts says whether this process has to be the parent of its sessions' orphans.
func adopts() bool { return linux.MustAdopt() }
