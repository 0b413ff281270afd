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
		op    operation
		flags openFlags
		path  string
		kind  uint32
		want  platform.Refused
	}{
		{opOpen, unix.O_RDONLY, "/rw/a", file, ""},
		{opOpen, unix.O_RDONLY, "/ro/a", file, ""},
		{opOpen, unix.O_RDONLY, "/out/a", file, r},
		{opOpen, unix.O_RDONLY, "/out", dir, r},
		{opOpen, unix.O_RDONLY, "/out/a", nothing, ""},
		{opOpen, unix.O_RDONLY | unix.O_DIRECTORY, "/out/a", file, ""},
		{opOpen, unix.O_RDONLY | unix.O_NOFOLLOW, "/out/a", link, ""},
		{opOpen, unix.O_WRONLY, "/rw/a", file, ""},
		{opOpen, unix.O_WRONLY, "/ro/a", file, w},
		{opOpen, unix.O_RDWR, "/out/a", file, w},
		{opOpen, unix.O_RDONLY | unix.O_TRUNC, "/ro/a", file, w},
		{opOpen, unix.O_WRONLY, "/out", dir, ""},
		{opOpen, unix.O_WRONLY | unix.O_CREAT, "/ro/a", nothing, c},
		{opOpen, unix.O_WRONLY | unix.O_CREAT, "/ro/a", file, w},
		{opOpen, unix.O_RDONLY | unix.O_CREAT, "/ro/a", file, ""},
		{opOpen, unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, "/ro/a", file, ""},
		{opOpen, unix.O_WRONLY | unix.O_CREAT, "/rw/a", nothing, ""},
		{opOpen, unix.O_WRONLY, "/rw/.git/hooks/a", file, w},
		{opOpen, unix.O_WRONLY | unix.O_CREAT, "/rw/.git/hooks/a", nothing, c},
		{opOpen, unix.O_WRONLY | unix.O_TMPFILE, "/ro", dir, c},
		{opOpen, unix.O_WRONLY | unix.O_TMPFILE, "/rw", dir, ""},
		{opOpen, unix.O_WRONLY, "/one/file", file, ""},
		{opOpen, unix.O_RDWR, "/dev/pts/3", unix.S_IFCHR, ""},
		{opCreate, 0, "/rw/a", nothing, ""},
		{opCreate, 0, "/ro/a", nothing, c},
		{opCreate, 0, "/ro/a", dir, ""},
		{opLink, 0, "/ro/a", nothing, c},
		{opLink, 0, "/ro/a", file, c},
		{opLink, 0, "/rw/a", file, ""},
		{opLink, 0, "/rw/.envrc", file, c},
		{opRemove, 0, "/rw/a", file, ""},
		{opRemove, 0, "/ro/a", file, d},
		{opRemove, 0, "/ro/a", nothing, ""},
		{opRemove, 0, "/one/file", file, d},
		{opRemove, 0, "/rw/.envrc", file, d},
		{opTruncate, 0, "/ro/a", file, w},
		{opTruncate, 0, "/rw/a", file, ""},
		{opTruncate, 0, "/ro/a", nothing, ""},
		{opExecute, 0, "/x/a", file, ""},
		{opExecute, 0, "/ro/a", file, x},
		{opExecute, 0, "/ro", dir, ""},
		{opExecute, 0, "/ro/a", nothing, ""},
	} {
		loc := &location{path: test.path, fd: -1, mode: test.kind, parentPath: path.Dir(test.path)}
		if test.kind != nothing {
			loc.fd = 0 // only whether there is one counts
		}
		access, refused := o.decide(newRequest(test.op, test.flags), loc)
		if !refused {
			access = ""
		}
		if access != test.want {
			t.Errorf("%s: got %q, want %q", fmt.Sprintf("op %d with %#x on %s (%#o)", test.op, test.flags, test.path,
				test.kind), access, test.want)
		}
	}
}
