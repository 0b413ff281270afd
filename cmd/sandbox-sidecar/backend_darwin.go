package main

import (
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

func newBackend() platform.Backend {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return platform.Unsupported{System: "darwin", Executable: path}
}

func runStage() int { return platform.RunStage(platform.RefuseToConfine) }
