//go:build linux

package stories

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The disk of the home directory and of the project is full. The command runs,
// and the screen says what does not work, and why.
func TestTheDiskIsFull(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "unshare", "mount")
	u := newUser(t, "")
	screen, status := u.types(t, `mkdir ~/.local
unshare --map-root-user --mount bash -c '
	mount -t tmpfs -o size=64k tmpfs ~/.local && mount -t tmpfs -o size=64k tmpfs "$PWD" || exit 99
	cd "$PWD" && mkdir -p ~/.local/state/sandbox-sidecar
	for dir in ~/.local "$PWD"; do head -c 70000 /dev/zero >"$dir/fill"; done 2>/dev/null
	sandbox-sidecar exec -- sh -c "echo ran; echo text >file"'`)
	if status == "99" || strings.Contains(screen, "unshare: ") {
		harness.Skip(t, "user_namespaces", screen)
	}
	sees(t, screen, `warning: the state directory cannot be used: after a crash, processes may be left: .* no space left on device
ran
!level=
!refused`)
	if status == "0" {
		t.Errorf("the program could not write, and its exit status is 0:\n%s", screen)
	}
}
