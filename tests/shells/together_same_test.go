//go:build linux

package shells

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A new file often gets the number of one that was removed outside. The mount that
// hid or protected that one is gone, so the next command has another sandbox.
func TestTogether_AFileThatTakesANumberIsAnother(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	harness.Require(t, "hidden_paths")
	w := newWorld(t, harness.Defaults(harness.Sandbox{"hidden_paths": []string{"**/.env"}}))
	file := w.ProjectPath(".env")
	harness.Write(t, file, "secret one")
	inode := func() uint64 {
		info, err := os.Lstat(file)
		harness.Must(t, err)
		return info.Sys().(*syscall.Stat_t).Ino
	}
	a := w.agent()
	if out, _ := a.run("cat .env"); strings.Contains(out, "secret") {
		harness.Breach(t, "control: a hidden file is read: %q", out)
	}
	for round := range 8 {
		before := inode()
		harness.Must(t, os.Remove(file))
		harness.Write(t, file, "secret two")
		if out, _ := a.run("cat .env"); strings.Contains(out, "secret") {
			harness.Breach(t, "round %d, the same number %t: a hidden file is read: %q", round, inode() == before, out)
		}
	}
}
