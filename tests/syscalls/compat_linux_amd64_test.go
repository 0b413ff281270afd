package syscalls

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// compat are calls of 32-bit programs: numbers of i386 (asm/unistd_32.h).
var compat = []struct {
	name            string
	number          uint32
	args            [3]uint32
	data            []uint32
	online, offline unix.Errno
	// answer is the answer without a sandbox; 0 for success.
	answer unix.Errno
}{
	{"getpid", 20, [3]uint32{}, nil, 0, 0, 0},
	{"socket tcp", 359, [3]uint32{unix.AF_INET, unix.SOCK_STREAM, 0}, nil, 0, unix.EACCES, 0},
	{"socket udp", 359, [3]uint32{unix.AF_INET, unix.SOCK_DGRAM, 0}, nil, 0, unix.EACCES, 0},
	{"socket unix", 359, [3]uint32{unix.AF_UNIX, unix.SOCK_STREAM, 0}, nil, 0, 0, 0},
	{"socket uevent", 359, [3]uint32{unix.AF_NETLINK, unix.SOCK_RAW, 15}, nil, unix.EPROTONOSUPPORT, unix.EACCES, 0},
	{
		"socketcall tcp", 102,
		[3]uint32{1, elfData, 0},
		[]uint32{unix.AF_INET, unix.SOCK_STREAM, 0},
		unix.EACCES,
		unix.EACCES, 0,
	},
	{
		"socketcall unix", 102,
		[3]uint32{1, elfData, 0},
		[]uint32{unix.AF_UNIX, unix.SOCK_STREAM, 0},
		unix.EACCES,
		unix.EACCES, 0,
	},
	{"clone3", 435, [3]uint32{}, nil, unix.ENOSYS, unix.ENOSYS, unix.EINVAL},
	{"TIOCSTI", 54, [3]uint32{1<<32 - 1, unix.TIOCSTI, 0}, nil, unix.EPERM, unix.EPERM, unix.EBADF},
	{"umount", 22, [3]uint32{}, nil, unix.EPERM, unix.EPERM, unix.EFAULT},
	{"io_uring_enter", 426, [3]uint32{1<<32 - 1, 0, 0}, nil, unix.ENOSYS, unix.ENOSYS, unix.EBADF},
	{
		"clone into a user namespace", 120,
		[3]uint32{unix.CLONE_NEWUSER | thread, 0, 0},
		nil, unix.EPERM, unix.EPERM,
		unix.EINVAL,
	},
}

// require32 skips a test where the kernel runs no programs for 32-bit x86
// (CONFIG_IA32_EMULATION). Where it does, a session without a sandbox must, too.
func require32(t *testing.T, control *scene) {
	t.Helper()
	program := control.program32(t, "getpid", []call32{{number: 20}})
	if output, err := exec.Command(program).CombinedOutput(); err != nil {
		harness.Skip(t, "ia32", fmt.Sprintf("programs for 32-bit x86 do not run: %v, %q", err, output))
	}
	if output, status := control.Tool(program); status != 0 {
		t.Fatalf("without a sandbox, a program for 32-bit x86 ends with status %d, %q", status, output)
	}
}

func TestThirtyTwoBitProgramsAreFilteredToo(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls", "network")
	control := newScene(t, harness.Off())
	require32(t, control)
	type place struct {
		name string
		s    *scene
		want func(i int) unix.Errno
	}
	places := []place{
		{"without a sandbox", control, func(i int) unix.Errno { return compat[i].answer }},
		{"with network", newScene(t, sandboxed()), func(i int) unix.Errno { return compat[i].online }},
	}
	for _, machine := range harness.Machines(t) {
		want := func(i int) unix.Errno { return compat[i].offline }
		if machine.Namespaces {
			want = places[1].want
		}
		places = append(places, place{"without network, " + machine.Name, newSceneOn(t, offline(), machine), want})
	}
	for i, c := range compat {
		for j, place := range places {
			if j > 0 && !harness.Turn(t, i+j, len(places)-1) { // the first is the control
				continue
			}
			want := place.want(i)
			if _, got := place.s.Tool(place.s.program32(t, "program", []call32{{number: c.number, args: c.args}},
				c.data...)); got != int(want) {
				t.Errorf("%s %s is answered with error %d, want %d (%v)", c.name, place.name, got, int(want), want)
			}
		}
	}
}

// Connects to a socket outside by the numbers of i386. The supervisor decides
// about the address in the same way.
func TestThirtyTwoBitProgramsReachNoOutsideSocket(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	dir, err := os.MkdirTemp("", "c32-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listener, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var address [112]byte // struct sockaddr_un, rounded up to words
	address[0] = unix.AF_UNIX
	copy(address[2:], dir+"/s")
	words := make([]uint32, len(address)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(address[4*i:])
	}
	const socket, connect = 359, 362
	calls := []call32{
		{number: socket, args: [3]uint32{unix.AF_UNIX, unix.SOCK_STREAM, 0}},
		{number: connect, args: [3]uint32{0, elfData, 110}, onResult: true},
	}
	control := newScene(t, harness.Off())
	require32(t, control)
	if output, got := control.Tool(control.program32(t, "program", calls, words...)); got != 0 {
		t.Fatalf("without a sandbox: status %d, %q", got, output)
	}
	for _, settings := range []string{sandboxed(), offline()} {
		s := newScene(t, settings)
		if _, got := s.Tool(s.program32(t, "program", calls, words...)); got != int(unix.EACCES) {
			t.Errorf("connecting is answered with error %d, want EACCES", got)
		}
	}
}

// x32 calls have the numbers of native ones with a bit set. They are refused as
// on a kernel without them, whether the kernel has them or not.
func TestX32CallsAreRefused(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	const bit = 0x40000000
	actions := []string{
		call("getpid", bit|unix.SYS_GETPID), call("socket", bit|unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM),
		call("ioctl", bit|514, minus, unix.TIOCSTI), // ioctl has a number of its own there
	}
	for name, answer := range newScene(t, offline()).ask(actions...) {
		if answer != "ENOSYS" {
			t.Errorf("%s is answered with %s", name, answer)
		}
	}
}
