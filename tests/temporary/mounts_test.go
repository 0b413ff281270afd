//go:build linux

package temporary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// share makes a directory a mount whose mounts appear in sessions, too. On most
// machines every mount is shared, but not in most containers.
func share(t *testing.T, dir string) {
	t.Helper()
	harness.Must(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	harness.Must(t, unix.Mount("", dir, "", unix.MS_SHARED, ""))
}

// A hidden path may lie on another file system than the project.
func TestHiddenPaths_OnAnotherFileSystem(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	dir, err := os.MkdirTemp("/dev/shm", "sidecar-hidden-")
	harness.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	harness.Write(t, dir+"/secret", "secret\n")
	harness.Write(t, dir+"/keys/a", "secret\n")
	harness.Write(t, dir+"/file", "seen\n")
	w := harness.NewWorld(t)
	harness.Must(t, os.Symlink(dir, w.ProjectPath("link")))
	e := start(t, w, harness.Sandbox{
		"additional_read_write_paths": []string{dir}, "hidden_paths": []string{dir + "/secret", "link/keys"},
	})
	if got := must(t, e, "cat "+dir+"/file"); got != "seen\n" {
		t.Errorf("its neighbour: %q", got)
	}
	for _, path := range []string{dir + "/secret", dir + "/keys/a", "link/secret", "link/keys/a"} {
		mustNotRead(t, e, path)
	}
}

// A file system that is mounted outside while a session runs is seen inside as
// far as it is granted. It can be unmounted all the same.
func TestTheFileTree_MountsOutside(t *testing.T) {
	t.Parallel()
	harness.Require(t, "file_tree")
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root mounts outside")
	}
	w := harness.NewWorldOutsideDefaults(t)
	granted, outside := w.ProjectPath("disk"), filepath.Join(w.Outside, "disk")
	for _, dir := range []string{granted, outside} {
		harness.MakeDir(t, dir)
		share(t, filepath.Dir(dir))
	}
	e := start(t, w, nil)
	session := e.Shell()
	try := func(step string) string {
		before := len(session.Output())
		session.Type("cat disk/file; cat " + outside + "/file; echo x >" + outside +
			"/new; echo $((6 * 7))" + step + "\n")
		session.Await("42" + step)
		return session.Output()[before:]
	}
	if got := try("before"); strings.Contains(got, "\ncontent") {
		t.Errorf("control: nothing is mounted: %s", got)
	}
	for _, dir := range []string{granted, outside} {
		harness.Must(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		harness.Write(t, dir+"/file", "content of "+filepath.Base(filepath.Dir(dir))+"\n")
	}
	got := try("mounted")
	if !strings.Contains(got, "\ncontent of project") || strings.Contains(got, "\ncontent of outside") {
		t.Errorf("mounted: %s", got)
	}
	if harness.Read(t, outside+"/new") != "" {
		t.Error("a session writes a file system outside the grants")
	}
	for _, dir := range []string{granted, outside} {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	}
	if got := try("unmounted"); strings.Contains(got, "\ncontent") {
		t.Errorf("unmounted: %s", got)
	}
}
