package seccomp

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/golden"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

var updateFilters = flag.Bool("update", false, "rewrite the golden files of the filters")

// kinds are the tested filters. Each part appears alone, and the combinations
// show that parts do not affect each other.
var kinds = func() (all []kind) {
	for _, goarch := range []string{"amd64", "arm64"} {
		for _, filtering := range []Filtering{
			{},
			{Offline: true},
			{Sockets: true},
			{Offline: true, Sockets: true},
			{Observed: ObservedCreations},
			{Observed: ObservedNamed},
			{Observed: ObservedAll, Isolated: true},
			{Observed: ObservedAll, Offline: true, Sockets: true},
			{Priorities: true},
			{Hosts: true},
			{Hosts: true, Sockets: true, Shared: true, Offline: true},
			{Hosts: true, Sockets: true, Shared: true, Offline: true, Observed: ObservedNamed},
		} {
			all = append(all, kind{goarch, filtering})
		}
	}
	return all
}()

type kind struct {
	goarch string
	Filtering
}

// String is the name of the golden file.
func (k kind) String() string {
	name := k.goarch
	for _, part := range []struct {
		is   bool
		name string
	}{
		{k.Offline, "-offline"},
		{k.Sockets, "-sockets"},
		{k.Observed == ObservedCreations, "-creations"},
		{k.Observed == ObservedNamed, "-some"},
		{k.Observed == ObservedAll, "-all"},
		{k.Isolated, "-isolated"},
		{k.Priorities, "-priorities"},
		{k.Hosts, "-hosts"},
		{k.Shared, "-shared"},
	} {
		if part.is {
			name += part.name
		}
	}
	return name
}

func filter(t testing.TB, goarch string, filtering Filtering) Program {
	t.Helper()
	program, err := Filter(goarch, filtering)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestFilter_Golden(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		compareGolden(t, kind.String(), filter(t, kind.goarch, kind.Filtering).String())
	}
}

func TestFilter_GoldenOfAdditionalFilters(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(string) (Program, error){"truncation": TruncationFilter, "ipc": IPCFilter} {
		for _, goarch := range []string{"amd64", "arm64"} {
			program, err := make(goarch)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, goarch+"-"+name, program.String())
		}
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Compare(t, *updateFilters, filepath.Join("testdata", "filters", name+".golden"), got)
}

func TestFilter_DoesWhatTheTableSays(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for _, kind := range kinds {
		m, err := machineOf(kind.goarch)
		if err != nil {
			t.Fatal(err)
		}
		program := filter(t, kind.goarch, kind.Filtering)
		model := modelOf(m, kind.Filtering)
		check := func(d seccompData) {
			if got, want := run(t, program, d), model.answer(&d); got != want {
				t.Fatalf("%s: %+v: got %s, want %s", kind, d, got, want)
			}
		}
		audits := []uint32{amd64.audit, arm64.audit, i386.audit, arm.audit, 0, 0x80000016}
		for _, audit := range audits {
			for nr := range int32(700) {
				check(seccompData{nr: nr, arch: audit})
				check(seccompData{nr: nr | x32Bit, arch: audit})
				check(seccompData{nr: -nr, arch: audit})
				for range 8 {
					d := seccompData{nr: nr, arch: audit, ip: random.Uint64()}
					for i := range d.args {
						d.args[i] = value(random)
					}
					check(d)
				}
			}
		}
		for _, call := range []string{"open", "openat"} {
			for _, a := range []*arch{m.native, m.compat} {
				nr := int32(numberOn(a, call))
				for bit := range 33 {
					flags := uint64(1) << bit &^ (1 << 32)
					for _, first := range []uint64{0, 4, 1<<32 - 100, ^uint64(99)} {
						check(seccompData{nr: nr, arch: a.audit, args: [6]uint64{first, flags, flags}})
						for _, space := range []int{12, 31, 32, 39, 47, 48, 63} {
							path := uint64(1)<<space - 4096
							check(seccompData{nr: nr, arch: a.audit, args: [6]uint64{first, path, flags}})
							check(seccompData{nr: nr, arch: a.audit, args: [6]uint64{path, flags}})
						}
					}
				}
			}
		}
		for _, call := range []string{
			"socket", "socketpair", "ioctl", "clone", "unshare", "prlimit64", "connect", "bind",
			"fcntl", "fcntl64", "setpriority", "ioprio_set", "sched_setaffinity", "setsockopt", "sendto", "sendmsg",
		} {
			for _, a := range []*arch{m.native, m.compat} {
				nr := int32(numberOn(a, call))
				for _, first := range interesting {
					for _, second := range interesting {
						for _, third := range []uint64{0, 9, 1 << 32, 1<<32 | 9} {
							check(seccompData{nr: nr, arch: a.audit, args: [6]uint64{first, second, third}})
						}
					}
				}
			}
		}
	}
}

