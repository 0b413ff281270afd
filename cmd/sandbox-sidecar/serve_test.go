//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTerminated_EndsWithTheSignalAsItsCause is not parallel, as a signal is for
// the whole process.
func TestTerminated_EndsWithTheSignalAsItsCause(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		ctx, stop := terminated()
		if err := unix.Kill(os.Getpid(), signal); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not noticed", unix.SignalName(signal))
		}
		var ended signalled
		if !errors.As(context.Cause(ctx), &ended) || unix.Signal(ended) != signal ||
			ended.Error() != unix.SignalName(signal) {
			t.Errorf("cause is %v", context.Cause(ctx))
		}
		stop()
	}
	ctx, stop := terminated()
	stop()
	var ended signalled
	if errors.As(context.Cause(ctx), &ended) {
		t.Errorf("the cause of a stopped context is %v", ended)
	}
}

func TestNewLogger(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		level, format string
		ok            bool
	}{
		{"debug", "text", true},
		{"INFO", "json", true},
		{"warn", "text", true},
		{"error", "json", true},
		{"", "text", false},
		{"info+1", "text", false},
		{"info-1", "text", false},
		{"info", "xml", false},
		{"info", "", false},
	} {
		logger, err := newLogger(test.level, test.format)
		if (err == nil) != test.ok || (logger != nil) != test.ok {
			t.Errorf("%s %s: %v", test.level, test.format, err)
		}
	}
}

func TestGuarded_HoldsThisProgram(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(guarded(), func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(info, self)
	}) {
		t.Errorf("guarded paths are %q", guarded())
	}
}
