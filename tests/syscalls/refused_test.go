//go:build linux

package syscalls

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

const (
	minus    = 1<<64 - 1         // -1
	high     = 0xdeadbeef << 32  // in the half of a register that the kernel ignores for an int
	nonsense = uint64(1) << 63   // a flag that no call has
	anybody  = -1                // no capability is needed to pass the kernel's first check
	thread   = unix.CLONE_THREAD // invalid without CLONE_SIGHAND, so that nothing is cloned
	userOnly = 1 | uint64(1)<<30 // UFFD_USER_MODE_ONLY, and a flag that does not exist
	sysAdmin = unix.CAP_SYS_ADMIN

	setDelegation = 1040 // F_SETDELEG
)

// refusal is a call that every sandboxed session must be refused.
type refusal struct {
	name   string
	number uint64
	args   []uint64
	answer string
	// needs is the capability without which the kernel itself may give the same
	// answer.
	needs int
}

var refusals = append([]refusal{
	{"clone3", unix.SYS_CLONE3, nil, "ENOSYS", anybody},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, []uint64{1, 0}, "ENOSYS", anybody},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, []uint64{minus}, "ENOSYS", anybody},
	{"io_uring_register", unix.SYS_IO_URING_REGISTER, []uint64{minus}, "ENOSYS", anybody},
	{"TIOCSTI", unix.SYS_IOCTL, []uint64{minus, unix.TIOCSTI}, "EPERM", anybody},
	{"TIOCSTI-high", unix.SYS_IOCTL, []uint64{minus, high | unix.TIOCSTI}, "EPERM", anybody},
	{"TIOCLINUX", unix.SYS_IOCTL, []uint64{minus, unix.TIOCLINUX}, "EPERM", anybody},
	{"TIOCLINUX-high", unix.SYS_IOCTL, []uint64{minus, high | unix.TIOCLINUX}, "EPERM", anybody},
	{"unshare-user", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUSER | nonsense}, "EPERM", anybody},
	{"unshare-user-high", unix.SYS_UNSHARE, []uint64{high | unix.CLONE_NEWUSER}, "EPERM", anybody},
	{"unshare-mounts", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWNS}, "EPERM", sysAdmin},
	{"unshare-names", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUTS}, "EPERM", sysAdmin},
	{"unshare-network", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWNET | nonsense}, "EPERM", anybody},
	{"unshare-time", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWTIME | nonsense}, "EPERM", anybody},
	{"clone-user", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | thread}, "EPERM", anybody},
	{"clone-user-high", unix.SYS_CLONE, []uint64{high | unix.CLONE_NEWUSER | thread}, "EPERM", anybody},
	{"clone-mounts", unix.SYS_CLONE, []uint64{unix.CLONE_NEWNS | thread}, "EPERM", anybody},
	{"clone-cgroup", unix.SYS_CLONE, []uint64{unix.CLONE_NEWCGROUP | thread}, "EPERM", anybody},
	{"clone-names", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUTS | thread}, "EPERM", anybody},
	{"clone-ipc", unix.SYS_CLONE, []uint64{unix.CLONE_NEWIPC | thread}, "EPERM", anybody},
	{"clone-pids", unix.SYS_CLONE, []uint64{unix.CLONE_NEWPID | thread}, "EPERM", anybody},
	{"clone-network", unix.SYS_CLONE, []uint64{unix.CLONE_NEWNET | thread}, "EPERM", anybody},
	{"clone-parent", unix.SYS_CLONE, []uint64{unix.CLONE_PARENT | thread}, "EPERM", anybody},
	{"clone-parent-high", unix.SYS_CLONE, []uint64{high | unix.CLONE_PARENT | thread}, "EPERM", anybody},
	{"set-lease", unix.SYS_FCNTL, []uint64{minus, unix.F_SETLEASE, unix.F_RDLCK}, "EACCES", anybody},
	{"set-lease-high", unix.SYS_FCNTL, []uint64{minus, high | unix.F_SETLEASE, unix.F_RDLCK}, "EACCES", anybody},
	{"set-delegation", unix.SYS_FCNTL, []uint64{minus, setDelegation, 0}, "EACCES", anybody},
	{"setns", unix.SYS_SETNS, []uint64{minus, 0}, "EPERM", anybody},
	{"mount", unix.SYS_MOUNT, nil, "EPERM", anybody},
	{"umount2", unix.SYS_UMOUNT2, []uint64{0, nonsense >> 32}, "EPERM", anybody},
	{"pivot_root", unix.SYS_PIVOT_ROOT, nil, "EPERM", sysAdmin},
	{"open_tree", unix.SYS_OPEN_TREE, []uint64{minus, 0, 0}, "EPERM", anybody},
	{"open_tree_attr", unix.SYS_OPEN_TREE_ATTR, []uint64{minus, 0, 0, 0, 1}, "EPERM", anybody},
	{"move_mount", unix.SYS_MOVE_MOUNT, []uint64{minus, 0, minus, 0, 0}, "EPERM", sysAdmin},
	{"fsopen", unix.SYS_FSOPEN, nil, "EPERM", sysAdmin},
	{"fsconfig", unix.SYS_FSCONFIG, []uint64{minus}, "EPERM", anybody},
	{"fsmount", unix.SYS_FSMOUNT, []uint64{minus}, "EPERM", sysAdmin},
	{"fspick", unix.SYS_FSPICK, []uint64{minus, 0, 0}, "EPERM", sysAdmin},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, []uint64{minus, 0, 0, 0, 0}, "EPERM", anybody},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, []uint64{minus, 0, 0}, "EPERM", unix.CAP_DAC_READ_SEARCH},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, []uint64{minus, 0, 0, 0, 0, 1}, "EPERM", anybody},
	{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, []uint64{minus, 0, 0, 0, 0, 1}, "EPERM", anybody},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, []uint64{minus, minus, 0}, "EPERM", anybody},
	{"add_key", unix.SYS_ADD_KEY, nil, "EPERM", anybody},
	{"request_key", unix.SYS_REQUEST_KEY, nil, "EPERM", anybody},
	{"keyctl", unix.SYS_KEYCTL, []uint64{9999}, "EPERM", anybody},
	// The user with the highest number does not exist: without a filter the kernel
	// answers ESRCH.
	{"priority-user", unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 1<<31 - 1, 19}, "EPERM", anybody},
	{"priority-user-high", unix.SYS_SETPRIORITY, []uint64{high | unix.PRIO_USER, 1<<31 - 1, 19}, "EPERM", anybody},
	{"ioprio-user", unix.SYS_IOPRIO_SET, []uint64{3, 1<<31 - 1, 2 << 13}, "EPERM", anybody},
	{"userfaultfd", unix.SYS_USERFAULTFD, []uint64{userOnly}, "EPERM", anybody},
	{"bpf", unix.SYS_BPF, []uint64{9999, 0, 0}, "EPERM", sysAdmin},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, []uint64{0, 0, 0, minus, minus}, "EPERM", anybody},
	{"kexec_load", unix.SYS_KEXEC_LOAD, []uint64{0, 0, 0, 0xff}, "EPERM", unix.CAP_SYS_BOOT},
	{"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, []uint64{minus, minus, 0, 0, 0xff00}, "EPERM", unix.CAP_SYS_BOOT},
	{"init_module", unix.SYS_INIT_MODULE, nil, "EPERM", unix.CAP_SYS_MODULE},
	{"finit_module", unix.SYS_FINIT_MODULE, []uint64{minus, 0, 0xff00}, "EPERM", unix.CAP_SYS_MODULE},
	{"delete_module", unix.SYS_DELETE_MODULE, nil, "EPERM", unix.CAP_SYS_MODULE},
	{"swapon", unix.SYS_SWAPON, []uint64{0, 0xff0000}, "EPERM", sysAdmin},
	{"swapoff", unix.SYS_SWAPOFF, nil, "EPERM", sysAdmin},
	{"reboot", unix.SYS_REBOOT, nil, "EPERM", unix.CAP_SYS_BOOT}, // invalid without the magic numbers
	{"acct", unix.SYS_ACCT, []uint64{1}, "EPERM", unix.CAP_SYS_PACCT},
	{"quotactl", unix.SYS_QUOTACTL, []uint64{0xff, 0, 0, 0}, "EPERM", anybody},
	{"quotactl_fd", unix.SYS_QUOTACTL_FD, []uint64{minus, 0xff, 0, 0}, "EPERM", anybody},
	{"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, nil, "EPERM", sysAdmin},
	{"socketpair-inet", unix.SYS_SOCKETPAIR, []uint64{unix.AF_INET, unix.SOCK_STREAM, 0, 0}, "EAFNOSUPPORT", anybody},
}, nativeRefusals...)

