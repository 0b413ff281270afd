package darwin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/libsystem"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// RunStage is the stage of this platform; see handshake.RunStage.
func RunStage() int { return handshake.RunStage(confineSelf, nil) }

// confineSelf applies the profile. Everything that needs the file system
// happens before, and the proof after.
func confineSelf(order *platform.Order) (handshake.Confined, error) {
	var plan Plan
	if err := json.Unmarshal(order.Orders, &plan); err != nil {
		return handshake.Confined{}, fmt.Errorf("read plan: %w", err)
	}
	// macOS ignores a second profile without an error, and the process stays in
	// the first.
	if err := outsideOfSandboxes(); err != nil {
		return handshake.Confined{}, err
	}
	if plan.Trial != nil {
		return tryHere(*plan.Trial)
	}
	if plan.Canary != "" {
		if _, err := os.ReadDir(plan.Canary); err != nil {
			return handshake.Confined{}, fmt.Errorf("try canary before: %w", err)
		}
	}
	scene, missing, err := plan.Resolve(kernelFiles{})
	if err != nil {
		return handshake.Confined{}, err
	}
	if scene.WorkDir, err = unix.Getwd(); err != nil {
		return handshake.Confined{}, fmt.Errorf("find working directory: %w", err)
	}
	scene.Terminal = ownTerminal()
	confined := handshake.Confined{}
	if !plan.Fingerprint.IsZero() {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return handshake.Confined{}, fmt.Errorf("prepare handshake: %w", err)
		}
		confined.Passed = []handshake.PassedFile{{Kind: passedWaiting, FD: fd}}
	}
	profile := scene.Profile().In(plan.Dialect)
	if err := libsystem.Confine(profile.Text, profile.Parameters); err != nil {
		return handshake.Confined{}, err
	}
	if err := prove(plan); err != nil {
		return handshake.Confined{}, err
	}
	if !plan.TrackOnly {
		confined.Enforcement = platform.Enforcement{
			Protections: report(scene), Unheld: unheld(scene), Missing: missing,
		}
	}
	return confined, nil
}

// prove checks from inside that the profile is in force.
func prove(plan Plan) error {
	answer, err := libsystem.Check(os.Getpid(), "", libsystem.FilterNone, "")
	switch {
	case err != nil:
		return fmt.Errorf("prove sandbox: %w", err)
	case answer != 1:
		return errors.New("prove sandbox: macOS reports that the process has none")
	case plan.Canary == "":
		return nil
	}
	_, err = os.ReadDir(plan.Canary)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil
	case err == nil:
		return fmt.Errorf("prove sandbox: %s can still be listed", plan.Canary)
	}
	return fmt.Errorf("prove sandbox: %w", err)
}

// kernelFiles implements Files by system calls.
type kernelFiles struct{}

func (kernelFiles) Real(name string) (Real, error) {
	real, err := libsystem.RealPath(name)
	if err != nil {
		return Real{}, err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return Real{}, err
	}
	return Real{Path: real, Dir: info.IsDir()}, nil
}

func (kernelFiles) Follow(name string) (string, error) {
	followed, err := filepath.EvalSymlinks(name)
	if err != nil {
		return "", err
	}
	return libsystem.RealPath(followed)
}

// ownTerminal returns the path of the terminal among the standard streams;
// empty if none is a terminal. A terminal's number is its device's.
func ownTerminal() string {
	for fd := range 3 {
		var stat, named unix.Stat_t
		if _, err := unix.IoctlGetTermios(fd, unix.TIOCGETA); err != nil || unix.Fstat(fd, &stat) != nil {
			continue
		}
		name := fmt.Sprintf("/dev/ttys%03d", unix.Minor(uint64(stat.Rdev)))
		if unix.Stat(name, &named) == nil && named.Rdev == stat.Rdev {
			return name
		}
	}
	return ""
}

// unheld are the keys that do not hold although the protections do not say so.
func unheld(p Scene) []string {
	if p.Requested.Localhost {
		return []string{"localhost"}
	}
	return nil
}
