//go:build linux

package stories

import (
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A program inside asks for the display outside. No setting is suggested, since
// whoever connects sees the screen, and what is on the screen says that. The entry
// that the reference has opens this display and no other.
func TestADisplayOfOutside(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "python3")
	u := newUser(t, "")
	own, other := startDisplay(t), startDisplay(t)
	ask := func(display int) string {
		return fmt.Sprintf(`sandbox-sidecar exec -- python3 -c '
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("\0/tmp/.X11-unix/X%d")
print(s.recv(99).decode())'`, display)
	}

	screen, status := u.types(t, ask(own))
	sees(t, screen, fmt.Sprintf(`refused by the sandbox:
abstract:/tmp/\.X11-unix/X%d
careful: it shows what is on the screen`, own))
	sees(t, screen, "!to allow it: add")
	if status == "0" {
		harness.Breach(t, "a session connects to the display: %s", screen)
	}
	u.keys["allowed_unix_sockets"] = []string{fmt.Sprintf("abstract:/tmp/.X11-unix/X%d", own)}
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
	if screen, status := u.types(t, ask(own)+" | grep -x display"); status != "0" {
		t.Errorf("the entry opens nothing: %s", screen)
	}
	if screen, status := u.types(t, ask(other)); status == "0" {
		harness.Breach(t, "the entry of one display opens another: %s", screen)
	}
}

// startDisplay listens outside where a display does, and returns its number.
func startDisplay(t *testing.T) int {
	t.Helper()
	number := harness.FreePort(t) // nothing else has it
	listener, err := net.Listen("unix", fmt.Sprintf("@/tmp/.X11-unix/X%d", number))
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "display")
			conn.Close()
		}
	}()
	return number
}
