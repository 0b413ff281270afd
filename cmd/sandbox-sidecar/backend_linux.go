package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/localhost"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

func newBackend(*slog.Logger) platform.Backend {
	return linux.Backend{Caches: caches(), Listeners: listeners()}
}

// listeners are what sessions of all this user's sidecars listen with.
var listeners = sync.OnceValue(func() *localhost.Notes {
	return localhost.NewNotes(func() string {
		dir, err := lifecycle.StateDir(os.Environ())
		if err != nil {
			return ""
		}
		return filepath.Join(dir, "listeners")
	})
})

func hostsGap() string { return linux.HostsGap() }

// answeringThreads is how many threads answer the system calls of sessions.
func answeringThreads() int { return linux.AnsweringThreads }

// backendForOne is the backend of a process that starts one session. It guesses
// which namespaces this machine has, as finding out takes longer.
func backendForOne(*slog.Logger) platform.Backend {
	return linux.Backend{Guess: true, Caches: caches(), Listeners: listeners()}
}

// caches connects to the process that holds the overlays over caches of
// toolchains, or starts it.
var caches = sync.OnceValue(func() *overlay.Client {
	return &overlay.Client{Dir: places.Of(os.Getenv).Overlays(), Start: func(attr *os.ProcAttr) error {
		path, argv := linux.Backend{}.Stage()
		attr.Env = lifecycle.SmallRuntime
		process, err := lifecycle.Start(path, []string{argv[0], "cache-holder"}, attr)
		if err != nil {
			return err
		}
		go func() { _, _ = process.Wait(false) }() // it ends when no sidecar uses it
		return nil
	}}
})

// closeWatches closes what watches protected paths, without waiting for the
// kernel. No session may run any more.
func closeWatches(tracker *lifecycle.Tracker) {
	if watches := linux.DetachWatches(); watches != nil {
		tracker.CloseInWatchdog(watches)
	}
}

// inSession reports whether this process is in a session already.
func inSession() bool { return seccomp.InSession() }

// adopts reports whether this process must adopt its sessions' orphans.
func adopts() bool { return linux.MustAdopt() }
