package fsguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestReadPlain_ReadsRegularFilesWithoutSymlinks(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	harness.Must(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	harness.Write(t, at("d/file"), "text")
	harness.Must(t, errors.Join(os.Symlink("d", at("way")), os.Symlink("d/file", at("link")),
		unix.Mkfifo(at("fifo"), 0o600)))
	for name, want := range map[string]error{
		"d/file": nil, "way/file": unix.ELOOP, "link": unix.ELOOP, "fifo": errNotRegular, "d": errNotRegular,
		"none": fs.ErrNotExist,
	} {
		data, err := ReadPlain(at(name), 10)
		if !errors.Is(err, want) || (err == nil) != (string(data) == "text") {
			t.Errorf("%s: %q, %v, want %v", name, data, err, want)
		}
	}
	if data, err := ReadPlain(at("d/file"), 2); err != nil || string(data) != "tex" {
		t.Errorf("two bytes at most, and one more: %q, %v", data, err)
	}
}

// A file that was allowed by its real path is the one that is read, also if its name
// or that of a directory above changes meanwhile.
func TestReadPlain_IsNotMovedToAnotherFile(t *testing.T) {
	t.Parallel()
	rounds, _ := harness.Generated(t, 200, 13)
	for _, moved := range []string{"d/file", "d"} {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		harness.Must(t, err)
		at := func(name string) string { return filepath.Join(dir, name) }
		harness.Write(t, at("d/file"), "allowed")
		harness.Write(t, at("secret/file"), "secret")
		harness.Must(t, os.Symlink(at("secret")+moved[1:], at("other")))
		exchange := func() error {
			return unix.Renameat2(unix.AT_FDCWD, at(moved), unix.AT_FDCWD, at("other"), unix.RENAME_EXCHANGE)
		}
		harness.Must(t, exchange())
		if read, err := ReadFile(at("d/file"), 10); err != nil || string(read.Data) != "secret" {
			t.Fatalf("who follows the link reads %q, %v", read.Data, err)
		}
		harness.Must(t, exchange())
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
			switch data, err := ReadPlain(at("d/file"), 10); {
			case err != nil && !errors.Is(err, unix.ELOOP):
				t.Errorf("%v", err)
			case err == nil && string(data) != "allowed":
				harness.Breach(t, "%s was moved to %q", moved, data)
			}
		}
		close(stop)
		harness.Must(t, <-stopped)
	}
}
