package denials

import (
	"fmt"
	"path"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	o := New(Options{Policy: &policy.Policy{
		Rules: []policy.Rule{
			{Path: "/rw", Access: policy.ReadWrite},
			{Path: "/ro", Access: policy.Read},
			{Path: "/x", Access: policy.Read | policy.Execute},
			{Path: "/one/file", Access: policy.ReadWrite},
		},
		Protected: []policy.Protected{{Path: "/rw/.git/hooks"}, {Path: "/rw/.envrc"}},
	}})
	const file, dir, link, nothing = unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK, 0
	const r, w, c, d, x = platform.RefusedRead, platform.RefusedWrite, platform.RefusedCreate, platform.RefusedRemove,
		platform.RefusedExecute
	for _, test := range []struct {
		deed  deed
		flags openFlags
		path  string
		kind  uint32
		want  platform.Refused
	}{
		{opening, unix.O_RDONLY, "/rw/a", file, ""},
		{opening, unix.O_RDONLY, "/ro/a", file, ""},
		{opening, unix.O_RDONLY, "/out/a", file, r},
		{opening, unix.O_RDONLY, "/out", dir, r},
		{opening, unix.O_RDONLY, "/out/a", nothing, ""},
		{opening, unix.O_RDONLY | unix.O_DIRECTORY, "/out/a", file, ""},
		{opening, unix.O_RDONLY | unix.O_NOFOLLOW, "/out/a", link, ""},
		{opening, unix.O_WRONLY, "/rw/a", file, ""},
		{opening, unix.O_WRONLY, "/ro/a", file, w},
		{opening, unix.O_RDWR, "/out/a", file, w},
		{opening, unix.O_RDONLY | unix.O_TRUNC, "/ro/a", file, w},
		{opening, unix.O_WRONLY, "/out", dir, ""},
		{opening, unix.O_WRONLY | unix.O_CREAT, "/ro/a", nothing, c},
		{opening, unix.O_WRONLY | unix.O_CREAT, "/ro/a", file, w},
		{opening, unix.O_RDONLY | unix.O_CREAT, "/ro/a", file, ""},
		{opening, unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, "/ro/a", file, ""},
		{opening, unix.O_WRONLY | unix.O_CREAT, "/rw/a", nothing, ""},
		{opening, unix.O_WRONLY, "/rw/.git/hooks/a", file, w},
		{opening, unix.O_WRONLY | unix.O_CREAT, "/rw/.git/hooks/a", nothing, c},
		{opening, unix.O_WRONLY | unix.O_TMPFILE, "/ro", dir, c},
		{opening, unix.O_WRONLY | unix.O_TMPFILE, "/rw", dir, ""},
		{opening, unix.O_WRONLY, "/one/file", file, ""},
		{opening, unix.O_RDWR, "/dev/pts/3", unix.S_IFCHR, ""},
		{making, 0, "/rw/a", nothing, ""},
		{making, 0, "/ro/a", nothing, c},
		{making, 0, "/ro/a", dir, ""},
		{placing, 0, "/ro/a", nothing, c},
		{placing, 0, "/ro/a", file, c},
		{placing, 0, "/rw/a", file, ""},
		{placing, 0, "/rw/.envrc", file, c},
		{removing, 0, "/rw/a", file, ""},
		{removing, 0, "/ro/a", file, d},
		{removing, 0, "/ro/a", nothing, ""},
		{removing, 0, "/one/file", file, d},
		{removing, 0, "/rw/.envrc", file, d},
		{cutting, 0, "/ro/a", file, w},
		{cutting, 0, "/rw/a", file, ""},
		{cutting, 0, "/ro/a", nothing, ""},
		{executing, 0, "/x/a", file, ""},
		{executing, 0, "/ro/a", file, x},
		{executing, 0, "/ro", dir, ""},
		{executing, 0, "/ro/a", nothing, ""},
	} {
		there := &place{path: test.path, fd: -1, mode: test.kind, parentPath: path.Dir(test.path)}
		if test.kind != nothing {
			there.fd = 0 // only whether there is one counts
		}
		access, refused := o.decide(want(test.deed, test.flags), there)
		if !refused {
			access = ""
		}
		if access != test.want {
			t.Errorf("%s: got %q, want %q", fmt.Sprintf("deed %d with %#x on %s (%#o)", test.deed, test.flags, test.path,
				test.kind), access, test.want)
		}
	}
}