// The most important calls are repeated here by number, so that a fault in the
// tables shows.
func TestFilter_TheCallsThatMatter(t *testing.T) {
	t.Parallel()
	const inherited = 0xabcdef0000000000 // the half of a register that the kernel ignores
	for _, test := range []struct {
		goarch   string
		arch     uint32
		nr       int32
		args     [6]uint64
		on, off  string
		whatItIs string
	}{
		{"amd64", 0xc000003e, 435, [6]uint64{}, "ENOSYS", "ENOSYS", "clone3"},
		{"amd64", 0x40000003, 435, [6]uint64{}, "ENOSYS", "ENOSYS", "clone3 by int 0x80"},
		{"arm64", 0xc00000b7, 435, [6]uint64{}, "ENOSYS", "ENOSYS", "clone3"},
		{"arm64", 0x40000028, 435, [6]uint64{}, "ENOSYS", "ENOSYS", "clone3 of 32 bits"},
		{"amd64", 0xc000003e, 425, [6]uint64{}, "ENOSYS", "ENOSYS", "io_uring_setup"},
		{"amd64", 0x40000003, 427, [6]uint64{}, "ENOSYS", "ENOSYS", "io_uring_register by int 0x80"},
		{"amd64", 0xc000003e, 16, [6]uint64{0, 0x5412}, "EPERM", "EPERM", "TIOCSTI"},
		{"amd64", 0xc000003e, 16, [6]uint64{0, inherited | 0x5412}, "EPERM", "EPERM", "TIOCSTI with a high half"},
		{"amd64", 0x40000003, 54, [6]uint64{0, 0x541c}, "EPERM", "EPERM", "TIOCLINUX by int 0x80"},
		{"arm64", 0xc00000b7, 29, [6]uint64{0, 0x5412}, "EPERM", "EPERM", "TIOCSTI"},
		{"amd64", 0xc000003e, 16, [6]uint64{0, 0x5401}, "allow", "allow", "TCGETS"},
		{"amd64", 0xc000003e, 56, [6]uint64{0x10000011}, "EPERM", "EPERM", "clone with CLONE_NEWUSER"},
		{"amd64", 0x40000003, 120, [6]uint64{0x40000011}, "EPERM", "EPERM", "clone with CLONE_NEWNET by int 0x80"},
		{"amd64", 0xc000003e, 56, [6]uint64{0x8011}, "EPERM", "EPERM", "clone with CLONE_PARENT"},
		{
			"amd64", 0xc000003e, 56,
			[6]uint64{inherited | 0x8011},
			"EPERM", "EPERM",
			"clone with CLONE_PARENT and a high half",
		},
		{"amd64", 0x40000003, 120, [6]uint64{0x8011}, "EPERM", "EPERM", "clone with CLONE_PARENT by int 0x80"},
		{"arm64", 0xc00000b7, 220, [6]uint64{0x8011}, "EPERM", "EPERM", "clone with CLONE_PARENT"},
		{"arm64", 0x40000028, 120, [6]uint64{0x8011}, "EPERM", "EPERM", "clone with CLONE_PARENT of 32 bits"},
		{"amd64", 0xc000003e, 56, [6]uint64{0x01200011}, "allow", "allow", "clone as fork does it"},
		{"amd64", 0xc000003e, 56, [6]uint64{0x3d0f00}, "allow", "allow", "clone of a thread"},
		{"amd64", 0xc000003e, 72, [6]uint64{3, 1024, 0}, "EACCES", "EACCES", "F_SETLEASE"},
		{"amd64", 0xc000003e, 72, [6]uint64{3, inherited | 1024, 1}, "EACCES", "EACCES", "F_SETLEASE with a high half"},
		{"amd64", 0xc000003e, 72, [6]uint64{3, 1040, 0}, "EACCES", "EACCES", "F_SETDELEG"},
		{"amd64", 0xc000003e, 72, [6]uint64{3, 1025}, "allow", "allow", "F_GETLEASE"},
		{"amd64", 0xc000003e, 72, [6]uint64{3, 6}, "allow", "allow", "F_SETLK"},
		{"amd64", 0x40000003, 55, [6]uint64{3, 1024, 0}, "EACCES", "EACCES", "F_SETLEASE by int 0x80"},
		{"amd64", 0x40000003, 221, [6]uint64{3, 1024, 0}, "EACCES", "EACCES", "F_SETLEASE by fcntl64 and int 0x80"},
		{"arm64", 0xc00000b7, 25, [6]uint64{3, 1024, 0}, "EACCES", "EACCES", "F_SETLEASE"},
		{"arm64", 0x40000028, 221, [6]uint64{3, 1040, 0}, "EACCES", "EACCES", "F_SETDELEG of 32 bits"},
		{"amd64", 0xc000003e, 272, [6]uint64{0x10000000}, "EPERM", "EPERM", "unshare with CLONE_NEWUSER"},
		{"amd64", 0xc000003e, 272, [6]uint64{0x600}, "allow", "allow", "unshare of files and directory"},
		{"amd64", 0xc000003e, 272, [6]uint64{1 << 40}, "EPERM", "EPERM", "unshare with a flag of the future"},
		{"arm64", 0xc00000b7, 97, [6]uint64{0x80}, "EPERM", "EPERM", "unshare with CLONE_NEWTIME"},
		{"amd64", 0xc000003e, 101, [6]uint64{}, "allow", "allow", "ptrace"},
		{"amd64", 0xc000003e, 303, [6]uint64{}, "allow", "allow", "name_to_handle_at"},
		{"amd64", 0xc000003e, 304, [6]uint64{}, "EPERM", "EPERM", "open_by_handle_at"},
		{"amd64", 0x40000003, 22, [6]uint64{}, "EPERM", "EPERM", "umount by int 0x80"},
		{"amd64", 0xc000003e, 22, [6]uint64{}, "allow", "allow", "pipe, which has the number of umount elsewhere"},
		{"amd64", 0xc000003e, 41, [6]uint64{1, 1}, "allow", "allow", "AF_UNIX"},
		{"amd64", 0xc000003e, 41, [6]uint64{inherited | 1, 1}, "allow", "allow", "AF_UNIX with a high half"},
		{"amd64", 0xc000003e, 41, [6]uint64{2, 1}, "allow", "EACCES", "TCP"},
		{"amd64", 0xc000003e, 41, [6]uint64{inherited | 2, 2}, "allow", "EACCES", "UDP with a high half"},
		{"amd64", 0xc000003e, 41, [6]uint64{2, 1, 262}, "allow", "EACCES", "MPTCP"},
		{"amd64", 0xc000003e, 41, [6]uint64{2, 0x80000 | 10}, "EAFNOSUPPORT", "EACCES", "AF_PACKET as SOCK_PACKET"},
		{"amd64", 0xc000003e, 41, [6]uint64{10, 3}, "allow", "EACCES", "IPv6, raw"},
		{"amd64", 0xc000003e, 41, [6]uint64{16, 3, 0}, "allow", "EACCES", "NETLINK_ROUTE"},
		{"amd64", 0xc000003e, 41, [6]uint64{16, 3, inherited}, "allow", "EACCES", "NETLINK_ROUTE with a high half"},
		{"amd64", 0xc000003e, 41, [6]uint64{16, 3, 9}, "EPROTONOSUPPORT", "EACCES", "NETLINK_AUDIT"},
		{"amd64", 0xc000003e, 41, [6]uint64{17, 3}, "EAFNOSUPPORT", "EACCES", "AF_PACKET"},
		{"amd64", 0xc000003e, 41, [6]uint64{40, 1}, "EAFNOSUPPORT", "EACCES", "AF_VSOCK"},
		{"amd64", 0xc000003e, 41, [6]uint64{0, 1}, "EAFNOSUPPORT", "EACCES", "AF_UNSPEC"},
		{"arm64", 0xc00000b7, 198, [6]uint64{2, 1}, "allow", "EACCES", "TCP"},
		{"arm64", 0x40000028, 281, [6]uint64{40, 1}, "EAFNOSUPPORT", "EACCES", "AF_VSOCK of 32 bits"},
		{"amd64", 0x40000003, 359, [6]uint64{2, 1}, "allow", "EACCES", "TCP by int 0x80"},
		{"amd64", 0x40000003, 102, [6]uint64{1}, "EACCES", "EACCES", "socketcall"},
		{"amd64", 0xc000003e, 102, [6]uint64{1}, "allow", "allow", "getuid, which has the number of " +
			"socketcall elsewhere"},
		{"amd64", 0xc000003e, 53, [6]uint64{1, 1}, "allow", "allow", "socketpair"},
		{"amd64", 0xc000003e, 53, [6]uint64{30, 1}, "EAFNOSUPPORT", "EAFNOSUPPORT", "socketpair of AF_TIPC"},
		{"amd64", 0xc000003e, 302, [6]uint64{0, 0, 1}, "allow", "allow", "prlimit64 of oneself"},
		{"amd64", 0xc000003e, 302, [6]uint64{
			inherited, 0, 1,
		}, "allow", "allow", "prlimit64 of oneself with a high half"},
		{"amd64", 0xc000003e, 302, [6]uint64{7, 0, 0, 1}, "allow", "allow", "prlimit64 that reads another's"},
		{"amd64", 0xc000003e, 302, [6]uint64{7, 0, 1}, "EPERM", "EPERM", "prlimit64 of another"},
		{"amd64", 0xc000003e, 302, [6]uint64{
			7, 0, 1 << 32,
		}, "EPERM", "EPERM", "prlimit64 of another, by a high address"},
		{"amd64", 0x40000003, 340, [6]uint64{7, 0, 1}, "EPERM", "EPERM", "prlimit64 of another by int 0x80"},
		{"amd64", 0xc000003e, 203, [6]uint64{0, 8, 1}, "allow", "allow", "sched_setaffinity of oneself"},
		{
			"amd64", 0xc000003e, 203,
			[6]uint64{inherited, 8, 1},
			"allow", "allow",
			"sched_setaffinity of oneself with a high half",
		},
		{"amd64", 0xc000003e, 203, [6]uint64{7, 8, 1}, "EPERM", "EPERM", "sched_setaffinity of another"},
		{"amd64", 0x40000003, 241, [6]uint64{7, 8, 1}, "EPERM", "EPERM", "sched_setaffinity of another by int 0x80"},
		{"arm64", 0xc00000b7, 122, [6]uint64{7, 8, 1}, "EPERM", "EPERM", "sched_setaffinity of another"},
		{"amd64", 0xc000003e, 144, [6]uint64{7, 3, 1}, "EPERM", "EPERM", "sched_setscheduler of another"},
		{"amd64", 0xc000003e, 142, [6]uint64{7, 1}, "EPERM", "EPERM", "sched_setparam of another"},
		{"amd64", 0xc000003e, 314, [6]uint64{7, 1}, "EPERM", "EPERM", "sched_setattr of another"},
		{"amd64", 0xc000003e, 141, [6]uint64{0, 0, 7}, "allow", "allow", "setpriority of oneself"},
		{"amd64", 0xc000003e, 141, [6]uint64{1, 0, 7}, "allow", "allow", "setpriority of one's own group"},
		{"amd64", 0xc000003e, 141, [6]uint64{0, 7, 7}, "EPERM", "EPERM", "setpriority of another"},
		{"amd64", 0xc000003e, 141, [6]uint64{1, 7, 7}, "EPERM", "EPERM", "setpriority of another group"},
		{"amd64", 0xc000003e, 141, [6]uint64{2, 0, 7}, "EPERM", "EPERM", "setpriority of the user"},
		{
			"amd64", 0xc000003e, 141,
			[6]uint64{inherited | 2, 1000, 7},
			"EPERM", "EPERM",
			"setpriority of a user with a high half",
		},
		{"amd64", 0xc000003e, 251, [6]uint64{1, 0, 7}, "allow", "allow", "ioprio_set of oneself"},
		{"amd64", 0xc000003e, 251, [6]uint64{1, 7, 7}, "EPERM", "EPERM", "ioprio_set of another"},
		{"amd64", 0xc000003e, 251, [6]uint64{3, 0, 7}, "EPERM", "EPERM", "ioprio_set of the user"},
		{"arm64", 0xc00000b7, 140, [6]uint64{2, 0, 7}, "EPERM", "EPERM", "setpriority of the user"},
		{"arm64", 0xc00000b7, 30, [6]uint64{3, 0, 7}, "EPERM", "EPERM", "ioprio_set of the user"},
		{"arm64", 0x40000028, 97, [6]uint64{0, 7, 7}, "EPERM", "EPERM", "setpriority of another of 32 bits"},
		{"amd64", 0xc000003e, 0x40000000 | 41, [6]uint64{1, 1}, "ENOSYS", "ENOSYS", "x32"},
		{"amd64", 0xc00000b7, 0, [6]uint64{}, "kill process", "kill process", "another architecture"},
		{"arm64", 0xc000003e, 0, [6]uint64{}, "kill process", "kill process", "another architecture"},
	} {
		for offline, want := range map[bool]string{false: test.on, true: test.off} {
			got := run(t, filter(t, test.goarch, Filtering{Offline: offline}),
				seccompData{nr: test.nr, arch: test.arch, args: test.args})
			if got.String() != want {
				t.Errorf("%s, offline %t: %s: got %s, want %s", test.goarch, offline, test.whatItIs, got, want)
			}
		}
	}
}

