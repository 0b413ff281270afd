//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/ending"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/logqueue"
	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/window"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

func serve(flags *flagSet, args []string) error {
	level := flags.String("log-level", "info", "`debug|info|warn|error`: least severe message to log")
	format := flags.String("log-format", "text", "`text|json`: form of the log on stderr")
	userSettings := flags.String("settings", "", "`FILE`: settings to read instead of your own, an absolute path")
	sandbox := flags.Bool("sandbox", false, "start only what is sandboxed, whatever the settings say")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	var layer []byte
	if *sandbox {
		layer = []byte(sandboxLayer)
		if inSession() {
			return errInSession
		}
	}
	if given(flags, "settings") && !filepath.IsAbs(*userSettings) {
		return misuse(flags, "--settings: expected an absolute path, found %s", quoted(*userSettings))
	}
	direct, err := newLogger(*level, *format)
	if err != nil {
		return misuse(flags, "%v", err)
	}
	queue := logqueue.New(os.Stderr, func(lines int64) {
		direct.Warn("log lines dropped: the editor reads the log too slowly", "lines", lines)
	})
	defer queue.Close(logTimeout)
	logger, err := newLoggerTo(queue, *level, *format)
	if err != nil {
		return err
	}

	ctx, stop := ending.BySignal()
	defer stop()
	ctx, stopUnread := ending.Unread(ctx)
	defer stopUnread()
	ending.KeepOnPipe()

	reserveThreads(endingThreads + answeringThreads())
	trail.Failed = func(err error) { logger.Warn(trailLost, "error", err) }
	tracker := openTracker(logger)
	spawner := newSpawner(tracker, logger)
	spawner.Standby = true
	server := rpc.New(rpc.Options{
		Version: versionName(), Spawner: spawner, Env: environ(), UserSettingsPath: *userSettings,
		Command: layer, Sandbox: *sandbox, Guarded: guarded(), HostsGap: hostsGap, Complete: complete, Recorder: &trail,
		WatchProcess: lifecycle.WatchProcess, Logger: logger,
		Window: func() (*window.Listener, error) { return openWindow(tracker, logger) },
	})
	stopListening := listen(tracker, spawner, logger, server.Client)
	err = server.Serve(ctx, os.Stdin, os.Stdout)
	stopListening()
	spawner.Close()
	if closeErr := tracker.Close(); closeErr != nil {
		logger.Error("processes of sessions may be left", "error", closeErr)
	}
	var ended ending.Signalled
	switch {
	case err == nil:
		return nil
	case errors.As(context.Cause(ctx), &ended):
		return exitStatus(ended.Status())
	default:
		logger.Error("the sidecar ends", "error", err)
		return exitStatus(1)
	}
}

// openWindow opens the socket on which shells report to the editor's window.
func openWindow(tracker *lifecycle.Tracker, logger *slog.Logger) (*window.Listener, error) {
	dir, remove, err := tracker.MakeDir()
	if err != nil {
		return nil, err
	}
	giveBack := func() {
		if err := remove(); err != nil {
			logger.Warn("a directory was not removed", "dir", dir, "error", err)
		}
	}
	listener, err := window.Listen(dir, giveBack)
	if err != nil {
		giveBack()
	}
	return listener, err
}

// listen lets other processes of the user ask what this one runs. Without a state
// directory they cannot. stop ends that; call it before the tracker is closed.
func listen(
	tracker *lifecycle.Tracker, spawner *spawn.Spawner, logger *slog.Logger, client func() string,
) (stop func()) {
	nothing := func() {}
	dir, remove, err := tracker.MakeDir()
	if err != nil {
		logger.Debug("other processes cannot ask what runs", "error", err)
		return nothing
	}
	giveBack := func() {
		if err := remove(); err != nil {
			logger.Warn("a directory was not removed", "dir", dir, "error", err)
		}
	}
	listener, err := control.Listen(dir, giveBack, control.Options{
		By: trail.Via, Client: client, Spawner: spawner, Logger: logger,
	})
	if err != nil {
		giveBack()
		logger.Warn("other processes cannot ask what runs", "error", err)
		return nothing
	}
	return listener.Close
}

// logTimeout bounds the wait for the reader of the log.
const logTimeout = 500 * time.Millisecond

