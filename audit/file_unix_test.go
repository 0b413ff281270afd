//go:build unix

package audit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestTrail_IsBounded(t *testing.T) {
	t.Parallel()
	dir := trailDir(t)
	trail := &Trail{maxFile: smallFile}
	for i := range 500 {
		if err := trail.Record(policy.Audit{Dir: dir, Required: true}, Event{
			Event: Spawn, Session: fmt.Sprint(i), Argv: []string{strings.Repeat("x", 200)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	trail.Close(time.Minute)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() > smallFile {
			t.Errorf("%s: %v, %d bytes", file.Name(), info.Mode(), info.Size())
		}
	}
	if len(files) != maxOlder+2 { // with the current one and the lock
		t.Errorf("%d files", len(files))
	}
	list, _ := sessions(t, dir)
	if len(list) == 0 || list[len(list)-1] != "499" || !slices.IsSortedFunc(list, func(a, b string) int {
		return len(a) - len(b)
	}) {
		t.Errorf("%q", list)
	}
}

// A line that a writer could not finish stays alone. Read reports it.
func TestTrail_ATornLineSpoilsNoOther(t *testing.T) {
	t.Parallel()
	dir := trailDir(t)
	record(t, dir, "before")
	file, err := os.OpenFile(filepath.Join(dir, current), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = file.WriteString(`{"v":1,"event":"spawn","session":"to`)
		file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if list, torn := sessions(t, dir); torn != 1 || !slices.Equal(list, []string{"before"}) {
		t.Errorf("at the end: %q, %d torn", list, torn)
	}
	record(t, dir, "after")
	if list, torn := sessions(t, dir); torn != 1 || !slices.Equal(list, []string{"before", "after"}) {
		t.Errorf("in the middle: %q, %d torn", list, torn)
	}
}

// TestTrail_FollowsNothing tries what may be in the place of the file and of its
// directory.
func TestTrail_FollowsNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir, elsewhere string) error{
		"symlink": func(dir, elsewhere string) error { return os.Symlink(elsewhere, filepath.Join(dir, current)) },
		"hard link": func(dir, elsewhere string) error {
			return errors.Join(os.WriteFile(elsewhere, nil, 0o600), os.Link(elsewhere, filepath.Join(dir, current)))
		},
		"readable by others": func(dir, _ string) error {
			path := filepath.Join(dir, current)
			return errors.Join(os.WriteFile(path, nil, 0o644), os.Chmod(path, 0o644)) // whatever the umask
		},
		"FIFO": func(dir, _ string) error {
			return exec.Command("mkfifo", "-m", "600", filepath.Join(dir, current)).Run()
		},
		"symlink as lock": func(dir, elsewhere string) error {
			return os.Symlink(elsewhere, filepath.Join(dir, lockName))
		},
		"symlink as directory": func(dir, elsewhere string) error {
			return errors.Join(os.Remove(dir), os.Mkdir(elsewhere, 0o700), os.Symlink(elsewhere, dir))
		},
		"directory of others": func(dir, _ string) error { return os.Chmod(dir, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, elsewhere := trailDir(t), filepath.Join(t.TempDir(), "elsewhere")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir, elsewhere); err != nil {
				t.Fatal(err)
			}
			trail := &Trail{}
			defer trail.Close(time.Minute)
			err := trail.Record(policy.Audit{Dir: dir, Required: true}, Event{Event: Spawn, Session: "x"})
			if !errors.Is(err, ErrLost) {
				t.Errorf("it is written: %v", err)
			}
			if data, err := os.ReadFile(elsewhere); err == nil && len(data) > 0 {
				t.Errorf("elsewhere: %q", data)
			}
		})
	}
}

// A lock that somebody holds does not keep the helper of a remote file system.
func TestTrail_WaitsForALockOnlySoLong(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	holder, err := openDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.close()
	release, err := holder.hold(unix.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	d.patience = 20 * time.Millisecond
	if err := d.write([]byte("lost\n")); !errors.Is(err, errHeld) {
		t.Errorf("while the lock is held: %v", err)
	}
	release()
	if _, err := appendLine(dir, []byte("written\n")); err != nil {
		t.Errorf("when it is free: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, current)); string(got) != "written\n" {
		t.Errorf("the file has %q, %v", got, err)
	}
}
