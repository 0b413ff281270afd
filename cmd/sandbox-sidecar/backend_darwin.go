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

// hidden are the other processes that this binary is, which are nobody's to call.
var hidden = map[string]func() int{"stage": func() int { return platform.RunStage(platform.RefuseToConfine) }}
