package lifecycle

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

// The kernel's work of closing a file is done by the last process that holds it.
// A pipe shows which one that is: its reader meets the end when the last writer
// has closed it.
func TestWatchdog_IsTheLastToCloseAFile(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	path := filepath.Join(dir, "watched"+journal.Suffix)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := &watchdog{
		command: func() (string, []string) {
			command := proctest.Helper("watchdog")
			return command.Path, command.Args
		},
		log: slog.New(slog.DiscardHandler), journal: path, reader: file,
	}
	w.use()
	if err := w.guard(); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	w.closeThere(writer)
	if _, err := writer.Write([]byte("x")); err == nil {
		t.Error("the file is still open here")
	}
	if err := reader.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(reader); !os.IsTimeout(err) {
		t.Errorf("while the watchdog runs, the reader meets %v", err)
	}
	w.close()
	if err := reader.SetReadDeadline(time.Now().Add(proctest.Timeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(reader); err != nil {
		t.Errorf("after the watchdog's end, the reader meets %v", err)
	}
}
