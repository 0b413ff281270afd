//go:build unix

package ending_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/ending"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// TestBySignal_EndsWithTheSignalAsItsCause is not parallel, as a signal is for
// the whole process.
func TestBySignal_EndsWithTheSignalAsItsCause(t *testing.T) {
	// The test's own caller may have it ignore some, as a shell does in the
	// background. What is asked for is not ignored.
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	defer signal.Stop(asked)
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		ctx, stop := ending.BySignal()
		if err := unix.Kill(os.Getpid(), signal); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ctx.Done():
		case <-deadline.After(30 * time.Second):
			t.Fatalf("%s was not noticed", unix.SignalName(signal))
		}
		var ended ending.Signalled
		if !errors.As(context.Cause(ctx), &ended) || unix.Signal(ended) != signal ||
			ended.Error() != unix.SignalName(signal) || ended.Status() != 128+int(signal) {
			t.Errorf("cause is %v", context.Cause(ctx))
		}
		stop()
	}
	ctx, stop := ending.BySignal()
	stop()
	var ended ending.Signalled
	if errors.As(context.Cause(ctx), &ended) {
		t.Errorf("the cause of a stopped context is %v", ended)
	}
}
