package seccomp

import (
	"slices"
	"strings"
)

// numbers are those of one system call on each architecture. none means that
// the architecture does not have the call.
type numbers struct{ amd64, arm64, i386, arm int }

const none = -1

// everywhere is for a call that has the same number on every architecture, as
// all have that came after Linux 5.1.
func everywhere(number int) numbers { return numbers{number, number, number, number} }

// systemCall is a call with its numbers.
type systemCall struct {
	name string
	numbers
}

// numbersOf finds a call by its name.
func numbersOf(name string) (numbers, bool) {
	i, found := slices.BinarySearchFunc(systemCalls, name, func(call systemCall, name string) int {
		return strings.Compare(call.name, name)
	})
	if !found {
		return numbers{}, false
	}
	return systemCalls[i].numbers, true
}

// systemCalls has every call that a rule names. A test compares it with
// golang.org/x/sys/unix, whose constants exist only for the architecture that
// it is built for. "umount" and "socketcall" are old calls of i386.
//
// The list is sorted by name. A map would have to be filled whenever the
// program starts, in every stage too.
var systemCalls = []systemCall{
	{"acct", numbers{163, 89, 51, 51}},
	{"add_key", numbers{248, 217, 286, 309}},
	{"bind", numbers{49, 200, 361, 282}},
	{"bpf", numbers{321, 280, 357, 386}},
	{"chmod", numbers{90, none, 15, 15}},
	{"chown", numbers{92, none, 182, 182}},
	{"chown32", numbers{none, none, 212, 212}},
	{"clone", numbers{56, 220, 120, 120}},
	{"clone3", everywhere(435)},
	{"connect", numbers{42, 203, 362, 283}},
	{"creat", numbers{85, none, 8, 8}},
	{"delete_module", numbers{176, 106, 129, 129}},
	{"execve", numbers{59, 221, 11, 11}},
	{"execveat", numbers{322, 281, 358, 387}},
	{"fchmod", numbers{91, 52, 94, 94}},
	{"fchmodat", numbers{268, 53, 306, 333}},
	{"fchmodat2", everywhere(452)},
	{"fchown", numbers{93, 55, 95, 95}},
	{"fchown32", numbers{none, none, 207, 207}},
	{"fchownat", numbers{260, 54, 298, 325}},
	{"fcntl", numbers{72, 25, 55, 55}},
	{"fcntl64", numbers{none, none, 221, 221}},
	{"file_setattr", everywhere(469)},
	{"finit_module", numbers{313, 273, 350, 379}},
	{"fremovexattr", numbers{199, 16, 237, 237}},
	{"fsconfig", everywhere(431)},
	{"fsetxattr", numbers{190, 7, 228, 228}},
	{"fsmount", everywhere(432)},
	{"fsopen", everywhere(430)},
	{"fspick", everywhere(433)},
	{"futimesat", numbers{261, none, 299, 326}},
	{"getpeername", numbers{52, 205, 368, 287}},
	{"getsockname", numbers{51, 204, 367, 286}},
	{"init_module", numbers{175, 105, 128, 128}},
	{"io_uring_enter", everywhere(426)},
	{"io_uring_register", everywhere(427)},
	{"io_uring_setup", everywhere(425)},
	{"ioctl", numbers{16, 29, 54, 54}},
	{"ioperm", numbers{173, none, 101, none}},
	{"iopl", numbers{172, none, 110, none}},
	{"ioprio_set", numbers{251, 30, 289, 314}},
	{"ipc", numbers{none, none, 117, none}},
	{"kexec_file_load", numbers{320, 294, none, 401}},
	{"kexec_load", numbers{246, 104, 283, 347}},
	{"keyctl", numbers{250, 219, 288, 311}},
	{"kill", numbers{62, 129, 37, 37}},
	{"lchown", numbers{94, none, 16, 16}},
	{"lchown32", numbers{none, none, 198, 198}},
	{"link", numbers{86, none, 9, 9}},
	{"linkat", numbers{265, 37, 303, 330}},
	{"listen", numbers{50, 201, 363, 284}},
	{"lookup_dcookie", numbers{212, 18, 253, 249}},
	{"lremovexattr", numbers{198, 15, 236, 236}},
	{"lsetxattr", numbers{189, 6, 227, 227}},
	{"mkdir", numbers{83, none, 39, 39}},
	{"mkdirat", numbers{258, 34, 296, 323}},
	{"mknod", numbers{133, none, 14, 14}},
	{"mknodat", numbers{259, 33, 297, 324}},
	{"mount", numbers{165, 40, 21, 21}},
	{"mount_setattr", everywhere(442)},
	{"move_mount", everywhere(429)},
	{"msgctl", numbers{71, 187, 402, 304}},
	{"msgget", numbers{68, 186, 399, 303}},
	{"msgrcv", numbers{70, 188, 401, 302}},
	{"msgsnd", numbers{69, 189, 400, 301}},
	{"open", numbers{2, none, 5, 5}},
	{"open_by_handle_at", numbers{304, 265, 342, 371}},
	{"open_tree", everywhere(428)},
	{"open_tree_attr", everywhere(467)},
	{"openat", numbers{257, 56, 295, 322}},
	{"openat2", everywhere(437)},
	{"perf_event_open", numbers{298, 241, 336, 364}},
	{"pidfd_getfd", everywhere(438)},
	{"pidfd_send_signal", everywhere(424)},
	{"pivot_root", numbers{155, 41, 217, 218}},
	{"prlimit64", numbers{302, 261, 340, 369}},
	{"process_vm_readv", numbers{310, 270, 347, 376}},
	{"process_vm_writev", numbers{311, 271, 348, 377}},
	{"quotactl", numbers{179, 60, 131, 131}},
	{"quotactl_fd", everywhere(443)},
	{"reboot", numbers{169, 142, 88, 88}},
	{"recvfrom", numbers{45, 207, 371, 292}},
	{"recvmsg", numbers{47, 212, 372, 297}},
	{"removexattr", numbers{197, 14, 235, 235}},
	{"removexattrat", everywhere(466)},
	{"rename", numbers{82, none, 38, 38}},
	{"renameat", numbers{264, 38, 302, 329}},
	{"renameat2", numbers{316, 276, 353, 382}},
	{"request_key", numbers{249, 218, 287, 310}},
	{"rmdir", numbers{84, none, 40, 40}},
	{"sched_setaffinity", numbers{203, 122, 241, 241}},
	{"sched_setattr", numbers{314, 274, 351, 380}},
	{"sched_setparam", numbers{142, 118, 154, 154}},
	{"sched_setscheduler", numbers{144, 119, 156, 156}},
	{"semctl", numbers{66, 191, 394, 300}},
	{"semget", numbers{64, 190, 393, 299}},
	{"semop", numbers{65, 193, none, 298}},
	{"semtimedop", numbers{220, 192, none, 312}},
	{"semtimedop_time64", numbers{none, none, 420, 420}},
	{"sendmmsg", numbers{307, 269, 345, 374}},
	{"sendmsg", numbers{46, 211, 370, 296}},
	{"sendto", numbers{44, 206, 369, 290}},
	{"setns", numbers{308, 268, 346, 375}},
	{"setpriority", numbers{141, 140, 97, 97}},
	{"setsockopt", numbers{54, 208, 366, 294}},
	{"setxattr", numbers{188, 5, 226, 226}},
	{"setxattrat", everywhere(463)},
	{"shmat", numbers{30, 196, 397, 305}},
	{"shmctl", numbers{31, 195, 396, 308}},
	{"shmget", numbers{29, 194, 395, 307}},
	{"socket", numbers{41, 198, 359, 281}},
	{"socketcall", numbers{none, none, 102, none}},
	{"socketpair", numbers{53, 199, 360, 288}},
	{"swapoff", numbers{168, 225, 115, 115}},
	{"swapon", numbers{167, 224, 87, 87}},
	{"symlink", numbers{88, none, 83, 83}},
	{"symlinkat", numbers{266, 36, 304, 331}},
	{"truncate", numbers{76, 45, 92, 92}},
	{"truncate64", numbers{none, none, 193, 193}},
	{"umount", numbers{none, none, 22, none}},
	{"umount2", numbers{166, 39, 52, 52}},
	{"unlink", numbers{87, none, 10, 10}},
	{"unlinkat", numbers{263, 35, 301, 328}},
	{"unshare", numbers{272, 97, 310, 337}},
	{"userfaultfd", numbers{323, 282, 374, 388}},
	{"utime", numbers{132, none, 30, none}},
	{"utimensat", numbers{280, 88, 320, 348}},
	{"utimensat_time64", numbers{none, none, 412, 412}},
	{"utimes", numbers{235, none, 271, 269}},
}