// The calls that a supervisor is asked about, by number, for each way to make
// them.
func TestFilter_AsksTheSupervisor(t *testing.T) {
	t.Parallel()
	const ask = "ask supervisor"
	supervised := Filtering{Sockets: true, Priorities: true}
	for _, test := range []struct {
		goarch   string
		arch     uint32
		nr       int32
		args     [6]uint64
		with     string
		without  string
		whatItIs string
	}{
		{"amd64", 0xc000003e, 42, [6]uint64{}, ask, "allow", "connect"},
		{"amd64", 0x40000003, 362, [6]uint64{}, ask, "allow", "connect by int 0x80"},
		{"arm64", 0xc00000b7, 203, [6]uint64{}, ask, "allow", "connect"},
		{"arm64", 0x40000028, 283, [6]uint64{}, ask, "allow", "connect of 32 bits"},
		{"amd64", 0xc000003e, 49, [6]uint64{}, ask, "allow", "bind"},
		{"amd64", 0x40000003, 361, [6]uint64{}, ask, "allow", "bind by int 0x80"},
		{"arm64", 0xc00000b7, 200, [6]uint64{}, ask, "allow", "bind"},
		{"arm64", 0x40000028, 282, [6]uint64{}, ask, "allow", "bind of 32 bits"},
		{"amd64", 0xc000003e, 41, [6]uint64{1, 0x80801}, "allow", "allow", "stream socket"},
		{"amd64", 0xc000003e, 41, [6]uint64{1, 5}, "allow", "allow", "packet socket"},
		{"amd64", 0xc000003e, 41, [6]uint64{1, 2}, "EACCES", "allow", "datagram socket"},
		{
			"amd64", 0xc000003e, 41,
			[6]uint64{0xff00000001, 0xff00080002},
			"EACCES", "allow",
			"datagram socket with high halves",
		},
		{"amd64", 0xc000003e, 41, [6]uint64{1, 3}, "EACCES", "allow", "raw socket"},
		{"amd64", 0x40000003, 359, [6]uint64{1, 2}, "EACCES", "allow", "datagram socket by int 0x80"},
		{"amd64", 0xc000003e, 53, [6]uint64{1, 1}, "allow", "allow", "pair of streams"},
		{"amd64", 0xc000003e, 53, [6]uint64{1, 2}, "EACCES", "allow", "pair for datagrams"},
		{"arm64", 0xc00000b7, 199, [6]uint64{1, 3}, "EACCES", "allow", "pair of raw sockets"},
		{"amd64", 0xc000003e, 56, [6]uint64{0x10000011}, "EPERM", "EPERM", "clone with CLONE_NEWUSER"},
		{"amd64", 0xc000003e, 435, [6]uint64{}, "ENOSYS", "ENOSYS", "clone3"},
		{"amd64", 0xc000003e, 302, [6]uint64{7, 0, 1}, ask, "EPERM", "prlimit64 of another"},
		{"amd64", 0xc000003e, 302, [6]uint64{7, 0, 0, 1}, "allow", "allow", "prlimit64 that reads another's"},
		{"amd64", 0xc000003e, 203, [6]uint64{7, 8, 1}, ask, "EPERM", "sched_setaffinity of another"},
		{"amd64", 0xc000003e, 203, [6]uint64{0, 8, 1}, "allow", "allow", "sched_setaffinity of oneself"},
		{"arm64", 0xc00000b7, 274, [6]uint64{7, 1}, ask, "EPERM", "sched_setattr of another"},
		{"amd64", 0xc000003e, 141, [6]uint64{0, 7, 7}, ask, "EPERM", "setpriority of another"},
		{"amd64", 0xc000003e, 141, [6]uint64{2, 7, 7}, "EPERM", "EPERM", "setpriority of a user"},
		{"amd64", 0x40000003, 289, [6]uint64{1, 7, 7}, ask, "EPERM", "ioprio_set of another by int 0x80"},
		{"amd64", 0xc000003e, 251, [6]uint64{3, 7, 7}, "EPERM", "EPERM", "ioprio_set of a user"},
	} {
		for filtering, want := range map[Filtering]string{supervised: test.with, {}: test.without} {
			got := run(t, filter(t, test.goarch, filtering), seccompData{nr: test.nr, arch: test.arch, args: test.args})
			if got.String() != want {
				t.Errorf("%s, %+v: %s: got %s, want %s", test.goarch, filtering, test.whatItIs, got, want)
			}
		}
	}
}

