//go:build unix

package platform

import (
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// groupInit is the sidecar's side of an init whose part the test plays by the
// file.
func groupInit(t *testing.T) (*GroupInit, *os.File) {
	t.Helper()
	init, theirs, err := NewGroupInit()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- init.Serve(func() {}) }()
	t.Cleanup(func() {
		theirs.Close()
		init.Release()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return init, theirs
}

// Whoever gets ErrInitGone may start the command elsewhere, so that no init has
// had it then.
func TestGroupInit_SaysWhetherACommandMayHaveRun(t *testing.T) {
	t.Parallel()
	order, streams := Order{Program: "true", Argv: []string{"true"}, Dir: "/"}, []*os.File{os.Stdin, os.Stdout, os.Stderr}
	init, theirs := groupInit(t)
	go func() {
		var call handshake.Call
		_ = json.NewDecoder(theirs).Decode(&call)
		theirs.Close()
	}()
	if _, err := init.Start(t.Context(), order, streams, false); !errors.Is(err, ErrMayHaveRun) {
		t.Errorf("the init ended with the command: %v", err)
	}
	if _, err := init.Start(t.Context(), order, streams, false); !errors.Is(err, ErrInitGone) {
		t.Errorf("the init had ended before: %v", err)
	}
}
