package seccomp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// onOwnThread runs a function that changes its thread for good, on a thread
// that ends with it.
func onOwnThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread with the goroutine
		done <- do()
	}()
	return <-done
}

func TestFilter_IsInForceIfItsCanariesSaySo(t *testing.T) {
	t.Parallel()
	if err := Available(); err != nil {
		harness.Skip(t, "seccomp", err.Error())
	}
	for _, offline := range []bool{false, true} {
		filtering := Filtering{Offline: offline}
		if err := Prove(filtering); err == nil {
			t.Error("the canaries prove a filter that is not installed")
		}
		err := onOwnThread(func() error {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return err
			}
			if _, err := Install(compiledFilter(t, filtering), filtering); err != nil {
				return err
			}
			if err := Prove(filtering); err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			if refused := errors.Is(err, unix.EACCES); refused != offline {
				return fmt.Errorf("a network socket: %w", err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("offline %t: %v", offline, err)
		}
	}
}

// The filter of a session with network does not pass as one of a session
// without.
func TestFilter_CanariesTellOnlineFromOffline(t *testing.T) {
	t.Parallel()
	if err := Available(); err != nil {
		harness.Skip(t, "seccomp", err.Error())
	}
	err := onOwnThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		if _, err := Install(compiledFilter(t, Filtering{}), Filtering{}); err != nil {
			return err
		}
		return Prove(Filtering{Offline: true})
	})
	if err == nil {
		t.Error("the canaries prove that the network is off, but it is on")
	}
}

// Every call is refused that empties a file without a right that Landlock
// governs in all its versions. Calls that need such a right are not refused.
func TestTruncationFilter_LeavesOnlyWhatLandlockSees(t *testing.T) {
	t.Parallel()
	if err := Available(); err != nil {
		harness.Skip(t, "seccomp", err.Error())
	}
	path := filepath.Join(t.TempDir(), "file")
	open := func(flags int) func() error {
		return func() error {
			fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}
	}
	acts := []struct {
		name    string
		do      func() error
		empties bool // without the filter
		answer  error
	}{
		{"truncate", func() error { return unix.Truncate(path, 0) }, true, unix.EACCES},
		{"open for reading", open(unix.O_RDONLY | unix.O_TRUNC), true, unix.EACCES},
		{"open for neither", open(unix.O_ACCMODE | unix.O_TRUNC), true, unix.EACCES},
		{"openat2", func() error {
			fd, err := unix.Openat2(unix.AT_FDCWD, path,
				&unix.OpenHow{Flags: unix.O_RDONLY | unix.O_TRUNC | unix.O_CLOEXEC})
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}, true, unix.ENOSYS},
		{"only read", open(unix.O_RDONLY), false, nil},
		{"only write", open(unix.O_WRONLY), false, nil},
		{"open for writing", open(unix.O_WRONLY | unix.O_TRUNC), true, nil},
		{"open for both", open(unix.O_RDWR | unix.O_TRUNC), true, nil},
		{"create", func() error {
			fd, err := unix.Creat(path, 0o600)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}, true, nil},
	}
	play := func(filtered bool) error {
		for _, act := range acts {
			if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
				return err
			}
			err := act.do()
			left, readErr := os.ReadFile(path)
			if readErr != nil {
				return readErr
			}
			answer, empty := act.answer, act.empties && act.answer == nil
			if !filtered {
				answer, empty = nil, act.empties
			}
			if !errors.Is(err, answer) || empty != (len(left) == 0) {
				return fmt.Errorf("%s, filtered %t: got %w, and %q is left", act.name, filtered, err, left)
			}
		}
		return nil
	}
	if err := play(false); err != nil {
		t.Fatalf("control: %v", err)
	}
	err := onOwnThread(func() error {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		if err := InstallTruncation(); err != nil {
			return err
		}
		return play(true)
	})
	if err != nil {
		t.Error(err)
	}
}

func compiledFilter(t testing.TB, filtering Filtering) []byte {
	t.Helper()
	code, err := ForThisMachine(filtering)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// The kernel runs the program for every call number when it is installed, so
// that the order of its comparisons is a part of every start.
func BenchmarkInstall(b *testing.B) {
	code, err := ForThisMachine(Filtering{Sockets: true, Observed: ObservedNamed})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		err := onOwnThread(func() error {
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return err
			}
			listener, err := Install(code, Filtering{Sockets: true, Observed: ObservedNamed})
			if err == nil && listener >= 0 {
				unix.Close(listener)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
