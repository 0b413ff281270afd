package darwin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/libsystem"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// system returns this macOS's version and build, such as 14 and "23J631".
func system() (version int, build string) {
	if text, err := unix.Sysctl("kern.osproductversion"); err == nil {
		major, _, _ := strings.Cut(text, ".")
		version, _ = strconv.Atoi(major)
	}
	build, _ = unix.Sysctl("kern.osversion")
	return version, build
}

// try compiles a profile in a process that is discarded.
func (b *Backend) try(ctx context.Context, p Profile) (Typing, error) {
	orders, err := json.Marshal(Plan{Trial: &p})
	if err != nil {
		return TypingUntried, fmt.Errorf("write plan: %w", err)
	}
	trying, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	enforcement, err := platform.ProbeStage(trying, b, platform.Confinement{Orders: orders})
	return judgeTry(ctx, enforcement, err)
}

// tryHere is try's part in the stage.
func tryHere(p Profile) (handshake.Confined, error) {
	master, terminal := openTerminal()
	defer runtime.KeepAlive(master) // its end would hang the terminal up
	if terminal != nil {
		if at := slices.Index(p.Parameters, specimenTerminal); at >= 0 {
			p.Parameters[at] = terminal.Name()
		}
	}
	before := typeInto(terminal)
	if err := libsystem.Confine(p.Text, p.Parameters); err != nil {
		return handshake.Confined{}, err
	}
	after := typeInto(terminal)
	_, control := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	return handshake.Confined{Enforcement: platform.Enforcement{Protections: map[string]platform.Protection{
		platform.Syscalls: {Detail: string(tried(before, after, control))},
	}}}, nil
}

// openTerminal opens a new terminal, as the controlling one if that is possible:
// only into that can a user type who is not root. Both are nil if there is none.
// The process ends soon, and with it both sides.
func openTerminal() (master, terminal *os.File) {
	master, terminal, err := pty.Open()
	if err != nil {
		return nil, nil
	}
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TIOCSCTTY, 0)
	return master, terminal
}

// typeInto types a character that nobody reads. Without a terminal it fails.
func typeInto(terminal *os.File) error {
	return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSTI, ' ')
}
