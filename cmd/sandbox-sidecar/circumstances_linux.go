package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited are the fields of /proc/PID/status that a process hands down.
var inherited = []string{
	"Umask:", "Uid:", "Gid:", "Groups:", "NoNewPrivs:", "CapInh:", "CapPrm:", "CapBnd:", "CapAmb:", "Seccomp:",
	"Seccomp_filters:", "SigBlk:", "SigIgn:", "Cpus_allowed:", "Mems_allowed:", "THP_enabled:", "Speculation",
}

// circumstances are what a process hands down to those that it starts, as a text
// that is equal if they are: limits, groups, mask of new files, niceness and other
// priorities, processors, control groups, namespaces, root directory, keyring,
// ignored signals, security labels. Of open files it is the hard limit, as Go's
// runtime has raised the other. What is of a thread is that of the calling one.
func circumstances() string {
	var text strings.Builder
	// The mask of the main thread is another one while that starts a thread.
	status, _ := os.ReadFile("/proc/thread-self/status") // without it, other fields differ
	for line := range strings.Lines(string(status)) {
		for _, key := range inherited {
			if strings.HasPrefix(line, key) {
				text.WriteString(line)
			}
		}
	}
	const limits = 16 // RLIM_NLIMITS
	for resource := range limits {
		var limit unix.Rlimit
		err := unix.Getrlimit(resource, &limit)
		fmt.Fprintln(&text, resource, limit, err)
	}
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	fmt.Fprintln(&text, nice)
	fmt.Fprintln(&text, scheduling(), ioPriority(), rootDirectory())
	fmt.Fprintln(&text, keyring())
	securebits, err := unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
	fmt.Fprintln(&text, securebits, err)
	for _, file := range []string{
		"oom_score_adj", "cgroup", "attr/current", "attr/fscreate", "attr/keycreate", "personality", "coredump_filter",
		"loginuid", "sessionid",
	} {
		content, _ := os.ReadFile("/proc/self/" + file)
		fmt.Fprintf(&text, "%s\n", content)
	}
	for _, namespace := range []string{"user", "mnt", "net", "ipc", "uts", "pid", "cgroup", "time"} {
		name, _ := os.Readlink("/proc/self/ns/" + namespace)
		fmt.Fprintln(&text, name)
	}
	return text.String()
}

// scheduling is the class in which the kernel schedules, with what belongs to it.
func scheduling() string {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return err.Error()
	}
	// Its other fields are the niceness, and slices of time that the kernel may set.
	return fmt.Sprint(attr.Policy, attr.Flags, attr.Priority, attr.Util_min, attr.Util_max)
}

// ioPriority is the class and the priority of input and output.
func ioPriority() string {
	const process = 1             // IOPRIO_WHO_PROCESS; process 0 is the caller
	const bestEffort4 = 2<<13 | 4 // the default, with niceness 0
	priority, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, process, 0, 0)
	// Before Linux 6.0 a thread without a priority has another value once it has
	// read or written.
	if errno == 0 && (priority>>13 == 0 || priority == bestEffort4) {
		return "default"
	}
	return fmt.Sprint(priority, errno)
}

// rootDirectory is the one of chroot(2). Another mount of a directory has other
// mounts below it.
func rootDirectory() string {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_INO|unix.STATX_MNT_ID, &stat)
	return fmt.Sprint(stat.Dev_major, stat.Dev_minor, stat.Ino, stat.Mnt_id, err)
}

// keyring is the number of the session keyring. Some container engines refuse to
// say it.
func keyring() string {
	id, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
	return fmt.Sprint(id, err)
}
