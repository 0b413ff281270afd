package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

func serve(args []string) error {
	flags := newFlags("serve", "[serve] [flags]")
	level := flags.String("log-level", "info", `least severe message to log: "debug", "info", "warn" or "error"`)
	format := flags.String("log-format", "text", `form of the log on stderr: "text" or "json"`)
	userSettings := flags.String("settings", "", "settings file to read instead of the user's own (absolute)")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	if given(flags, "settings") && !filepath.IsAbs(*userSettings) {
		return misuse(flags, "--settings: expected an absolute path, found %s", quoted(*userSettings))
	}
	direct, err := newLogger(*level, *format)
	if err != nil {
		return misuse(flags, "%v", err)
	}
	queue := newLogQueue(os.Stderr, func(lines int64) { direct.Warn("log lines found no room", "lines", lines) })
	defer queue.close(logTimeout)
	logger, err := newLoggerTo(queue, *level, *format)
	if err != nil {
		return err
	}

	ctx, stop := terminated()
	defer stop()
	ctx, stopUnread := unread(ctx)
	defer stopUnread()
	// The handler keeps a write to an editor that is gone from ending us by
	// SIGPIPE before the sessions have been killed.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)

	tracker := openTracker(logger)
	spawner := newSpawner(tracker, logger)
	spawner.Standby = true
	server := rpc.New(rpc.Options{
		Version: version, Spawner: spawner, Env: os.Environ(), UserSettingsPath: *userSettings,
		Guarded: guarded(), WatchProcess: lifecycle.WatchProcess, Logger: logger,
	})
	err = server.Serve(ctx, os.Stdin, os.Stdout)
	spawner.Close()
	if closeErr := tracker.Close(); closeErr != nil {
		logger.Error("processes may be left", "error", closeErr)
	}
	var ended signalled
	switch {
	case err == nil:
		return nil
	case errors.As(context.Cause(ctx), &ended):
		return exitStatus(128 + int(ended))
	default:
		logger.Error("ends", "error", err)
		return exitStatus(1)
	}
}

// signalled is the cause of a context that a signal has ended.
type signalled unix.Signal

func (s signalled) Error() string { return unix.SignalName(unix.Signal(s)) }

// terminated returns a context that a signal to end ends, with the signal as
// its cause.
func terminated() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	go func() {
		select {
		case got := <-signals:
			cancel(signalled(got.(unix.Signal)))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// logTimeout bounds the wait for whoever reads the log.
const logTimeout = 500 * time.Millisecond

// errUnread means that the editor has closed its end of our standard output.
var errUnread = errors.New("nobody reads standard output any more")

// unread returns a context that ends when nobody can read what we write any
// more. A write would tell, but an idle sidecar writes nothing.
func unread(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			// Of a pipe's end for writing, Linux always reports that there is
			// no reader; macOS only where something is asked for.
			fds := []unix.PollFd{{Fd: int32(syscall.Stdout), Events: unix.POLLHUP}}
			switch _, err := unix.Poll(fds, -1); {
			case err == nil && fds[0].Revents != 0:
				cancel(errUnread)
				return
			case err != nil && !errors.Is(err, unix.EINTR):
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

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

// openTracker opens a tracker that ends its sessions even when this process is
// killed. Without a state directory that depends on the watchdog alone, and the
// log says so.
func openTracker(logger *slog.Logger) *lifecycle.Tracker {
	stateDir, err := lifecycle.StateDir(os.Environ())
	if err != nil {
		logger.Warn("no state directory: sessions get no private runtime directory", "error", err)
	}
	return lifecycle.Open(lifecycle.Options{
		StateDir: stateDir, Watchdog: again(
			"watchdog"), Subreaper: again("subreaper"), Env: os.Environ(), Adopt: adopts(), Alone: true, Logger: logger,
	})
}

// again is the command line that runs this very binary again as something else,
// as the stage's does.
func again(as string) func() (string, []string) {
	return func() (string, []string) {
		path, argv := newBackend(slog.New(slog.DiscardHandler)).Stage()
		return path, []string{argv[0], as}
	}
}

func newSpawner(tracker *lifecycle.Tracker, logger *slog.Logger) *spawn.Spawner {
	return &spawn.Spawner{Backend: newBackend(logger), Tracker: tracker, Logger: logger}
}

// guarded are the paths beside settings files that no session may write: this
// program and its state.
func guarded() []string {
	paths := program()
	if dir, err := lifecycle.StateDir(os.Environ()); err == nil {
		paths = append(paths, dir)
	}
	return paths
}

// program is the path of this program, in a list that is empty where it is not
// known.
func program() []string {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return []string{path}
}