func TestFilter_RejectsUnknownArchitectures(t *testing.T) {
	t.Parallel()
	for _, goarch := range []string{"", "386", "arm", "riscv64", "s390x", "ppc64le"} {
		if program, err := Filter(goarch, Filtering{}); err == nil {
			t.Errorf("%q has a filter:\n%s", goarch, program)
		}
	}
}

// Nothing is allowed without network that is refused with it.
func TestFilter_OfflineOnlyTightens(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for _, goarch := range []string{"amd64", "arm64"} {
		m, err := machineOf(goarch)
		if err != nil {
			t.Fatal(err)
		}
		online, offline := filter(t, goarch, Filtering{}), filter(t, goarch, Filtering{Offline: true})
		for range 50000 {
			d := seccompData{nr: int32(random.IntN(500)), arch: m.native.audit}
			if random.IntN(3) == 0 {
				d.arch = m.compat.audit
			}
			for i := range d.args {
				d.args[i] = value(random)
			}
			if run(t, online, d) != actionAllow && run(t, offline, d) == actionAllow {
				t.Fatalf("%s: %+v is allowed without network only", goarch, d)
			}
		}
	}
}

func TestRules_HaveReasonsAndAreReached(t *testing.T) {
	t.Parallel()
	answered := map[string]bool{} // calls for which an earlier rule always holds
	for _, kind := range kinds {
		clear(answered)
		for _, rule := range rulesFor(kind.Filtering) {
			if rule.why == "" {
				t.Errorf("the rule for %s has no reason", rule.call)
			}
			if _, named := numbersOf(rule.call); !named {
				t.Errorf("%s has no number", rule.call)
			}
			if answered[rule.call] {
				t.Errorf("a rule for %s is never reached", rule.call)
			}
			answered[rule.call] = len(rule.when) == 0
		}
	}
}

