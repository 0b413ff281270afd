//go:build unix

package platformtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Hold is a gate for stages, made of two FIFOs: a stage announces itself in one
// and waits for a byte in the other.
type Hold struct {
	Arrivals string `json:"arrivals"`
	Releases string `json:"releases"`

	arrivals, releases *os.File // the test's ends
}

// NewHold returns a closed gate. When the test ends, waiting stages continue.
func NewHold(t testing.TB) *Hold {
	t.Helper()
	dir := t.TempDir()
	h := &Hold{Arrivals: filepath.Join(dir, "arrivals"), Releases: filepath.Join(dir, "releases")}
	for path, file := range map[string]**os.File{h.Arrivals: &h.arrivals, h.Releases: &h.releases} {
		err := unix.Mkfifo(path, 0o600)
		if err == nil {
			// Open for both directions, so that neither side's open(2) waits
			// for the other's.
			*file, err = os.OpenFile(path, os.O_RDWR, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*file).Close() })
	}
	return h
}

// Arrived waits until a stage waits at the gate.
func (h *Hold) Arrived(t testing.TB) {
	t.Helper()
	var err error
	deadline.Until(timeout, func() bool {
		_ = h.arrivals.SetReadDeadline(time.Now().Add(time.Second))
		_, err = h.arrivals.Read(make([]byte, 1))
		return !errors.Is(err, os.ErrDeadlineExceeded)
	})
	if err != nil {
		t.Fatalf("wait for a stage: %v", err)
	}
}

// Release lets one stage pass, now or when it arrives.
func (h *Hold) Release(t testing.TB) {
	t.Helper()
	if _, err := h.releases.Write([]byte{1}); err != nil {
		t.Fatalf("release a stage: %v", err)
	}
}

// wait is the stage's side.
func (h *Hold) wait() error {
	arrivals, err := os.OpenFile(h.Arrivals, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("announce at gate: %w", err)
	}
	defer arrivals.Close()
	releases, err := os.Open(h.Releases)
	if err != nil {
		return fmt.Errorf("wait at gate: %w", err)
	}
	defer releases.Close()
	if _, err := arrivals.Write([]byte{1}); err != nil {
		return fmt.Errorf("announce at gate: %w", err)
	}
	// The end of the file releases the stage too: the test is over.
	_, _ = releases.Read(make([]byte, 1))
	return nil
}