func TestForbiddenCallsAreRefused(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	actions := make([]string, len(refusals))
	for i, r := range refusals {
		actions[i] = call(r.name, r.number, r.args...)
	}
	control := newScene(t, harness.Off()).ask(actions...)
	counted := 0
	for _, settings := range []string{sandboxed(), offline()} {
		answers := newScene(t, settings).ask(actions...)
		for _, r := range refusals {
			if answers[r.name] != r.answer {
				t.Errorf("%s is answered with %s, want %s", r.name, answers[r.name], r.answer)
			}
		}
	}
	for _, r := range refusals {
		switch {
		case control[r.name] != r.answer:
			counted++
		case capable(t, r.needs):
			t.Errorf("control: without a sandbox %s is answered with %s too, so that its refusal proves nothing",
				r.name, control[r.name])
		}
	}
	t.Logf("%d of %d refusals have a control that differs", counted, len(refusals))
}

// Calls that sessions need are not refused together with forbidden ones.
func TestNeighboursOfForbiddenCallsWork(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	actions := []string{
		call("unshare-files", unix.SYS_UNSHARE, unix.CLONE_FILES|unix.CLONE_FS),
		call("unix-stream", unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM),
		call("unix-packets", unix.SYS_SOCKET, high|unix.AF_UNIX,
			unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK),
		call("getpid", unix.SYS_GETPID),
		call("prlimit-own", unix.SYS_PRLIMIT64, high, unix.RLIMIT_NOFILE, 0, 0),
		call("prlimit-read", unix.SYS_PRLIMIT64, uint64(os.Getpid()), unix.RLIMIT_NOFILE, 0, 0),
		// the process with the highest number does not exist
		call("seize", unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1<<31-1),
	}
	for _, settings := range []string{sandboxed(), offline()} {
		for name, answer := range newScene(t, settings).ask(actions...) {
			if want := map[bool]string{true: "ESRCH", false: "ok"}[name == "seize"]; answer != want {
				t.Errorf("%s is answered with %s, want %s", name, answer, want)
			}
		}
	}
}

// The same by a real program that needs no capability: a user namespace.
func TestNoUserNamespaceCanBeMade(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	const line = "unshare --user true"
	if output, status := newScene(t, harness.Off()).Tool(line); status != 0 {
		harness.Skip(t, "user_namespaces", strings.TrimSpace(output))
	}
	if output, status := newScene(t, sandboxed()).Tool(line); status == 0 ||
		!strings.Contains(output, "Operation not permitted") {
		t.Errorf("status %d: %s", status, output)
	}
}

// capable reports whether this process, and so what it starts without a
// sandbox, has a capability.
func capable(t testing.TB, capability int) bool {
	t.Helper()
	if capability == anybody {
		return true
	}
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), "CapEff:"); found {
			set, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return set&(1<<capability) != 0
		}
	}
	t.Fatal(fmt.Errorf("find the capabilities of this process: %w", lines.Err()))
	return false
}