// numberOn is the number of a call on an architecture; none if it has none.
func numberOn(a *arch, call string) int {
	known, _ := numbersOf(call)
	return a.number(known)
}

// numbersOf searches by halves.
func TestSystemCalls_AreSorted(t *testing.T) {
	t.Parallel()
	for i, call := range systemCalls[1:] {
		if before := systemCalls[i].name; before >= call.name {
			t.Errorf("%s stands before %s", before, call.name)
		}
	}
}

// golang.org/x/sys/unix has the numbers of each architecture from the kernel's
// headers.
func TestSyscallNumbers_AreThoseOfTheKernel(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		harness.Skip(t, "go", err.Error())
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatalf("find golang.org/x/sys: %v", err)
	}
	dir := strings.TrimSpace(string(out))
	constant := regexp.MustCompile(`(?m)^\s*SYS_(\w+)\s*=\s*(\d+)`)
	for goarch, a := range map[string]*arch{"amd64": amd64, "arm64": arm64, "386": i386, "arm": arm} {
		source, err := os.ReadFile(filepath.Join(dir, "unix", fmt.Sprintf("zsysnum_linux_%s.go", goarch)))
		if err != nil {
			t.Fatal(err)
		}
		theirs := map[string]int{}
		for _, match := range constant.FindAllStringSubmatch(string(source), -1) {
			if theirs[strings.ToLower(match[1])], err = strconv.Atoi(match[2]); err != nil {
				t.Fatal(err)
			}
		}
		for _, call := range systemCalls {
			want, exists := theirs[call.name]
			if !exists {
				want = none
			}
			if got := a.number(call.numbers); got != want {
				t.Errorf("%s on %s is %d, want %d", call.name, goarch, got, want)
			}
		}
	}
}