func newLogger(level, format string) (*slog.Logger, error) {
	return newLoggerTo(os.Stderr, level, format)
}

func newLoggerTo(out io.Writer, level, format string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil || strings.ContainsAny(level, "+-") {
		return nil, fmt.Errorf("--log-level: unknown level %q", level)
	}
	options := &slog.HandlerOptions{Level: least}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(display.JSONWriter(out), options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(display.JSONWriter(out), options)), nil
	}
	return nil, fmt.Errorf("--log-format: unknown format %q", format)
}

// endingThreads are enough to end many sessions at once: few of the calls that
// take long do so in the kernel. An idle thread takes some 50 KB.
const endingThreads = 16

// reserveThreads starts threads, and does not wait for them.
func reserveThreads(number int) { go lifecycle.ReserveThreads(number) }

// openTracker opens a tracker that ends its sessions even if this process is
// killed. Without a state directory only the watchdog does that, and the log
// has a warning. The caller reserves threads.
func openTracker(logger *slog.Logger) *lifecycle.Tracker {
	stateDir, err := lifecycle.StateDir(os.Environ())
	if err != nil {
		logger.Warn("no state directory: sessions get no private runtime directory", "error", err)
	}
	return lifecycle.Open(lifecycle.Options{
		StateDir: stateDir, Watchdog: reexec("watchdog"), Subreaper: reexec("subreaper"), Env: os.Environ(),
		Adopt: adopts(), Alone: true, Logger: logger,
	})
}

// reexec returns the path and arguments that run this binary again in a role,
// such as "watchdog".
func reexec(role string) func() (string, []string) {
	return func() (string, []string) {
		path, argv := newBackend(slog.New(slog.DiscardHandler)).Stage()
		return path, []string{argv[0], role}
	}
}

func newSpawner(tracker *lifecycle.Tracker, logger *slog.Logger) *spawn.Spawner {
	return &spawn.Spawner{
		Backend: newBackend(logger), Tracker: tracker, Logger: logger, Recorder: &trail,
		Refusals: keptRefusals(logger, refusals.Under{}), Met: places.Of(os.Getenv).Met(),
		Credentials: credentialsProgram(),
	}
}

// keptRefusals is where refusals of sessions under a command line are kept for
// allow.
func keptRefusals(logger *slog.Logger, under refusals.Under) *refusals.Book {
	return &refusals.Book{Dir: places.Of(os.Getenv).Refusals(), Under: under, Log: logger}
}

// guarded are the paths that no session may write, besides settings files: this
// program, the one that it runs, and its state directory.
func guarded() []string {
	paths := program()
	if dir, err := lifecycle.StateDir(os.Environ()); err == nil {
		paths = append(paths, dir)
	}
	return paths
}

// program is the path of this program, and that of the one beside it that it
// runs, and then the links in PATH to it; an empty list if they are unknown.
func program() []string {
	self, err := executable()
	if err != nil {
		return nil
	}
	list := []string{self, beside(self, mcpProgram), beside(self, credentials.Program)}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		link := filepath.Join(dir, filepath.Base(self))
		if !filepath.IsAbs(dir) || link == self || slices.Contains(list, link) {
			continue
		}
		if real, err := fsguard.EvalSymlinks(link); err == nil && real == self {
			list = append(list, link)
		}
	}
	return list
}

// answered is what the machine has answered about that.
var answered session.Memory

// complete adds to a policy what each session has for itself.
func complete(p policy.Policy, kind settings.Kind) policy.Policy {
	machine := session.Machine{Env: os.Environ(), Memory: &answered}
	if self, err := executable(); err == nil {
		machine.Program = self
	}
	return machine.Complete(p, kind == settings.KindTerminal)
}

// executable is the real path of this program.
func executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if real, err := fsguard.EvalSymlinks(path); err == nil {
		path = real
	}
	return path, nil
}

// credentialsProgram is the program that has the secrets of sessions, beside this
// one; "" if it is not installed.
func credentialsProgram() string {
	self, err := executable()
	if err != nil {
		return ""
	}
	path := beside(self, credentials.Program)
	if info, err := fsguard.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// beside is a path in the directory of a program.
func beside(program, name string) string { return filepath.Join(filepath.Dir(program), name) }
