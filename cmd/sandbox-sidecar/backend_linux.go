package main

import (
	"log/slog"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux"
)

func newBackend(*slog.Logger) platform.Backend { return linux.Backend{} }

// hidden are the other processes that this binary is, which are nobody's to call.
var hidden = map[string]func() int{"stage": linux.RunStage, "keeper": lifecycle.RunKeeper}

// adopts says whether this process has to be the parent of its sessions' orphans.
func adopts() bool { return linux.MustAdopt() }
