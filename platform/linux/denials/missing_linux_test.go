package denials

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// protecting returns an observer for a protected name that does not exist.
func protecting(t *testing.T, name string) *fixture {
	f := newFixture(t)
	p := *f.options.Policy
	p.Protected = []policy.Protected{{Path: f.top + "/rw/" + name}}
	f.missing = missingNames(p.Protected, &p)
	f.start()
	return f
}

// What cannot be checked as it is written is left to the slow path, which may
// have to refuse it.
func TestFastPath_LeavesWhatItCannotReadToTheSlowPath(t *testing.T) {
	f := protecting(t, ".mcp.json")
	how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Resolve: unix.RESOLVE_IN_ROOT}
	for what, args := range map[string][6]uint64{
		"another root": {uint64(0), page(t, ".mcp.json"), uint64(uintptr(unsafe.Pointer(&how)))},
		"no memory":    {uint64(0), 8, uint64(uintptr(unsafe.Pointer(&how)))},
		"no flags":     {uint64(0), page(t, ".mcp.json"), 8},
	} {
		call := &notify.Call{TID: unix.Gettid(), Args: args}
		if _, readable := f.literalPath(call, "openat2", pathArgs()["openat2"][0]); readable {
			t.Errorf("%s: the fast path has let it continue", what)
		}
	}
}

// A path in memory of memfd_secret(2) is one that the kernel can read and the
// observer cannot.
func TestCreation_SaysThatThePathCannotBeRead(t *testing.T) {
	f := protecting(t, ".mcp.json")
	fd, _, errno := unix.Syscall(unix.SYS_MEMFD_SECRET, 0, 0, 0)
	if errno != 0 {
		t.Skipf("memfd_secret: %v", errno)
	}
	defer unix.Close(int(fd))
	if err := unix.Ftruncate(int(fd), int64(os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(int(fd), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Skipf("map secret memory: %v", err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	copy(memory, ".mcp.json\x00")
	call := &notify.Call{TID: unix.Gettid()}
	call.Args[1], call.Args[2] = uint64(uintptr(unsafe.Pointer(&memory[0]))), unix.O_CREAT|unix.O_WRONLY
	if _, ok, err := f.creation(call, "openat", pathArgs()["openat"][0]); ok || err == nil {
		t.Errorf("it was read (%t), %v", ok, err)
	}
	call.Args[2] = unix.O_RDONLY
	if _, ok, err := f.creation(call, "openat", pathArgs()["openat"][0]); ok || err != nil {
		t.Errorf("an open that creates nothing: %t, %v", ok, err)
	}
}

func TestCreation_ALinkMayPutADirectoryThere(t *testing.T) {
	f := protecting(t, ".cargo/config.toml")
	for call, want := range map[string]bool{
		"link": true, "linkat": true, "symlinkat": true, "rename": true, "mkdir": false,
	} {
		list := pathArgs()[call]
		u := list[len(list)-1]
		c := &notify.Call{TID: unix.Gettid()}
		c.Args[u.path] = page(t, ".cargo")
		if made, ok, err := f.creation(c, call, u); !ok || err != nil || made.way != want {
			t.Errorf("%s: %t, %v, way %t", call, ok, err, made.way)
		}
	}
}

// A symlink on the way is no mount, so the session could replace it.
func TestMissingNames_SymlinksAreWays(t *testing.T) {
	f := newFixture(t)
	f.link("dir", "rw/link")
	list := []policy.Protected{
		{Path: f.top + "/rw/link/new"}, {Path: f.top + "/rw/dir/new"}, {Path: f.top + "/rw/none/new"},
	}
	m := missingNames(list, f.options.Policy)
	if len(m.ways) != 2 || m.ways["link"] == nil || m.ways["none"] == nil {
		t.Errorf("ways: %v", m.ways)
	}
}

// A file in the place of a directory can be removed, and then a protected name
// can be created below it.
func TestMissing_WhatIsBelowAFileIsMissing(t *testing.T) {
	f := newFixture(t)
	f.link("loop", "rw/loop")
	p := *f.options.Policy
	p.Protected = []policy.Protected{
		{Path: f.top + "/rw/file/new"}, {Path: f.top + "/rw/loop/new"}, {Path: f.top + "/rw/dir/file"},
	}
	list := Missing(&p)
	if len(list) != 2 || list[0] != p.Protected[0] || list[1] != p.Protected[1] {
		t.Errorf("missing: %v", list)
	}
	if m := missingNames(list, &p); len(m.ways) != 2 || m.ways["file"] == nil || m.ways["loop"] == nil {
		t.Errorf("ways: %v", m.ways)
	}
}

// A creation that cannot be followed is refused: if nobody knows which name it
// creates, and if nobody knows which directory that is.
func TestCreatesMissing_RefusesWhatCannotBeFollowed(t *testing.T) {
	f := protecting(t, ".mcp.json")
	self := &notify.Call{TID: unix.Gettid()}
	gone := &notify.Call{TID: 1 << 30}
	tooLong := f.top + "/rw/" + strings.Repeat("n", unix.PathMax)
	for name, test := range map[string]struct {
		call   *notify.Call
		c      creation
		target bool
		err    error
	}{
		"followed":              {self, creation{text: f.top + "/rw/.mcp.json", follow: true}, true, nil},
		"another name":          {self, creation{text: f.top + "/rw/other", follow: true}, false, nil},
		"nothing there":         {self, creation{text: f.top + "/none/.mcp.json", follow: true}, false, nil},
		"an unknown directory":  {self, creation{text: tooLong + "/.mcp.json"}, true, nil},
		"a name behind it":      {self, creation{text: tooLong + "/l", follow: true}, false, unix.ENAMETOOLONG},
		"another name there":    {self, creation{text: tooLong + "/l"}, false, nil},
		"a caller that is gone": {gone, creation{dir: unix.AT_FDCWD, text: "dir/.mcp.json"}, false, nil},
	} {
		target, err := f.createsMissing(test.call, f.root, test.c)
		if (target != "") != test.target || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, %v", name, target, err)
		}
	}
	f.Close() // as if no caller had the session's root so far
	c := creation{text: f.top + "/rw/dir/.mcp.json", follow: true}
	if target, err := f.createsMissing(self, f.root, c); target == "" || err != nil {
		t.Errorf("without the session's root: %q, %v", target, err)
	}
}
