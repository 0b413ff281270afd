//go:build unix

package main

import (
	"io"
	"os"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A machine may stop this process until the time for more input is over. What
// was typed meanwhile still counts as typed.
func TestDialogue_SeesWhatWasTypedBeforeItLooked(t *testing.T) {
	t.Parallel()
	user, tty, err := pty.Open()
	harness.Must(t, err)
	defer user.Close()
	defer tty.Close()
	terminal, err := os.OpenFile(tty.Name(), os.O_RDWR|unix.O_NOCTTY, 0)
	harness.Must(t, err)
	defer terminal.Close()
	d := dialogue{ctx: t.Context(), terminal: terminal}
	d.hold(func() {
		if d.typedWithin(0) {
			t.Error("control: nothing was typed")
		}
		_, err := user.WriteString("rm")
		harness.Must(t, err)
		_, err = io.ReadFull(user, make([]byte, 2)) // the echo: it has arrived
		harness.Must(t, err)
		if !d.typedWithin(0) {
			t.Error("half a line was typed")
		}
		if d.typedWithin(0) {
			t.Error("the half line is still there")
		}
	})
}
