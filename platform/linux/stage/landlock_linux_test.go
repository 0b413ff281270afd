package stage

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A rule for a socket that was checked is for no other, however often the path
// changes in between.
func TestRule_IsForTheFileThatWasChecked(t *testing.T) {
	t.Parallel()
	rounds, _ := harness.Generated(t, 200, 12)
	dir, err := filepath.EvalSymlinks(harness.ShortDir(t))
	harness.Must(t, err)
	granted, other := filepath.Join(dir, "granted"), filepath.Join(dir, "other")
	for _, path := range []string{granted, other} {
		listener, err := net.Listen("unix", path)
		harness.Must(t, err)
		defer listener.Close()
	}
	exchange := func() error {
		return unix.Renameat2(unix.AT_FDCWD, granted, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
	}
	free := Rule{Path: handshake.RawString(granted), Access: FSConnect}
	first, err := opened(free)
	harness.Must(t, err)
	bound := free
	bound.Checked = &first
	if found, err := opened(bound); err != nil || found != first {
		t.Fatalf("the socket that was checked: %+v, %v", found, err)
	}
	harness.Must(t, exchange())
	if found, err := opened(free); err != nil || found == first {
		t.Fatalf("without the check the other one is granted: %+v, %v", found, err)
	}
	if found, err := opened(bound); !errors.Is(err, errAnother) || !unreachable(err) {
		t.Fatalf("the other socket: %+v, %v", found, err)
	}

	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := exchange(); err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range rounds {
		switch found, err := opened(bound); {
		case err == nil && found != first:
			harness.Breach(t, "a rule for %+v is for %+v", first, found)
		case err != nil && !errors.Is(err, errAnother):
			t.Errorf("%v", err)
		}
	}
	close(stop)
	harness.Must(t, <-stopped)
}

func TestWhyMissing_IsPlainEnglish(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		unix.ENOENT:  "it was not there at the start",
		unix.ENOTDIR: "it was not there at the start",
		unix.ELOOP:   "a symlink was on the way to it",
		unix.EACCES:  "this user may not pass the directories above it",
		errAnother:   "another file was there than the one that was checked",
	} {
		if got := WhyMissing(fmt.Errorf("open: %w", err)); got != want && got != "open: "+want {
			t.Errorf("%v: %q", err, got)
		}
		if !unreachable(err) {
			t.Errorf("%v ends the session", err)
		}
	}
	if unreachable(unix.EIO) {
		t.Error("a fault of the disk counts as a path that is not there")
	}
}

// opened is the file that a rule is for.
func opened(r Rule) (Identity, error) {
	fd, err := r.open()
	if err != nil {
		return Identity{}, err
	}
	defer unix.Close(fd)
	return IdentityOf(fd)
}
