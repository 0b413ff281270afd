package settings

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A file system that is mounted over a repository in a project counts at once,
// and so does its end. No watch and no time of a file tells of either.
func TestRecall_NoticesAMount(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "the test runs as an ordinary user")
	}
	d := newFixture(t)
	d.write(d.own, enabled)
	repository := filepath.Join(d.project, "vendored")
	makeRepository(t, d.project)
	makeRepository(t, repository)
	d.open(nil)
	protects := func() int { return len(d.checkRecall().Policy.Protected) }
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and it ends with its mounts
		if err = unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return
		}
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		before := protects()
		err = errors.Join(err, unix.Mount("tmpfs", repository, "tmpfs", 0, ""))
		over := protects()
		err = errors.Join(err, unix.Unmount(repository, 0))
		if after := protects(); before <= over || after != before {
			t.Errorf("%d paths are protected before, %d while it is mounted, %d after", before, over, after)
		}
	}()
	<-done
	if err != nil {
		harness.Skip(t, "root", err.Error())
	}
}
