//go:build unix

// Package ending has contexts that end when a program has to: by a signal, or
// when nobody reads what it writes any more.
package ending

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Signalled is the cause of a context that a signal ended.
type Signalled unix.Signal

// Error is the signal's name.
func (s Signalled) Error() string { return unix.SignalName(unix.Signal(s)) }

// Status is the exit status that reports the signal, as shells do.
func (s Signalled) Status() int { return 128 + int(s) }

// BySignal returns a context that ends on SIGTERM, SIGINT and SIGHUP, with the
// signal as its cause. Those that the caller has this process ignore stay ignored.
func BySignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	for _, number := range []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		if !signal.Ignored(number) {
			signal.Notify(signals, number)
		}
	}
	go func() {
		select {
		case got := <-signals:
			cancel(Signalled(got.(unix.Signal)))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// ErrUnread means that the peer has closed its end of standard output.
var ErrUnread = errors.New("the editor has closed the connection")

// Unread returns a context that ends when standard output has no reader any
// more. A write would fail, but an idle program writes nothing.
func Unread(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			// Linux always reports that a pipe has no reader, macOS only if an
			// event is requested.
			fds := []unix.PollFd{{Fd: int32(syscall.Stdout), Events: unix.POLLHUP}}
			switch _, err := unix.Poll(fds, -1); {
			case err == nil && fds[0].Revents != 0:
				cancel(ErrUnread)
				return
			case err != nil && !errors.Is(err, unix.EINTR):
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// KeepOnPipe keeps SIGPIPE, after a write to a peer that is gone, from ending
// this process before it has ended what it has started.
func KeepOnPipe() { signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE) }
