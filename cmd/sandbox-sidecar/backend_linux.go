package main

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux"
)

func newBackend() platform.Backend { return linux.Backend{} }

func runStage() int { return linux.RunStage() }
