//go:build linux

package denials

import (
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A look that once found a path harmless is not believed when the same path leads elsewhere.
func TestWhatIsMovedIsLookedAtAnew(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.outside("file"), "content\n")
	tries := map[string]string{
		"a symlink that is replaced": `mkdir a; echo own >a/file; ln -s a link; cat link/file; echo own >>link/file; cat link/file
			ln -s "$1" next; mv -T next link; cat link/file; echo x >>link/file`,
		"a directory that becomes a symlink": `mkdir mod; echo own >mod/file; cat mod/file; echo own >>mod/file
			rm -r mod; ln -s "$1" mod; cat mod/file; echo x >>mod/file`,
		"a directory that is renamed": `mkdir b; echo own >b/file; ln -s "$1" c; cat b/file; echo own >>b/file
			mv b d; mv c b; cat b/file; echo x >>b/file`,
	}
	if os.Geteuid() == 0 {
		tries["a process with another root directory"] = `mkdir -p "jail$1"; echo own >"jail$1/file"
			"$2" chroot jail then open-often "$1/file" 2 || exit 3; cat "$1/file"; echo x >>"$1/file"`
	}
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	for name, script := range tries {
		session, status, told := e.tool("sh", "-c", script, "sh", s.Outside, s.victim)
		_, reads := find(told, "read", s.outside("file"))
		_, writes := find(told, "write", s.outside("file"))
		if status == 0 || status == 3 || reads != 1 || writes != 1 || len(told) != 2 {
			t.Errorf("%s: status %d, told %+v\n%s", name, status, told, session.Output())
		}
	}
	if content, err := os.ReadFile(s.outside("file")); err != nil || string(content) != "content\n" {
		t.Errorf("the file outside holds %q, %v", content, err)
	}
}
