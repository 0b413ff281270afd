package stage

import (
	"slices"
	"testing"
)

// headerRights are the rights and scopes of linux/landlock.h, with the ABI
// version that brought each (Documentation/userspace-api/landlock.rst).
var headerRights = struct {
	fs, net, scoped []headerRight
}{
	fs: []headerRight{
		{"LANDLOCK_ACCESS_FS_EXECUTE", 1 << 0, 1},
		{"LANDLOCK_ACCESS_FS_WRITE_FILE", 1 << 1, 1},
		{"LANDLOCK_ACCESS_FS_READ_FILE", 1 << 2, 1},
		{"LANDLOCK_ACCESS_FS_READ_DIR", 1 << 3, 1},
		{"LANDLOCK_ACCESS_FS_REMOVE_DIR", 1 << 4, 1},
		{"LANDLOCK_ACCESS_FS_REMOVE_FILE", 1 << 5, 1},
		{"LANDLOCK_ACCESS_FS_MAKE_CHAR", 1 << 6, 1},
		{"LANDLOCK_ACCESS_FS_MAKE_DIR", 1 << 7, 1},
		{"LANDLOCK_ACCESS_FS_MAKE_REG", 1 << 8, 1},
		{"LANDLOCK_ACCESS_FS_MAKE_SOCK", 1 << 9, 1},
		{"LANDLOCK_ACCESS_FS_MAKE_FIFO", 1 << 10, 1},
		{"LANDLOCK_ACCESS_FS_MAKE_BLOCK", 1 << 11, 1},
		{"LANDLOCK_ACCESS_FS_MAKE_SYM", 1 << 12, 1},
		{"LANDLOCK_ACCESS_FS_REFER", 1 << 13, 2},
		{"LANDLOCK_ACCESS_FS_TRUNCATE", 1 << 14, 3},
		{"LANDLOCK_ACCESS_FS_IOCTL_DEV", 1 << 15, 5},
		{"LANDLOCK_ACCESS_FS_RESOLVE_UNIX", 1 << 16, 9},
	},
	net: []headerRight{
		{"LANDLOCK_ACCESS_NET_BIND_TCP", 1 << 0, 4},
		{"LANDLOCK_ACCESS_NET_CONNECT_TCP", 1 << 1, 4},
	},
	scoped: []headerRight{
		{"LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET", 1 << 0, 6},
		{"LANDLOCK_SCOPE_SIGNAL", 1 << 1, 6},
	},
}

type headerRight struct {
	name string
	bit  uint64
	abi  int
}

// knownBy is the set of those that a kernel with this ABI version knows.
func knownBy(abi int, rights []headerRight) (set uint64) {
	for _, right := range rights {
		if right.abi <= abi {
			set |= right.bit
		}
	}
	return set
}

// The library's sets are compared with the kernel's numbers: a wrong bit in
// either would govern less than it says.
func TestHandled_HasTheBitsOfTheKernelsHeader(t *testing.T) {
	t.Parallel()
	for abi := range 30 {
		fs, scoped := Handled(abi)
		if want := knownBy(abi, headerRights.fs); uint64(fs) != want {
			t.Errorf("ABI %d: %#x, the kernel knows %#x", abi, uint64(fs), want)
		}
		if want := knownBy(abi, headerRights.scoped); uint64(scoped) != want {
			t.Errorf("ABI %d: scopes %#x, the kernel knows %#x", abi, uint64(scoped), want)
		}
	}
}

func TestAccess_HasTheBitsOfTheKernelsHeader(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]struct {
		got  uint64
		want []string
	}{
		"read": {uint64(FSRead), []string{"LANDLOCK_ACCESS_FS_READ_FILE", "LANDLOCK_ACCESS_FS_READ_DIR"}},
		"write": {uint64(FSWrite), []string{
			"LANDLOCK_ACCESS_FS_WRITE_FILE", "LANDLOCK_ACCESS_FS_TRUNCATE", "LANDLOCK_ACCESS_FS_REMOVE_DIR",
			"LANDLOCK_ACCESS_FS_REMOVE_FILE", "LANDLOCK_ACCESS_FS_MAKE_DIR", "LANDLOCK_ACCESS_FS_MAKE_REG",
			"LANDLOCK_ACCESS_FS_MAKE_SOCK", "LANDLOCK_ACCESS_FS_MAKE_FIFO", "LANDLOCK_ACCESS_FS_MAKE_SYM",
			"LANDLOCK_ACCESS_FS_REFER",
		}},
		"execute": {uint64(FSExecute), []string{"LANDLOCK_ACCESS_FS_EXECUTE"}},
		"device":  {uint64(fsDevice), []string{"LANDLOCK_ACCESS_FS_IOCTL_DEV"}},
		"connect": {uint64(FSConnect), []string{"LANDLOCK_ACCESS_FS_RESOLVE_UNIX"}},
		"file": {uint64(fsFile), []string{
			"LANDLOCK_ACCESS_FS_EXECUTE", "LANDLOCK_ACCESS_FS_WRITE_FILE", "LANDLOCK_ACCESS_FS_READ_FILE",
			"LANDLOCK_ACCESS_FS_TRUNCATE", "LANDLOCK_ACCESS_FS_IOCTL_DEV", "LANDLOCK_ACCESS_FS_RESOLVE_UNIX",
		}},
		"tcp":     {uint64(netTCP), []string{"LANDLOCK_ACCESS_NET_BIND_TCP", "LANDLOCK_ACCESS_NET_CONNECT_TCP"}},
		"signals": {uint64(ScopeSignal), []string{"LANDLOCK_SCOPE_SIGNAL"}},
	} {
		if want := bits(t, set.want); set.got != want {
			t.Errorf("%s: %#x, in the kernel's header %#x", name, set.got, want)
		}
	}
}

// bits is the set of the rights and scopes with these names.
func bits(t *testing.T, names []string) (set uint64) {
	t.Helper()
	all := slices.Concat(headerRights.fs, headerRights.net, headerRights.scoped)
	for _, name := range names {
		i := slices.IndexFunc(all, func(right headerRight) bool { return right.name == name })
		if i < 0 {
			t.Fatalf("no right %s", name)
		}
		set |= all[i].bit
	}
	return set
}
