package spawn

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// expectDeadline fails if a read of an empty terminal does not end at its
// deadline.
func expectDeadline(t *testing.T, when string, master *os.File) {
	t.Helper()
	if blocking(t, master) {
		t.Fatalf("%s: the terminal is in blocking mode", when)
	}
	if err := master.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatalf("%s: set deadline: %v", when, err)
	}
	if n, err := master.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: read %d bytes, %v; expected the deadline to pass", when, n, err)
	}
}

// blocking reports whether a file is in blocking mode.
func blocking(t *testing.T, file *os.File) bool {
	t.Helper()
	var flags int
	err := control(file, func(fd int) (err error) {
		flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_NONBLOCK == 0
}

func open(t *testing.T, size Size) (master, terminal *os.File) {
	t.Helper()
	master, terminal, err := openTerminal(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		master.Close()
		terminal.Close()
	})
	return master, terminal
}

func TestOpenTerminal_HasItsSizeAndDeadlines(t *testing.T) {
	t.Parallel()
	master, terminal := open(t, Size{Cols: 91, Rows: 17})
	if rows, cols, err := pty.Getsize(terminal); err != nil || rows != 17 || cols != 91 {
		t.Errorf("the size is %d by %d, %v", cols, rows, err)
	}
	expectDeadline(t, "at first", master)
	if err := setSize(master, Size{Cols: 40, Rows: 8}); err != nil {
		t.Fatal(err)
	}
	if rows, cols, err := pty.Getsize(terminal); err != nil || rows != 8 || cols != 40 {
		t.Errorf("after a change the size is %d by %d, %v", cols, rows, err)
	}
	expectDeadline(t, "after a change of the size", master)
}

// On macOS pty.Open returns a file that was in blocking mode when Go got it.
// This is one on any system.
func TestPolled_GivesAFileToThePollerThatItDidNotHave(t *testing.T) {
	t.Parallel()
	_, terminal := open(t, Size{Cols: 80, Rows: 24})
	fd, err := unix.Open(terminal.Name(), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), terminal.Name())
	defer file.Close()
	if err := file.SetReadDeadline(time.Now()); !errors.Is(err, os.ErrNoDeadline) {
		t.Fatalf("the poller had it before: %v", err)
	}
	other, err := polled(file)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	expectDeadline(t, "after", other)
}
